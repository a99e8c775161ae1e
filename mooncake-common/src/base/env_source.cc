#include "mooncake-common/src/base/env_source.h"

#include <unistd.h>

#include <cstdlib>

namespace mooncake {

std::optional<std::string> ProcessEnv::Find(std::string_view name) const {
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::vector<std::string> ProcessEnv::Names() const {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

const ProcessEnv& ProcessEnv::Get() {
  static const ProcessEnv env;
  return env;
}

std::optional<std::string> MapEnv::Find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::nullopt : std::optional<std::string>(found->second);
}

std::vector<std::string> MapEnv::Names() const {
  std::vector<std::string> names;
  names.reserve(values_.size());
  for (const auto& [name, value] : values_) {
    names.push_back(name);
  }
  return names;
}

}  // namespace mooncake
