#include "mooncake-transfer-engine/tools/bench_flags.h"

#include <gflags/gflags.h>

DEFINE_string(local_server_name, "",
              "name under which this engine is known (default: this host's name)");
DEFINE_string(metadata_server, "192.168.3.77:2379",
              "P2PHANDSHAKE, or the URL of a metadata server");
DEFINE_string(mode, "initiator", "initiator | target");
DEFINE_string(protocol, "rdma",
              "transport to use; what this host lacks is replaced by what it has");
DEFINE_string(device_name, "mlx5_2", "comma-separated NICs to use; empty = all");
DEFINE_string(segment_id, "192.168.3.76", "the target's name, as it prints it");
DEFINE_uint64(buffer_size, 1ULL << 30, "bytes of the buffer");
DEFINE_uint64(block_size, 65536, "bytes a request");
DEFINE_int32(batch_size, 128, "requests a batch");
DEFINE_int32(duration, 10, "seconds");
DEFINE_int32(threads, 12, "threads that submit batches");
DEFINE_bool(auto_discovery, false, "find NICs by oneself (without effect where there are none)");
DEFINE_string(nic_priority_matrix, "",
              "NICs near each memory, as JSON or its path (without effect where there are none)");
DEFINE_string(report_unit, "GB", "GB | GiB | Gb | MB | MiB | Mb | KB | KiB | Kb");
DEFINE_uint32(report_precision, 2, "digits after the point");
DEFINE_bool(use_vram, true, "buffers in device memory, where there is a device");
DEFINE_int32(gpu_id, 0, "device of the buffer, where there is one; -1: all");
