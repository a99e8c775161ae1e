#include "mooncake-transfer-engine/src/transports/tcp/socket_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace mooncake::transfer {
namespace {

constexpr int kTcpRtoMaxMs = 44;  // TCP_RTO_MAX_MS of Linux 6.15; absent from older headers.

void Set(int fd, int level, int name, int value) {
  // An option that this kernel lacks only means that a fault is noticed later.
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

void SetTcpSocketOptions(int fd) {
  Set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  Set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  Set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  Set(fd, IPPROTO_TCP, kTcpRtoMaxMs, 1000);
}

}  // namespace mooncake::transfer
