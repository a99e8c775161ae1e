// The engine's metadata server for programs that embed it: HttpMetadataServer.
#pragma once

// IWYU pragma: begin_exports
#include "mooncake-transfer-engine/src/metadata/http_metadata_server.h"
// IWYU pragma: end_exports
