// The kinds of answers that the admin HTTP interface gives. Internal to admin_*.cc.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "mooncake-common/src/net/http/message.h"
#include "mooncake-store/src/protocol/error_code.h"

namespace mooncake::store {

using Json = nlohmann::ordered_json;  // Fields stay in the order in which they are published.

// Bytes of keys and names that are no UTF-8 are shown as U+FFFD.
[[nodiscard]] HttpResponse JsonReply(const Json& json, int status = 200);
// {"success":false,"error_code":...,"error_message":...}
[[nodiscard]] HttpResponse ErrorReply(int status, StoreCode code, std::string_view message);
[[nodiscard]] HttpResponse ErrorReply(int status, StoreCode code);  // With the code's name.

// text/plain; charset=utf-8
[[nodiscard]] HttpResponse TextReply(std::string text);
// text/plain; version=0.0.4, as metrics and lists have it.
[[nodiscard]] HttpResponse ListReply(std::string text, int status = 200);

}  // namespace mooncake::store
