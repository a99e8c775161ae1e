#include "mooncake-common/src/net/http/router.h"

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/text.h"

namespace mooncake {

namespace {

// What `work` gives; a 500 when it throws. The log calls the request by `name()`.
template <typename Name, typename Work>
std::invoke_result_t<Work&> Guarded(const Name& name, Work&& work) {
  try {
    return work();
  } catch (const std::exception& exception) {
    MC_LOG_ERROR("handler of {} threw: {}", name(), exception.what());
  } catch (...) {
    MC_LOG_ERROR("handler of {} threw", name());
  }
  return HttpResponse{.status = 500, .body = "internal error\n"};
}

}  // namespace

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

HttpAnswer Router::Dispatch(const HttpRequest& request) {
  const auto name = [&] { return Quote(request.method) + " " + Quote(request.path); };
  HttpAnswer answer = Guarded(name, [&] { return Find(request)(request); });
  if (auto* steps = std::get_if<HttpSteps>(&answer)) {
    *steps = [steps = std::move(*steps), name = name()]() mutable {
      return Guarded([&] { return name; }, steps);
    };
  }
  return answer;
}

}  // namespace mooncake
