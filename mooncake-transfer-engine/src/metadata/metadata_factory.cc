#include "mooncake-transfer-engine/src/metadata/metadata_factory.h"

#include <fmt/format.h>

#include "mooncake-common/src/base/text.h"
#include "mooncake-transfer-engine/src/metadata/http_metadata.h"
#include "mooncake-transfer-engine/src/metadata/p2p_metadata.h"

namespace mooncake::transfer {
namespace {

constexpr std::string_view kChoices =
    "give P2PHANDSHAKE, or the URL of an HTTP metadata server such as "
    "http://10.0.0.1:8080/metadata";

}  // namespace

Result<std::unique_ptr<Metadata>> MakeMetadata(const MetadataOptions& options, Reactor& reactor,
                                               Rng rng) {
  const std::string_view connection = options.connection;
  if (connection == "P2PHANDSHAKE") {
    return std::make_unique<P2pMetadata>(options, reactor, rng);
  }
  const std::size_t separator = connection.find("://");
  const std::string scheme = ToLowerAscii(connection.substr(0, separator));
  if (separator != std::string_view::npos && (scheme == "http" || scheme == "https")) {
    return HttpMetadata::Make(options, reactor, rng);
  }
  if (scheme == "etcd" || scheme == "redis" ||
      (separator == std::string_view::npos && ParseHostPort(connection))) {
    return Fail(ErrorCode::kNotSupported,
                fmt::format("use the metadata store {}: {} is not built yet; {}", Quote(connection),
                            scheme == "redis" ? "redis" : "etcd", kChoices));
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("use the metadata store {}: unknown; {}", Quote(connection), kChoices));
}

}  // namespace mooncake::transfer
