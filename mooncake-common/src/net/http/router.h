// Which handler answers a request.
//
// Thread-safety: set up first, then Dispatch() from one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "mooncake-common/src/net/http/message.h"

namespace mooncake {

// The rest of a long answer's work, asked again and again, others being served between, until it
// gives the answer. May be dropped before, with its connection.
using HttpSteps = std::move_only_function<std::optional<HttpResponse>()>;
using HttpAnswer = std::variant<HttpResponse, HttpSteps>;
using HttpHandler = std::move_only_function<HttpAnswer(const HttpRequest&)>;

class Router {
 public:
  // Registered as a method, takes the methods that this path has no handler for.
  static constexpr std::string_view kAnyMethod = "*";

  Router();

  // Both compared exactly, `path` percent-decoded. A later handler replaces an earlier one.
  void Handle(std::string_view method, std::string_view path, HttpHandler handler);

  // Takes what no other handler takes. At first that is an empty 404.
  void SetFallback(HttpHandler handler) { fallback_ = std::move(handler); }

  // HEAD goes to GET's handler where it has none of its own. A handler that throws gives a 500
  // without the exception's text, which is logged; so does a step.
  [[nodiscard]] HttpAnswer Dispatch(const HttpRequest& request);

 private:
  HttpHandler& Find(const HttpRequest& request);

  using Methods = std::map<std::string, HttpHandler, std::less<>>;
  std::map<std::string, Methods, std::less<>> routes_;
  HttpHandler fallback_;
};

}  // namespace mooncake
