#include "mooncake-common/src/net/http/router.h"

#include <exception>
#include <utility>

#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/text.h"

namespace mooncake {

Router::Router() : fallback_([](const HttpRequest&) { return HttpResponse{.status = 404}; }) {}

void Router::Handle(std::string_view method, std::string_view path, HttpHandler handler) {
  routes_[std::string(path)].insert_or_assign(std::string(method), std::move(handler));
}

HttpHandler& Router::Find(const HttpRequest& request) {
  const auto route = routes_.find(request.path);
  if (route == routes_.end()) {
    return fallback_;
  }
  Methods& methods = route->second;
  auto found = methods.find(request.method);
  if (found == methods.end() && request.method == "HEAD") {
    found = methods.find("GET");
  }
  if (found == methods.end()) {
    found = methods.find(kAnyMethod);
  }
  return found == methods.end() ? fallback_ : found->second;
}

HttpResponse Router::Dispatch(const HttpRequest& request) {
  try {
    return Find(request)(request);
  } catch (const std::exception& exception) {
    MC_LOG_ERROR("handler of {} {} threw: {}", Quote(request.method), Quote(request.path),
                 exception.what());
  } catch (...) {
    MC_LOG_ERROR("handler of {} {} threw", Quote(request.method), Quote(request.path));
  }
  return {.status = 500, .body = "internal error\n"};
}

}  // namespace mooncake
