// What all sockets of the tcp transport are set to.
#pragma once

#include <cstdint>

namespace mooncake::transfer {

// How soon the kernel asks a silent peer's kernel whether it is there, on a connection on which
// nothing else is to be sent.
enum class KeepalivePace : std::uint8_t {
  kSeldom,  // After 15 s; the connection ends after another 15 s without an answer.
  kOften,   // Each second.
};

// Keepalive, so that a peer that vanished without a word is noticed within about half a minute also
// on an idle connection; and retransmission at least once a second (where the kernel can), so that
// transfers go on at once when a broken path is mended. No time limit on unacknowledged data: a
// stopped peer may continue, and who waits for it has a limit of its own.
void SetTcpSocketOptions(int fd);

void SetKeepalive(int fd, KeepalivePace pace);

// Whether the peer's kernel has left several packets in a row unanswered: for 2.4 to 3 s, or 2 to
// 3 s while connecting; where nothing is to be sent, 3 s after SetKeepalive(kOften). The kernel of
// a peer that is stopped, or that does not read, answers.
[[nodiscard]] bool HostIsSilent(int fd);

}  // namespace mooncake::transfer
