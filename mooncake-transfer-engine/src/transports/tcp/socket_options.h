// What all sockets of the tcp transport are set to.
#pragma once

namespace mooncake::transfer {

// Keepalive, so that a peer that vanished without a word is noticed within about half a minute also
// on an idle connection; and retransmission at least once a second (where the kernel can), so that
// transfers go on at once when a broken path is mended. No time limit on unacknowledged data: a
// stopped peer may continue, and who waits for it has a limit of its own.
void SetTcpSocketOptions(int fd);

}  // namespace mooncake::transfer
