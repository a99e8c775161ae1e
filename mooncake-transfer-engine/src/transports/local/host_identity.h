// Which running kernel and which pid namespace this process lives in: two processes that agree on
// both can name each other by pid.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "mooncake-common/src/base/result.h"

namespace mooncake::transfer {

struct HostIdentity {
  std::string boot_id;              // /proc/sys/kernel/random/boot_id, without its newline.
  std::uint64_t pid_namespace = 0;  // Inode of /proc/self/ns/pid.
  std::int32_t pid = 0;
};

// Reads it from /proc.
//
// Errors: kIo when /proc is not mounted or hides it; the local transport then stays out.
[[nodiscard]] Result<HostIdentity> ReadHostIdentity();

}  // namespace mooncake::transfer
