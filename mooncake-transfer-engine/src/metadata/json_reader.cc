#include "mooncake-transfer-engine/src/metadata/json_reader.h"

#include <fmt/format.h>

#include <utility>

namespace mooncake::transfer {

bool IsTooDeep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) {
        return true;
      }
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

Result<nlohmann::json> ReadJsonObject(std::string_view text, std::size_t max_bytes,
                                      std::string_view what) {
  if (text.size() > max_bytes) {
    return Fail(ErrorCode::kMalformed, fmt::format("read {}: {} bytes, more than the {} allowed",
                                                   what, text.size(), max_bytes));
  }
  if (IsTooDeep(text)) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("read {}: nested deeper than {} levels", what, kMaxJsonDepth));
  }
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    // The parser quotes the offending token, which may be as long as the document.
    return Fail(ErrorCode::kMalformed, fmt::format("read {}: not JSON: {}", what,
                                                   std::string_view(e.what()).substr(0, 200)));
  }
  if (!document.is_object()) {
    return Fail(ErrorCode::kMalformed, fmt::format("read {}: a JSON object is expected, not {}",
                                                   what, document.type_name()));
  }
  return document;
}

Result<std::string> ReadString(const nlohmann::json& object, const char* key,
                               std::string_view fallback) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) {
    return std::string(fallback);
  }
  if (!found->is_string()) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("\"{}\" must be a string, not {}", key, found->type_name()));
  }
  return found->get<std::string>();
}

Result<std::uint64_t> ReadUnsigned(const nlohmann::json& object, const char* key,
                                   std::uint64_t fallback, std::uint64_t max) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) {
    return fallback;
  }
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > max) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("\"{}\" must be an integer from 0 to {}", key, max));
  }
  return found->get<std::uint64_t>();
}

std::string WriteJson(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace mooncake::transfer
