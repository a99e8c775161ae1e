// One connection to a peer's data port, seen from the side that asks: turns claims into requests,
// says which bytes to send and where the next ones go, and which claims are answered.
//
// Requests are sent back to back without waiting for answers, within a window; answers come in the
// same order. As each answer's length is known beforehand, its head and its payload, and those of
// the next ones, are received by one vectored call straight into the slices' memory.
//
// Protocol v1 does not answer a write. So a read of one byte of the same range follows it: requests
// of a connection are served in order, hence its answer says that the write is in memory.
//
// Sans-IO: the owner writes what FillSend() lists and tells OnSent(), and the same for input.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/transports/slice_queue.h"
#include "mooncake-transfer-engine/src/transports/tcp/iov_list.h"
#include "mooncake-transfer-engine/src/transports/tcp/tcp_format.h"

namespace mooncake::transfer {

// A request on its way.
struct ClientFrame {
  Claim claim;
  std::vector<PieceFailure> failures;  // In index order.
  // The rest is the stream's.
  std::uint64_t id = 0;
  std::vector<std::byte> request;  // Head and extents.
  std::vector<std::byte> trailer;  // After the payload; see ClientStream.
  std::vector<std::byte> reply;    // Head.
  std::uint64_t payload_bytes = 0;
  std::uint64_t sent_bytes = 0;      // Of request, a write's payload, and trailer.
  std::uint64_t received_bytes = 0;  // Of reply and, for a read, payload.
  bool reply_checked = false;

  [[nodiscard]] bool is_write() const { return claim.opcode() == Opcode::kWrite; }
  [[nodiscard]] std::uint64_t bytes_to_send() const {
    return request.size() + (is_write() ? payload_bytes : 0) + trailer.size();
  }
  [[nodiscard]] std::uint64_t bytes_to_receive() const {
    return reply.size() + (is_write() ? 0 : payload_bytes);
  }
};

class ClientStream {
 public:
  // What may be unanswered on one connection: enough to cover a round trip of a millisecond at
  // 100 Gbit/s would be 12 MiB; but what is in flight here cannot go another way.
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{4} << 20;
  static constexpr std::size_t kWindowFrames = 64;

  explicit ClientStream(TcpProtocol protocol) : protocol_(protocol) {}

  [[nodiscard]] bool HasRoom() const {
    return frames_.size() < kWindowFrames && window_bytes_ < kWindowBytes;
  }
  [[nodiscard]] bool empty() const { return frames_.empty(); }
  [[nodiscard]] bool HasUnsent() const { return sending_ < frames_.size(); }

  // Queues the request for `frame->claim`, which is not empty; v1 and v2 take one piece.
  void Add(std::unique_ptr<ClientFrame> frame);

  void FillSend(IovList& list) const;
  void OnSent(std::uint64_t bytes);
  // Whether an answer, or part of it, may arrive.
  [[nodiscard]] bool AwaitsInput() const;
  void FillReceive(IovList& list);
  // Errors: kMalformed for an answer that is none; kRejected after a v2 peer has refused (the
  // failure is noted in its frame): it closes the connection then.
  [[nodiscard]] Result<void> OnReceived(std::uint64_t bytes);

  // The next frame that is answered whole, else nullptr. Its claim's bytes are in place but for its
  // failures.
  [[nodiscard]] std::unique_ptr<ClientFrame> TakeAnswered();
  // All frames, in order; the stream is over.
  [[nodiscard]] std::deque<std::unique_ptr<ClientFrame>> TakeAll();

  // The kernel found the memory of the piece that is next to send, or to receive into, not usable.
  // A read goes on without it; for a write the connection has to be given up.
  void FailNextToSend(Error why);
  void FailNextToReceive(Error why);

 private:
  struct Position {
    std::size_t piece;
    std::uint64_t offset_bytes;
  };
  [[nodiscard]] static Position PieceAt(const ClientFrame& frame, std::uint64_t payload_offset);
  [[nodiscard]] static bool Failed(const ClientFrame& frame, std::size_t piece);
  static void NoteFailure(ClientFrame& frame, std::size_t piece, Error why);
  // False when the list is full.
  static bool AddPayload(const ClientFrame& frame, std::uint64_t from, IovList& list);
  [[nodiscard]] Result<void> CheckReply(ClientFrame& frame);

  const TcpProtocol protocol_;
  std::deque<std::unique_ptr<ClientFrame>> frames_;
  std::size_t sending_ = 0;    // frames_[sending_] is not yet sent whole.
  std::size_t receiving_ = 0;  // frames_[receiving_] is not yet received whole.
  std::uint64_t window_bytes_ = 0;
  std::uint64_t next_id_ = 1;
};

}  // namespace mooncake::transfer
