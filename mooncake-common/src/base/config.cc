#include "mooncake-common/src/base/config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "mooncake-common/src/base/byte_size.h"
#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

constexpr std::size_t kMaxBytes = kMiB;
constexpr std::size_t kMaxKeys = 10'000;
constexpr std::size_t kMaxFlatBytes = 16 * kMiB;
constexpr std::size_t kMaxLevels = 32;

std::unexpected<Error> Invalid(std::string_view name, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("read configuration {}: {}", name, why));
}

// Collects flat keys while a tree is walked.
class Flattener {
 public:
  explicit Flattener(std::string_view name) : name_(name) {}

  Result<void> Walk(const YAML::Node& node, const std::string& key, std::size_t level) {
    MC_TRY(CountVisit(key));
    if (node.IsSequence()) {
      return IsList(key);
    }
    if (!node.IsMap()) {
      return Add(key, node.IsScalar() ? node.Scalar() : std::string());
    }
    MC_TRY(CheckLevel(key, level));
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        return Invalid(name_, fmt::format("below {}, a key that is no plain word", Quote(key)));
      }
      MC_TRY(Walk(entry.second, Join(key, entry.first.Scalar()), level + 1));
    }
    return {};
  }

  Result<void> Walk(const nlohmann::json& node, const std::string& key, std::size_t level) {
    MC_TRY(CountVisit(key));
    if (node.is_array()) {
      return IsList(key);
    }
    if (!node.is_object()) {
      return Add(key, node.is_null()     ? std::string()
                      : node.is_string() ? node.get<std::string>()
                                         : node.dump());
    }
    MC_TRY(CheckLevel(key, level));
    for (const auto& [name, child] : node.items()) {
      MC_TRY(Walk(child, Join(key, name), level + 1));
    }
    return {};
  }

  std::map<std::string, std::string, std::less<>> Take() { return std::move(values_); }

 private:
  static std::string Join(const std::string& key, const std::string& name) {
    return key.empty() ? name : fmt::format("{}.{}", key, name);
  }

  [[nodiscard]] std::unexpected<Error> IsList(const std::string& key) const {
    return Invalid(name_, fmt::format("{} is a list; settings are single values", Quote(key)));
  }

  [[nodiscard]] Result<void> CheckLevel(const std::string& key, std::size_t level) const {
    if (level >= kMaxLevels) {
      return Invalid(name_,
                     fmt::format("{} is nested deeper than {} levels", Quote(key), kMaxLevels));
    }
    return {};
  }

  // Sections count like settings: YAML's anchors make many of few, even of empty ones.
  Result<void> CountVisit(const std::string& key) {
    if (++visits_ > kMaxKeys + 1) {  // The top is neither.
      return Invalid(name_, fmt::format("more than {} settings and sections", kMaxKeys));
    }
    return CountBytes(key.size());
  }
  Result<void> CountBytes(std::size_t bytes) {
    flat_bytes_ += bytes;
    return flat_bytes_ <= kMaxFlatBytes
               ? Result<void>()
               : Invalid(name_, fmt::format("its keys and values come to more than {} MiB",
                                            kMaxFlatBytes / kMiB));
  }

  Result<void> Add(const std::string& key, std::string value) {
    if (key.empty()) {
      // An empty file is an empty configuration; a file with just a word is none.
      return value.empty() ? Result<void>()
                           : Invalid(name_, "expected settings as in key: value at the top");
    }
    MC_TRY(CountBytes(value.size()));
    if (!values_.emplace(key, std::move(value)).second) {
      return Invalid(name_, fmt::format("{} is given twice", Quote(key)));
    }
    return {};
  }

  std::string_view name_;
  std::size_t visits_ = 0;
  std::size_t flat_bytes_ = 0;
  std::map<std::string, std::string, std::less<>> values_;
};

Result<void> ParseInto(Flattener& flat, std::string_view text, ConfigFormat format) {
  return format == ConfigFormat::kJson ? flat.Walk(nlohmann::json::parse(text), {}, 0)
                                       : flat.Walk(YAML::Load(std::string(text)), {}, 0);
}

}  // namespace

Result<Config> Config::Parse(std::string_view text, ConfigFormat format, std::string_view name) {
  if (text.size() > kMaxBytes) {
    return Invalid(name, fmt::format("{} bytes; at most {} are read", text.size(), kMaxBytes));
  }
  Flattener flat(name);
  try {
    MC_TRY(ParseInto(flat, text, format));
  } catch (const std::exception& error) {  // Both parsers throw; their words have line and column.
    return Invalid(name, error.what());
  }
  Config config;
  config.values_ = flat.Take();
  return config;
}

Result<Config> Config::Load(const std::string& path) {
  std::optional<ConfigFormat> format;
  if (path.ends_with(".yaml") || path.ends_with(".yml")) {
    format = ConfigFormat::kYaml;
  } else if (path.ends_with(".json")) {
    format = ConfigFormat::kJson;
  }
  if (!format) {
    return Invalid(path, "the name must end in .yaml, .yml or .json");
  }
  const auto failed = [&path] {
    return Fail(
        errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
        fmt::format("read configuration {}: {}", path, std::generic_category().message(errno)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (file == nullptr) {
    return failed();
  }
  std::string text(kMaxBytes + 1, '\0');  // One more than allowed, so that Parse sees an excess.
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    return failed();
  }
  return Parse(text, *format, path);
}

std::optional<std::string_view> Config::Find(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end() || found->second.empty()) {
    return std::nullopt;
  }
  return found->second;
}

std::vector<std::string> Config::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_) {
    if (!value.empty()) {
      keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace mooncake
