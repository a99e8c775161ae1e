#include "mooncake-store/src/server/admin_reply.h"

#include "mooncake-common/src/metrics/registry.h"

namespace mooncake::store {

HttpResponse JsonReply(const Json& json, int status) {
  return {.status = status,
          .content_type = "application/json; charset=utf-8",
          .body = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

HttpResponse ErrorReply(int status, StoreCode code, std::string_view message) {
  return JsonReply({{"success", false}, {"error_code", ToInt(code)}, {"error_message", message}},
                   status);
}

HttpResponse ErrorReply(int status, StoreCode code) {
  return ErrorReply(status, code, StoreCodeName(code));
}

HttpResponse TextReply(std::string text) {
  return {.content_type = "text/plain; charset=utf-8", .body = std::move(text)};
}

HttpResponse ListReply(std::string text, int status) {
  return {
      .status = status, .content_type = std::string(kMetricsContentType), .body = std::move(text)};
}

}  // namespace mooncake::store
