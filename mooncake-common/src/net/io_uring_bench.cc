// io_uring beside plain calls, for the two things that a lane does: ask and spin for the answer,
// and send much. The peer is the same in both: a thread that reads and writes with plain calls.
//
// docs/design/lanes.md draws the conclusions. The kernel's interface is used as it is
// (io_uring(7)): a library would add nothing to two operations. Where io_uring is forbidden, its
// cases say so.
#include <benchmark/benchmark.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/latency_report.h"
#include "mooncake-common/src/net/loopback_peer.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {
namespace {

using Message = std::array<std::byte, 8>;
constexpr std::size_t kPieceBytes = 64U << 10U;
constexpr std::size_t kPieces = 128;

// The submission and the completion queue that this process shares with the kernel.
class Ring {
 public:
  // `flags`: IORING_SETUP_*. Nothing where the kernel, or the container, forbids it.
  static std::optional<Ring> Create(unsigned flags) {
    io_uring_params params{};
    params.flags = flags;
    params.sq_thread_idle = 1000;  // Milliseconds.
    UniqueFd fd(static_cast<int>(::syscall(SYS_io_uring_setup, kPieces, &params)));
    if (!fd || (params.features & IORING_FEAT_SINGLE_MMAP) == 0) {
      return std::nullopt;
    }
    return Ring(std::move(fd), params);
  }

  // The next entry to fill in; it counts from Submit() on.
  io_uring_sqe& Next() {
    io_uring_sqe& entry = entries_[(*sq_tail_ + added_) & sq_mask_];
    entry = {};
    ++added_;
    return entry;
  }
  void Submit() {
    for (unsigned i = 0; i < added_; ++i) {
      const unsigned index = (*sq_tail_ + i) & sq_mask_;
      sq_array_[index] = index;
    }
    std::atomic_ref(*sq_tail_).store(*sq_tail_ + added_, std::memory_order_release);
    const unsigned count = std::exchange(added_, 0);
    if (!polled_) {
      MC_CHECK(::syscall(SYS_io_uring_enter, fd_.get(), count, 0, 0, nullptr, 0) ==
               static_cast<long>(count));
      return;
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if ((std::atomic_ref(*sq_flags_).load(std::memory_order_relaxed) & IORING_SQ_NEED_WAKEUP) !=
        0) {
      ::syscall(SYS_io_uring_enter, fd_.get(), 0, 0, IORING_ENTER_SQ_WAKEUP, nullptr, 0);
    }
  }
  // Spins for the next completion and returns its result: bytes, or -errno.
  int Complete() {
    SpinWait spin(kEndlessSpin);
    while (std::atomic_ref(*cq_tail_).load(std::memory_order_acquire) == *cq_head_) {
      (void)spin.Turn();
    }
    const int result = completions_[*cq_head_ & cq_mask_].res;
    std::atomic_ref(*cq_head_).store(*cq_head_ + 1, std::memory_order_release);
    return result;
  }

 private:
  Ring(UniqueFd fd, const io_uring_params& params)
      : fd_(std::move(fd)), polled_((params.flags & IORING_SETUP_SQPOLL) != 0) {
    // Left mapped: a benchmark makes few of them.
    std::byte* const rings =
        Map(std::max<std::size_t>(params.sq_off.array + params.sq_entries * sizeof(unsigned),
                                  params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe)),
            IORING_OFF_SQ_RING);
    sq_tail_ = At<unsigned>(rings, params.sq_off.tail);
    sq_flags_ = At<unsigned>(rings, params.sq_off.flags);
    sq_array_ = At<unsigned>(rings, params.sq_off.array);
    sq_mask_ = *At<unsigned>(rings, params.sq_off.ring_mask);
    cq_head_ = At<unsigned>(rings, params.cq_off.head);
    cq_tail_ = At<unsigned>(rings, params.cq_off.tail);
    cq_mask_ = *At<unsigned>(rings, params.cq_off.ring_mask);
    completions_ = At<io_uring_cqe>(rings, params.cq_off.cqes);
    entries_ = At<io_uring_sqe>(Map(params.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES), 0);
  }
  std::byte* Map(std::size_t bytes, std::uint64_t offset) {
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                                fd_.get(), static_cast<off_t>(offset));
    MC_CHECK(mapped != MAP_FAILED);
    return static_cast<std::byte*>(mapped);
  }
  template <typename T>
  static T* At(std::byte* base, unsigned offset) {
    return reinterpret_cast<T*>(base + offset);
  }

  UniqueFd fd_;
  bool polled_;
  unsigned added_ = 0;
  unsigned* sq_tail_ = nullptr;
  unsigned* sq_flags_ = nullptr;
  unsigned* sq_array_ = nullptr;
  unsigned sq_mask_ = 0;
  unsigned* cq_head_ = nullptr;
  unsigned* cq_tail_ = nullptr;
  unsigned cq_mask_ = 0;
  io_uring_cqe* completions_ = nullptr;
  io_uring_sqe* entries_ = nullptr;
};

void Echo(int fd, const std::stop_token& stop) {
  for (Message message{}; SpinRead(fd, message, stop);) {
    (void)SocketWrite(fd, std::span<const std::byte>(message));
  }
}

// Answers a byte for each batch.
void Swallow(int fd, const std::stop_token& stop) {
  std::vector<std::byte> batch(kPieces * kPieceBytes);
  while (SpinRead(fd, batch, stop)) {
    (void)SocketWrite(fd, std::span<const std::byte>(batch).first(1));
  }
}

void BM_AskByCalls(benchmark::State& state) {
  LoopbackPeer peer(&Echo);
  LatencyReport report;
  Message message{};
  for (auto _ : state) {
    report.Time([&] {
      (void)SocketWrite(peer.client.get(), std::span<const std::byte>(message));
      SpinRead(peer.client.get(), message);
    });
  }
  report.Publish(state);
}
BENCHMARK(BM_AskByCalls)->UseRealTime();

void Prepare(io_uring_sqe& entry, std::uint8_t operation, int fd,
             std::span<const std::byte> bytes) {
  entry.opcode = operation;
  entry.fd = fd;
  entry.addr = reinterpret_cast<std::uintptr_t>(bytes.data());
  entry.len = static_cast<std::uint32_t>(bytes.size());
  entry.msg_flags = MSG_WAITALL;
}

// Argument: whether a thread of the kernel takes the submissions, so that no call is made.
std::optional<Ring> RingFor(benchmark::State& state) {
  auto ring = Ring::Create(state.range(0) != 0 ? IORING_SETUP_SQPOLL : 0U);
  if (!ring) {
    state.SkipWithError("io_uring is not to be had here");
  }
  return ring;
}

void BM_AskByRing(benchmark::State& state) {
  auto ring = RingFor(state);
  if (!ring) {
    return;
  }
  LoopbackPeer peer(&Echo);
  LatencyReport report;
  Message message{};
  for (auto _ : state) {
    report.Time([&] {
      Prepare(ring->Next(), IORING_OP_SEND, peer.client.get(), message);
      Message answer{};
      Prepare(ring->Next(), IORING_OP_RECV, peer.client.get(), answer);
      ring->Submit();
      MC_CHECK(ring->Complete() == static_cast<int>(message.size()));
      MC_CHECK(ring->Complete() == static_cast<int>(answer.size()));
    });
  }
  report.Publish(state);
}
BENCHMARK(BM_AskByRing)->ArgName("kernel_thread")->Arg(0)->Arg(1)->UseRealTime();

void ReportBytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kPieces * kPieceBytes));
}

// As the tcp transport sends: as many pieces a call as it takes, and again when there is room.
void BM_SendByCalls(benchmark::State& state) {
  LoopbackPeer peer(&Swallow);
  const std::vector<std::byte> batch(kPieces * kPieceBytes);
  Message answer{};
  for (auto _ : state) {
    SpinWait spin(kEndlessSpin);
    for (std::span<const std::byte> left = batch; !left.empty();) {
      const IoOutcome sent = SocketWrite(peer.client.get(), left);
      if (sent.kind == IoOutcome::Kind::kMoved) {
        left = left.subspan(sent.bytes);
        spin.Restart();
      } else {
        (void)spin.Turn();
      }
    }
    SpinRead(peer.client.get(), std::span(answer).first(1));
  }
  ReportBytes(state);
}
BENCHMARK(BM_SendByCalls)->UseRealTime();

void BM_SendByRing(benchmark::State& state) {
  auto ring = RingFor(state);
  if (!ring) {
    return;
  }
  LoopbackPeer peer(&Swallow);
  const std::vector<std::byte> batch(kPieces * kPieceBytes);
  Message answer{};
  for (auto _ : state) {
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      io_uring_sqe& entry = ring->Next();
      Prepare(entry, IORING_OP_SEND, peer.client.get(),
              std::span(batch).subspan(piece * kPieceBytes, kPieceBytes));
      entry.flags = piece + 1 < kPieces ? IOSQE_IO_LINK : 0;  // In their order.
    }
    ring->Submit();
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      MC_CHECK(ring->Complete() == static_cast<int>(kPieceBytes));
    }
    SpinRead(peer.client.get(), std::span(answer).first(1));
  }
  ReportBytes(state);
}
BENCHMARK(BM_SendByRing)->ArgName("kernel_thread")->Arg(0)->Arg(1)->UseRealTime();

}  // namespace
}  // namespace mooncake
