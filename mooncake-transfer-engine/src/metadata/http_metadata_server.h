// The key-value server that engines publish their descriptors in, as it runs inside the master.
//
// Thread-safety: any thread; Handle() is called by the HttpServer's thread.
// Ownership:     must outlive the HttpServer it is attached to.
// Untrusted:     keys and values come from anybody who reaches the port; their number and bytes are
//                bounded, and one value by the HTTP server's limit on bodies.
// Source:        docs/formats/http_metadata.md.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/net/http/server.h"

namespace mooncake::transfer {

struct HttpMetadataLimits {
  std::size_t max_keys = 1'000'000;
  std::size_t max_bytes = std::size_t{1} << 30;  // Of keys and values together.
};

class HttpMetadataServer {
 public:
  explicit HttpMetadataServer(HttpMetadataLimits limits = {}) : limits_(limits) {}

  // Registers /metadata and /health. Before the HTTP server starts. A descriptor takes about 80
  // bytes a buffer, so give the server a limit on bodies for the largest engine that is expected.
  void Attach(HttpServer& server);

  // Answers a request to /metadata of any method.
  [[nodiscard]] HttpResponse Handle(const HttpRequest& request);

  // For the owner: what a client left behind can go without a request. True if the key was there.
  bool Erase(std::string_view key);
  [[nodiscard]] std::optional<std::string> Find(std::string_view key) const;
  [[nodiscard]] std::size_t key_count() const;

 private:
  [[nodiscard]] HttpResponse Put(const std::string& key, const std::string& value);

  const HttpMetadataLimits limits_;
  mutable Mutex mutex_;
  std::map<std::string, std::string, std::less<>> values_ MC_GUARDED_BY(mutex_);
  std::size_t bytes_ MC_GUARDED_BY(mutex_) = 0;
};

}  // namespace mooncake::transfer
