#include "mooncake-transfer-engine/tools/bench_flags.h"

#include <gflags/gflags.h>

DEFINE_string(local_server_name, "",
              "name under which this engine is known (default: this host's name)");
DEFINE_string(metadata_server, "P2PHANDSHAKE", "P2PHANDSHAKE, or the URL of a metadata server");
DEFINE_string(mode, "initiator", "initiator | target");
DEFINE_string(protocol, "tcp", "transport to use");
DEFINE_string(device_name, "", "comma-separated NICs to use; empty = all");
DEFINE_string(segment_id, "", "the target's name, as it prints it");
DEFINE_uint64(buffer_size, 1ULL << 30, "bytes of the buffer");
DEFINE_uint64(block_size, 65536, "bytes a request");
DEFINE_int32(batch_size, 128, "requests a batch");
DEFINE_int32(duration, 10, "seconds");
DEFINE_int32(threads, 12, "threads that submit batches");
DEFINE_bool(auto_discovery, false, "find NICs by oneself (without effect where there are none)");
DEFINE_string(nic_priority_matrix, "",
              "NICs near each memory, as JSON or its path (without effect where there are none)");
