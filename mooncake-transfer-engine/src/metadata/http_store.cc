#include "mooncake-transfer-engine/src/metadata/http_store.h"

#include <fmt/format.h>

#include <utility>

#include "mooncake-common/src/base/text.h"
#include "mooncake-common/src/net/http/client.h"
#include "mooncake-common/src/net/http/url.h"
#include "mooncake-transfer-engine/src/metadata/descriptor_codec.h"

namespace mooncake::transfer {
namespace {

std::unexpected<Error> Unexpected(std::string_view method, std::string_view key,
                                  const std::string& url, const HttpResponse& response) {
  return Fail(ErrorCode::kRejected,
              fmt::format("{} {} at {}: the metadata server answers {} {}; is this its address?",
                          method, key, url, response.status, Quote(response.body)));
}

}  // namespace

Result<std::unique_ptr<HttpStore>> HttpStore::Open(std::string url) {
  MC_TRY(Url::Parse(url));
  return std::make_unique<HttpStore>(std::move(url));
}

HttpStore::HttpStore(std::string url)
    : url_(std::move(url)),
      client_(std::make_unique<HttpClient>(
          HttpClientOptions{.response_limits = {.header_bytes = std::size_t{64} << 10,
                                                .body_bytes = kMaxDescriptorBytes},
                            .max_idle_connections = 4})) {}
HttpStore::~HttpStore() = default;

Result<std::optional<std::string>> HttpStore::Get(std::string_view key) {
  MC_TRY_ASSIGN(HttpResponse response, client_->Get(WithQueryParameter(url_, "key", key)));
  if (response.status == 404) {
    return std::nullopt;
  }
  if (response.status != 200) {
    return Unexpected("GET", key, url_, response);
  }
  return std::move(response.body);
}

Result<void> HttpStore::Put(std::string_view key, std::string_view value) {
  MC_TRY_ASSIGN(const HttpResponse response,
                client_->Put(WithQueryParameter(url_, "key", key), "application/json", value));
  if (response.status == 400) {  // The key is never missing, so it is one that may not change.
    return Fail(ErrorCode::kAlreadyExists,
                fmt::format("PUT {} at {}: {}", key, url_, Quote(response.body)));
  }
  if (response.status != 200) {
    return Unexpected("PUT", key, url_, response);
  }
  return {};
}

Result<void> HttpStore::Delete(std::string_view key) {
  MC_TRY_ASSIGN(const HttpResponse response, client_->Delete(WithQueryParameter(url_, "key", key)));
  if (response.status != 200 && response.status != 404) {
    return Unexpected("DELETE", key, url_, response);
  }
  return {};
}

}  // namespace mooncake::transfer
