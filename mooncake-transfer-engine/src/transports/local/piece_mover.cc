#include "mooncake-transfer-engine/src/transports/local/piece_mover.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace mooncake::transfer {
namespace {

std::uint64_t AddressOf(const std::byte* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// Has the kernel map the pages that a write is about to need. A read brings in all pages of an
// aligned block that are there already, a write only its own, at six times the cost; and what a
// read has mapped of shared memory may be written to. Pages that do not exist yet are made by this.
void MapByReading(const std::byte* to, std::uint64_t length_bytes) {
  constexpr std::uint64_t kBlockBytes = 64U << 10U;  // fault_around_bytes, by default.
  const std::byte* const end = to + length_bytes;
  while (to < end) {
    static_cast<void>(*static_cast<const volatile std::byte*>(to));
    to += kBlockBytes - AddressOf(to) % kBlockBytes;
  }
}

// The peer's buffers, and the page that says whether it serves.
std::vector<BufferDescriptor> SharedBy(const SegmentDescriptor& peer) {
  std::vector<BufferDescriptor> buffers = peer.buffers;
  if (peer.extension && peer.extension->nonce_fd >= 0) {
    buffers.push_back({.name = peer.name,
                       .address = peer.extension->nonce_address,
                       .length_bytes = sizeof(PresencePage),
                       .shared = SharedMemory{.fd = peer.extension->nonce_fd}});
  }
  return buffers;
}

// Remembers the last region: neighbours in a batch mostly lie in the same one.
class LastPin {
 public:
  explicit LastPin(RegionTable& regions) : regions_(regions) {}

  [[nodiscard]] bool Covers(std::uint64_t address, std::uint64_t length_bytes) {
    if (pin_) {
      const Region& region = pin_.region();
      const AddressRange range{.begin = region.address,
                               .end = region.address + region.length_bytes};
      if (range.Contains(address, length_bytes)) {
        return true;
      }
    }
    pin_ = regions_.Pin(address, length_bytes, RegionTable::Access::kLocal);
    return static_cast<bool>(pin_);
  }

 private:
  RegionTable& regions_;
  RegionPin pin_;
};

}  // namespace

// The pieces that go through the kernel: collected while the direction stays the same, then moved
// by one call.
class PieceMover::Run {
 public:
  Run(const PeerProcess& peer, std::vector<PieceFailure>& failures)
      : peer_(peer), failures_(failures) {}

  void Add(std::size_t index, const Piece& piece) {
    if (count_ > 0 && (piece.slice->opcode != opcode_ || count_ == ranges_.size())) {
      Flush();
    }
    opcode_ = piece.slice->opcode;
    indexes_[count_] = index;
    ranges_[count_] = {.local = piece.slice->local + piece.offset_bytes,
                       .remote_address = piece.slice->remote_address + piece.offset_bytes,
                       .length_bytes = piece.length_bytes};
    ++count_;
  }

  void Flush() {
    std::size_t next = 0;
    while (next < count_) {
      if (lost_) {
        failures_.push_back({indexes_[next++], *lost_});
        continue;
      }
      PeerProcess::Progress progress =
          peer_.Move(opcode_, std::span(ranges_).subspan(next, count_ - next));
      if (!progress.stopped) {
        break;
      }
      while (progress.moved_bytes >= ranges_[next].length_bytes) {
        progress.moved_bytes -= ranges_[next++].length_bytes;
      }
      if (progress.stopped->code == ErrorCode::kUnavailable) {
        lost_ = std::move(progress.stopped);
      } else {
        failures_.push_back({indexes_[next++], *std::move(progress.stopped)});
      }
    }
    count_ = 0;
  }

  // The peer is gone: whatever was or will be added fails.
  void Lose(Error why) { lost_ = std::move(why); }
  [[nodiscard]] bool lost() const { return lost_.has_value(); }

 private:
  const PeerProcess& peer_;
  std::vector<PieceFailure>& failures_;
  std::optional<Error> lost_;
  Opcode opcode_ = Opcode::kRead;
  std::size_t count_ = 0;
  std::array<std::size_t, PeerProcess::kMaxRanges> indexes_;
  std::array<MemoryRange, PeerProcess::kMaxRanges> ranges_;
};

PieceMover::PieceMover(PeerProcess peer, const SegmentDescriptor& descriptor, RegionTable& regions,
                       bool use_shared_memory)
    : peer_(peer),
      is_self_(peer.pid() == ::getpid()),
      regions_(regions),
      views_(peer.pid(), use_shared_memory && !is_self_ ? SharedBy(descriptor)
                                                        : std::vector<BufferDescriptor>{}) {
  if (descriptor.extension) {
    const std::byte* const page =
        views_.Find(descriptor.extension->nonce_address, sizeof(PresencePage));
    peer_.Trust(reinterpret_cast<const PresencePage*>(page));
  }
}

std::vector<PieceFailure> PieceMover::Move(std::span<const Piece> pieces) {
  std::vector<PieceFailure> failures;
  Run run(peer_, failures);
  LastPin local_pin(regions_);
  LastPin remote_pin(regions_);  // Of this process too, when it talks to itself.
  bool proven = false;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    std::byte* const local = piece.slice->local + piece.offset_bytes;
    const std::uint64_t remote = piece.slice->remote_address + piece.offset_bytes;
    std::byte* there = nullptr;
    if (!is_self_) {
      there = views_.Find(remote, piece.length_bytes);
    } else if (remote_pin.Covers(remote, piece.length_bytes)) {
      there = reinterpret_cast<std::byte*>(remote);  // NOLINT(performance-no-int-to-ptr)
    }
    if (there == nullptr || !local_pin.Covers(AddressOf(local), piece.length_bytes)) {
      run.Add(i, piece);
      continue;
    }
    if (!proven && !run.lost()) {
      proven = true;
      if (Result<void> proof = peer_.Check(); !proof) {
        run.Lose(std::move(proof).error());
      }
    }
    if (run.lost()) {
      run.Add(i, piece);
      continue;
    }
    // memmove: a process that talks to itself may name overlapping ranges.
    if (piece.slice->opcode == Opcode::kRead) {
      std::memmove(local, there, piece.length_bytes);
    } else {
      if (!is_self_) {
        MapByReading(there, piece.length_bytes);
      }
      std::memmove(there, local, piece.length_bytes);
    }
  }
  run.Flush();
  std::ranges::sort(failures, {}, &PieceFailure::index);
  return failures;
}

}  // namespace mooncake::transfer
