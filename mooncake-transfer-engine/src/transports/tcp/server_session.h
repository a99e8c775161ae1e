// One connection of the data port, seen from the side that owns the memory: takes requests of all
// three protocols in any mixture, says where their bytes go to and come from.
//
// Requests are served one after another. Payload goes from the socket into registered memory and
// back without a copy between; only what arrived together with a request's head is copied once.
//
// Sans-IO: no descriptor and no clock. The owner reads into what FillInput() lists, tells
// OnInput(), and the same for output. The region table is its authority on addresses: a region is
// pinned for the time between Fill and On, never while the peer is waited for, so a silent peer
// cannot keep memory from being unregistered. A region removed in the middle of its transfer ends
// the session.
//
// Bounds: 16 KiB of input, 1024 extents, answers to 256 requests and one more. When they are
// reached it wants no input until the peer has read. Thread-safety: none; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/engine/region_table.h"
#include "mooncake-transfer-engine/src/engine/remote_check.h"
#include "mooncake-transfer-engine/src/transports/tcp/iov_list.h"
#include "mooncake-transfer-engine/src/transports/tcp/tcp_format.h"

namespace mooncake::transfer {

class ServerSession {
 public:
  explicit ServerSession(RegionTable& regions, RemoteCheck check = RemoteCheck::kAuto);

  // Whether there is room for what the peer sends.
  [[nodiscard]] bool WantsInput() const;
  // Lists where the next bytes go, in order. An Error ends the connection at once.
  [[nodiscard]] Result<void> FillInput(IovList& list);
  // `bytes` of what was listed have arrived; zero when none have. An Error as above.
  [[nodiscard]] Result<void> OnInput(std::size_t bytes);

  [[nodiscard]] bool HasOutput() const { return next_item_ < items_.size(); }
  [[nodiscard]] Result<void> FillOutput(IovList& list);
  [[nodiscard]] Result<void> OnOutput(std::size_t bytes);

  // A request was refused and all answers are out: close.
  [[nodiscard]] bool finished() const { return refused_ && !HasOutput(); }

 private:
  enum class State : std::uint8_t { kHead, kExtents, kPayload };
  struct OutputItem {
    enum class Kind : std::uint8_t { kAnswer, kMemory, kZeros } kind;
    std::uint64_t at;  // Offset in answers_, or address.
    std::uint64_t length_bytes;
  };

  [[nodiscard]] Result<void> Advance();
  [[nodiscard]] Result<bool> TakeHead();  // False: more bytes, or more room for answers, needed.
  [[nodiscard]] Result<bool> TakeExtents();
  [[nodiscard]] Result<bool> TakePayload();
  void BeginRequest();
  void Answer();
  void QueueAnswer(std::span<const std::byte> bytes);
  [[nodiscard]] bool IsAllowed(const TcpExtent& extent);
  // Pins the region around the range until Unpin(); false if there is none.
  [[nodiscard]] bool Pin(std::uint64_t address, std::uint64_t length_bytes);
  void Unpin() { pins_.clear(); }
  [[nodiscard]] std::size_t available() const { return end_ - begin_; }
  void AdvancePayload(std::uint64_t bytes);

  RegionTable& regions_;
  const RemoteCheck check_;
  std::vector<RegionPin> pins_;

  State state_ = State::kHead;
  bool refused_ = false;
  std::vector<std::byte> input_;  // [begin_, end_) has arrived and is not used yet.
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  TcpRequest request_;
  std::vector<TcpExtent> extents_;
  std::vector<bool> rejected_;  // By extent.
  std::uint64_t payload_bytes_ = 0;
  std::size_t payload_extent_ = 0;    // Of a WRITE: what arrives next goes to this extent,
  std::uint64_t payload_offset_ = 0;  // this far into it.

  std::vector<std::byte> answers_;
  std::vector<OutputItem> items_;
  std::size_t next_item_ = 0;
  std::uint64_t item_offset_ = 0;
  std::size_t memory_items_ = 0;  // Of the unsent ones, those that send memory.
};

}  // namespace mooncake::transfer
