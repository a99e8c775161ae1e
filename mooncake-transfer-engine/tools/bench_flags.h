// The flags that transfer_engine_bench and transfer_engine_validator share, with the values as
// their users know them.
#pragma once

#include <gflags/gflags_declare.h>

DECLARE_string(local_server_name);
DECLARE_string(metadata_server);
DECLARE_string(mode);
DECLARE_string(protocol);
DECLARE_string(device_name);
DECLARE_string(segment_id);
DECLARE_uint64(buffer_size);
DECLARE_uint64(block_size);
DECLARE_int32(batch_size);
DECLARE_int32(duration);
DECLARE_int32(threads);
DECLARE_string(report_unit);
DECLARE_uint32(report_precision);
