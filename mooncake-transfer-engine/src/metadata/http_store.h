// Keys and values on an HTTP metadata server: docs/formats/http_metadata.md.
//
// Blocking:      each call, up to 3 s.
// Thread-safety: any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/result.h"

namespace mooncake {
class HttpClient;
}

namespace mooncake::transfer {

class HttpStore {
 public:
  // `url` is the whole base, usually ending in "/metadata". Errors: kInvalidArgument.
  [[nodiscard]] static Result<std::unique_ptr<HttpStore>> Open(std::string url);
  explicit HttpStore(std::string url);
  ~HttpStore();

  // Errors of all calls: kDns, kUnavailable, kTimeout: the server does not answer; kRejected: it
  // answers something else than success. The message names method, key and server.

  // The value; nullopt if there is none.
  [[nodiscard]] Result<std::optional<std::string>> Get(std::string_view key);

  // Errors also: kAlreadyExists when the server keeps the value it has (rpc_meta only).
  [[nodiscard]] Result<void> Put(std::string_view key, std::string_view value);

  // A missing key is no error.
  [[nodiscard]] Result<void> Delete(std::string_view key);

  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  const std::string url_;
  const std::unique_ptr<HttpClient> client_;
};

}  // namespace mooncake::transfer
