#include "mooncake-transfer-engine/src/metadata/http_metadata_server.h"

#include <fmt/format.h>

#include <utility>

#include "mooncake-common/src/base/text.h"

namespace mooncake::transfer {
namespace {

// An engine's address for RPC. Its key belongs to one engine at a time, so that a second one of the
// same name is noticed.
constexpr std::string_view kRpcMeta = "rpc_meta";

HttpResponse Text(int status, std::string body) {
  return {.status = status, .body = std::move(body)};
}

}  // namespace

void HttpMetadataServer::Attach(HttpServer& server) {
  server.Handle(Router::kAnyMethod, "/metadata",
                [this](const HttpRequest& request) { return Handle(request); });
  server.Handle("GET", "/health", [](const HttpRequest&) { return Text(200, "OK"); });
}

HttpResponse HttpMetadataServer::Handle(const HttpRequest& request) {
  const bool is_put = request.method == "PUT";
  const bool is_delete = request.method == "DELETE";
  if (!is_put && !is_delete && request.method != "GET" && request.method != "HEAD") {
    return {.status = 404};
  }
  const std::string key(request.Query("key").value_or(""));
  if (TrimAscii(key).empty()) {
    return Text(400, "Missing key parameter");
  }
  if (is_put) {
    return Put(key, request.body);
  }
  if (is_delete) {
    return Erase(key) ? Text(200, "metadata deleted") : Text(404, "metadata not found");
  }
  std::optional<std::string> value = Find(key);
  if (!value) {
    return Text(404, "metadata not found");
  }
  return {.content_type = "application/json", .body = *std::move(value)};
}

HttpResponse HttpMetadataServer::Put(const std::string& key, const std::string& value) {
  MutexLock lock(mutex_);
  const auto found = values_.find(key);
  if (found != values_.end() && key.contains(kRpcMeta)) {
    return found->second == value ? Text(200, "metadata unchanged")
                                  : Text(400, "Duplicate rpc_meta key not allowed");
  }
  const std::size_t replaced_bytes = found == values_.end() ? 0 : key.size() + found->second.size();
  const std::size_t bytes = bytes_ - replaced_bytes + key.size() + value.size();
  if (bytes > limits_.max_bytes || (found == values_.end() && values_.size() >= limits_.max_keys)) {
    return Text(507, fmt::format("metadata server is full: {} keys of at most {}, {} bytes of at "
                                 "most {}; delete the keys of engines that are gone",
                                 values_.size(), limits_.max_keys, bytes_, limits_.max_bytes));
  }
  values_.insert_or_assign(key, value);
  bytes_ = bytes;
  return Text(200, "metadata updated");
}

bool HttpMetadataServer::Erase(std::string_view key) {
  MutexLock lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) {
    return false;
  }
  bytes_ -= found->first.size() + found->second.size();
  values_.erase(found);
  return true;
}

std::optional<std::string> HttpMetadataServer::Find(std::string_view key) const {
  MutexLock lock(mutex_);
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t HttpMetadataServer::key_count() const {
  MutexLock lock(mutex_);
  return values_.size();
}

}  // namespace mooncake::transfer
