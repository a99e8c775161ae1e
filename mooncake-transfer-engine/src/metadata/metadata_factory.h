// From the connection string that users give to the backend that it names.
#pragma once

#include <memory>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-transfer-engine/src/metadata/metadata.h"
#include "mooncake-transfer-engine/src/metadata/metadata_options.h"

namespace mooncake::transfer {

// `reactor` must be running before Start() of what is returned and outlive it. `rng` chooses ports.
//
// Errors: kNotSupported for stores that are not built (etcd://, redis://, and a bare host:port,
// which means etcd); kInvalidArgument that quotes anything else.
[[nodiscard]] Result<std::unique_ptr<Metadata>> MakeMetadata(const MetadataOptions& options,
                                                             Reactor& reactor, Rng rng);

}  // namespace mooncake::transfer
