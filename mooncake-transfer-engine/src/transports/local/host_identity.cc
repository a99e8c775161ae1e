#include "mooncake-transfer-engine/src/transports/local/host_identity.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace mooncake::transfer {

Result<HostIdentity> ReadHostIdentity() {
  HostIdentity identity;
  std::ifstream boot_id("/proc/sys/kernel/random/boot_id");
  if (!(boot_id >> identity.boot_id)) {
    return Fail(ErrorCode::kIo, "read /proc/sys/kernel/random/boot_id: is /proc mounted?");
  }
  struct stat status{};
  if (::stat("/proc/self/ns/pid", &status) != 0) {
    return Fail(ErrorCode::kIo,
                fmt::format("stat /proc/self/ns/pid: {}; is /proc mounted?", std::strerror(errno)));
  }
  identity.pid_namespace = status.st_ino;
  identity.pid = ::getpid();
  return identity;
}

}  // namespace mooncake::transfer
