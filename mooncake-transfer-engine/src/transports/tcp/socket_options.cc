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
  Set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  SetKeepalive(fd, KeepalivePace::kSeldom);
  Set(fd, IPPROTO_TCP, kTcpRtoMaxMs, 1000);
}

void SetKeepalive(int fd, KeepalivePace pace) {
  const bool often = pace == KeepalivePace::kOften;
  Set(fd, IPPROTO_TCP, TCP_KEEPINTVL, often ? 1 : 5);
  Set(fd, IPPROTO_TCP, TCP_KEEPIDLE, often ? 1 : 15);  // Begins anew with both.
}

bool HostIsSilent(int fd) {
  // Each is sent when its forerunners have not been answered for a while: 1 s for a request to
  // connect, doubled where kernels still do; 0.2, 0.4, 0.8 and (at most) 1.6 s for data.
  constexpr std::uint8_t kConnects = 2;
  constexpr std::uint8_t kRetransmits = 4;
  constexpr std::uint8_t kProbes = 3;  // A second apart.
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
    return false;
  }
  return info.tcpi_retransmits >= (info.tcpi_state == TCP_SYN_SENT ? kConnects : kRetransmits) ||
         info.tcpi_probes >= kProbes;
}

}  // namespace mooncake::transfer
