#include "mooncake-transfer-engine/src/transports/local/peer_process.h"

#include <fmt/core.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace mooncake::transfer {
namespace {

void* AsPointer(std::uint64_t address) {
  // Never dereferenced here: the kernel looks it up in the peer's address space.
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// A list of iovecs in which neighbours are joined: fewer entries are cheaper for the kernel.
class JoinedList {
 public:
  void Add(void* base, std::size_t length) {
    if (count_ > 0) {
      iovec& last = entries_[count_ - 1];
      if (static_cast<std::byte*>(last.iov_base) + last.iov_len == base) {
        last.iov_len += length;
        return;
      }
    }
    entries_[count_++] = {base, length};
  }
  [[nodiscard]] const iovec* data() const { return entries_.data(); }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  std::array<iovec, PeerProcess::kMaxRanges + 1> entries_;  // The first `count_` are set.
  std::size_t count_ = 0;
};

// Whether one byte at `address` of process `pid` can be read.
bool Readable(pid_t pid, std::uint64_t address) {
  char byte = 0;
  const iovec here{&byte, 1};
  const iovec there{AsPointer(address), 1};
  return ::process_vm_readv(pid, &here, 1, &there, 1, 0) == 1;
}

Error Gone(pid_t pid, std::string_view why) {
  return {ErrorCode::kUnavailable, fmt::format("reach process {} on this host: {}", pid, why)};
}

Error GoneByErrno(pid_t pid, int error) {
  switch (error) {
    case ESRCH:
      return Gone(pid, "it has exited");
    case EPERM:
      return Gone(pid,
                  "not permitted; run both under one user, or give this one CAP_SYS_PTRACE (see "
                  "kernel.yama.ptrace_scope)");
    case ENOSYS:
      return Gone(pid, "this kernel or sandbox has no process_vm_readv");
    default:
      return Gone(pid, std::strerror(error));
  }
}

}  // namespace

Result<PeerProcess> PeerProcess::Prove(const PeerExtension& peer, const HostIdentity& self) {
  if (peer.host_id.empty() || peer.host_id != self.boot_id) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("reach process {} locally: it runs on another host", peer.pid));
  }
  if (peer.pid_namespace != self.pid_namespace) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("reach process {} locally: it runs in another pid namespace "
                            "(share it between the containers to be faster)",
                            peer.pid));
  }
  if (peer.pid <= 0 || peer.nonce == 0) {
    return Fail(ErrorCode::kUnavailable, "reach the peer locally: it announced no pid and nonce");
  }
  PeerProcess process(peer.pid, peer.nonce, peer.nonce_address);
  MC_TRY(process.Check());
  return process;
}

Result<void> PeerProcess::Check() const {
  if (Vouched()) {
    return {};
  }
  std::uint64_t found = 0;
  const iovec here{&found, sizeof found};
  const iovec there{AsPointer(nonce_address_), sizeof found};
  const ssize_t got = ::process_vm_readv(pid_, &here, 1, &there, 1, 0);
  if (got < 0 && errno != EFAULT) {
    return std::unexpected(GoneByErrno(pid_, errno));
  }
  if (got != static_cast<ssize_t>(sizeof found) || found != nonce_) {
    return std::unexpected(
        Gone(pid_, "the nonce does not match; the peer stopped or changed its registrations"));
  }
  return {};
}

PeerProcess::Progress PeerProcess::Move(Opcode opcode, std::span<const MemoryRange> ranges) const {
  MC_CHECK(ranges.size() <= kMaxRanges);
  const bool reads = opcode == Opcode::kRead;
  JoinedList here;
  JoinedList there;
  std::uint64_t found = 0;
  const bool vouched = Vouched();
  const bool fetches_nonce = reads && !vouched;
  if (fetches_nonce) {
    here.Add(&found, sizeof found);
    there.Add(AsPointer(nonce_address_), sizeof found);
  } else if (!vouched) {
    if (Result<void> proof = Check(); !proof) {
      return {0, std::move(proof).error()};
    }
  }
  std::uint64_t wanted = 0;
  for (const MemoryRange& range : ranges) {
    here.Add(range.local, range.length_bytes);
    there.Add(AsPointer(range.remote_address), range.length_bytes);
    wanted += range.length_bytes;
  }

  const ssize_t result =
      reads ? ::process_vm_readv(pid_, here.data(), here.size(), there.data(), there.size(), 0)
            : ::process_vm_writev(pid_, here.data(), here.size(), there.data(), there.size(), 0);
  const int error = errno;
  if (result < 0 && error != EFAULT && error != EINVAL && error != ENOMEM) {
    return {0, GoneByErrno(pid_, error)};
  }
  std::uint64_t moved = result < 0 ? 0 : static_cast<std::uint64_t>(result);
  if (vouched) {
    if (Result<void> proof = Check(); !proof) {
      return {0, std::move(proof).error()};
    }
  }
  if (fetches_nonce) {
    if (moved < sizeof found || found != nonce_) {
      Result<void> proof = Check();
      if (!proof) {
        return {0, std::move(proof).error()};
      }
      moved = 0;  // The call failed before it began: some entry is not even an address.
    } else {
      moved -= sizeof found;
    }
  }
  if (moved == wanted) {
    return {moved, std::nullopt};
  }
  std::uint64_t before = 0;
  for (const MemoryRange& range : ranges) {
    if (moved < before + range.length_bytes) {
      return {moved, Diagnose(opcode, result < 0 ? error : EFAULT, range, moved - before)};
    }
    before += range.length_bytes;
  }
  return {0, Error{ErrorCode::kInternal, "the kernel moved more bytes than were asked for"}};
}

Error PeerProcess::Diagnose(Opcode opcode, int error, const MemoryRange& range,
                            std::uint64_t offset_bytes) const {
  if (Result<void> proof = Check(); !proof) {
    return std::move(proof).error();
  }
  if (error == ENOMEM) {
    return {ErrorCode::kExhausted, "process_vm: the kernel has no memory for this transfer"};
  }
  const bool reads = opcode == Opcode::kRead;
  const std::uint64_t local_address = reinterpret_cast<std::uintptr_t>(range.local) + offset_bytes;
  const std::uint64_t remote_address = range.remote_address + offset_bytes;
  // Only readability can be asked without side effects, so the source's side is asked.
  const bool remote_is_bad =
      reads ? !Readable(pid_, remote_address) : Readable(::getpid(), local_address);
  if (remote_is_bad) {
    return {ErrorCode::kRejected,
            fmt::format("{} {} bytes at {:#x} of process {}: no such memory there at {:#x}",
                        reads ? "read" : "write", range.length_bytes, range.remote_address, pid_,
                        remote_address)};
  }
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} {} bytes {} local memory at {:#x}: not mapped, or not {}, at {:#x}",
                      reads ? "read" : "write", range.length_bytes, reads ? "into" : "from",
                      reinterpret_cast<std::uintptr_t>(range.local),
                      reads ? "writable" : "readable", local_address)};
}

}  // namespace mooncake::transfer
