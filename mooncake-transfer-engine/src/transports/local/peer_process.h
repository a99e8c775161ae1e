// Another process of this host, reached through process_vm_readv and process_vm_writev.
//
// A pid alone is no identity: it is used again after its owner died, and names somebody else in
// another namespace. So each use proves the peer's nonce: a number that stands at a known address
// of the right process only, and that the peer takes away when it stops serving. Where the peer
// shares the page with it (presence.h), the page is looked at before and after each call: the
// process that serves after it had its pid all the time. Else a read fetches the nonce in the same
// system call as its bytes, hence from the very same address space, and a write reads it just
// before; that the peer dies and its pid is used again between these two calls is the one case left
// open (pids are given out in turn, so it takes all of them to be used up in under a microsecond).
//
// Thread-safety: Trust() before all else; every other method from any thread. No call waits for the
// peer: a stopped (SIGSTOP) peer's memory is moved all the same, a dead one's is an error.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/metadata/segment_descriptor.h"
#include "mooncake-transfer-engine/src/transports/local/host_identity.h"
#include "mooncake-transfer-engine/src/transports/local/presence.h"
#include "mooncake-transfer-engine/src/transports/slice.h"

namespace mooncake::transfer {

// Equal lengths of memory here and there. Without initialisers, so that a long array of them on the
// stack costs nothing until it is filled.
struct MemoryRange {
  std::byte* local;
  std::uint64_t remote_address;
  std::uint64_t length_bytes;  // Never zero.
};

class PeerProcess {
 public:
  // Ranges that one Move() takes: with the nonce they fill the kernel's IOV_MAX.
  static constexpr std::size_t kMaxRanges = 1023;

  // Proves that `peer` is the process that announced `peer`, on this host.
  //
  // Errors: kUnavailable with the reason: another host or namespace, gone, not permitted.
  [[nodiscard]] static Result<PeerProcess> Prove(const PeerExtension& peer,
                                                 const HostIdentity& self);

  // From now on the peer's page is asked before the kernel is. It outlives this.
  void Trust(const PresencePage* presence) { presence_ = presence; }

  // Proves the nonce again. Errors: kUnavailable.
  [[nodiscard]] Result<void> Check() const;

  // How far one system call came.
  struct Progress {
    std::uint64_t moved_bytes = 0;  // A prefix of the ranges, in order, is in place.
    // What stopped it, if it stopped short: kUnavailable concerns the whole peer, all else only the
    // range in which the prefix ends.
    std::optional<Error> stopped;
  };

  // Moves at most kMaxRanges ranges, 1 GiB in all, by one system call (kRead: peer to here).
  // Neighbouring ranges are joined. Bytes after the prefix may have been written too when the peer
  // is lost on the way.
  [[nodiscard]] Progress Move(Opcode opcode, std::span<const MemoryRange> ranges) const;

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  PeerProcess(pid_t pid, std::uint64_t nonce, std::uint64_t nonce_address)
      : pid_(pid), nonce_(nonce), nonce_address_(nonce_address) {}

  [[nodiscard]] bool Vouched() const { return presence_ != nullptr && presence_->Vouches(nonce_); }
  [[nodiscard]] Error Diagnose(Opcode opcode, int error, const MemoryRange& range,
                               std::uint64_t offset_bytes) const;

  pid_t pid_;
  std::uint64_t nonce_;
  std::uint64_t nonce_address_;
  const PresencePage* presence_ = nullptr;
};

}  // namespace mooncake::transfer
