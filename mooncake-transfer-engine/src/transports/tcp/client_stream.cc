#include "mooncake-transfer-engine/src/transports/tcp/client_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace mooncake::transfer {

void ClientStream::Add(std::unique_ptr<ClientFrame> frame) {
  const auto pieces = frame->claim.pieces();
  frame->failures.clear();
  frame->id = next_id_++;
  frame->payload_bytes = 0;
  frame->sent_bytes = 0;
  frame->received_bytes = 0;
  frame->reply_checked = false;
  for (const Piece& piece : pieces) {
    frame->payload_bytes += piece.length_bytes;
  }
  const auto head = EncodeTcpRequest(
      {.protocol = protocol_,
       .opcode = frame->claim.opcode(),
       .extent = {.address = pieces[0].remote_address(), .length_bytes = pieces[0].length_bytes},
       .id = frame->id,
       .extent_count = static_cast<std::uint32_t>(pieces.size())});
  frame->request.assign(head.begin(), head.end());
  frame->trailer.clear();
  switch (protocol_) {
    case TcpProtocol::kV1:
      frame->reply.clear();
      if (frame->is_write()) {
        const auto confirm = EncodeTcpRequest(
            {.protocol = protocol_,
             .opcode = Opcode::kRead,
             .extent = {.address = pieces[0].remote_address(), .length_bytes = 1}});
        frame->trailer.assign(confirm.begin(), confirm.end());
        frame->reply.resize(1);
      }
      break;
    case TcpProtocol::kV2:
      frame->reply.resize(kTcpStatusBytes);
      break;
    case TcpProtocol::kExtended:
      for (const Piece& piece : pieces) {
        const auto extent = EncodeTcpExtent(
            {.address = piece.remote_address(), .length_bytes = piece.length_bytes});
        frame->request.insert(frame->request.end(), extent.begin(), extent.end());
      }
      frame->reply.resize(TcpReplyBytes(static_cast<std::uint32_t>(pieces.size())));
      break;
  }
  window_bytes_ += frame->payload_bytes;
  frames_.push_back(std::move(frame));
}

ClientStream::Position ClientStream::PieceAt(const ClientFrame& frame,
                                             std::uint64_t payload_offset) {
  std::size_t piece = 0;
  for (const Piece& one : frame.claim.pieces()) {
    if (payload_offset < one.length_bytes) {
      break;
    }
    payload_offset -= one.length_bytes;
    ++piece;
  }
  return {piece, payload_offset};
}

bool ClientStream::Failed(const ClientFrame& frame, std::size_t piece) {
  return std::ranges::find(frame.failures, piece, &PieceFailure::index) != frame.failures.end();
}

void ClientStream::NoteFailure(ClientFrame& frame, std::size_t piece, Error why) {
  const auto after = std::ranges::lower_bound(frame.failures, piece, {}, &PieceFailure::index);
  if (after == frame.failures.end() || after->index != piece) {
    frame.failures.insert(after, {piece, std::move(why)});
  }
}

bool ClientStream::AddPayload(const ClientFrame& frame, std::uint64_t from, IovList& list) {
  auto [piece, offset] = PieceAt(frame, from);
  const auto pieces = frame.claim.pieces();
  for (; piece < pieces.size(); ++piece, offset = 0) {
    std::uint64_t left = pieces[piece].length_bytes - offset;
    if (frame.failures.empty() || !Failed(frame, piece)) {
      if (!list.Add(pieces[piece].local() + offset, left)) {
        return false;
      }
      continue;
    }
    while (left > 0) {  // Only of a read: nobody wants these bytes any more.
      const std::uint64_t part = std::min<std::uint64_t>(left, kFillerBytes);
      if (!list.Add(DiscardedBytes(), part)) {
        return false;
      }
      left -= part;
    }
  }
  return true;
}

void ClientStream::FillSend(IovList& list) const {
  for (std::size_t i = sending_; i < frames_.size(); ++i) {
    ClientFrame& frame = *frames_[i];
    const std::uint64_t head = frame.request.size();
    if (frame.sent_bytes < head &&
        !list.Add(frame.request.data() + frame.sent_bytes, head - frame.sent_bytes)) {
      return;
    }
    const std::uint64_t beyond_head = frame.sent_bytes - std::min(head, frame.sent_bytes);
    if (frame.is_write() && !AddPayload(frame, beyond_head, list)) {
      return;
    }
    if (!frame.trailer.empty()) {
      const std::uint64_t from = beyond_head - std::min(frame.payload_bytes, beyond_head);
      if (!list.Add(frame.trailer.data() + from, frame.trailer.size() - from)) {
        return;
      }
    }
  }
}

void ClientStream::OnSent(std::uint64_t bytes) {
  while (bytes > 0) {
    ClientFrame& frame = *frames_[sending_];
    const std::uint64_t part = std::min(bytes, frame.bytes_to_send() - frame.sent_bytes);
    frame.sent_bytes += part;
    bytes -= part;
    if (frame.sent_bytes < frame.bytes_to_send()) {
      return;
    }
    ++sending_;
  }
}

bool ClientStream::AwaitsInput() const {
  return receiving_ < frames_.size() && frames_[receiving_]->sent_bytes > 0;
}

void ClientStream::FillReceive(IovList& list) {
  for (std::size_t i = receiving_; i < frames_.size() && frames_[i]->sent_bytes > 0; ++i) {
    ClientFrame& frame = *frames_[i];
    const std::uint64_t head = frame.reply.size();
    if (frame.received_bytes < head &&
        !list.Add(frame.reply.data() + frame.received_bytes, head - frame.received_bytes)) {
      return;
    }
    if (!frame.is_write() &&
        !AddPayload(frame, frame.received_bytes - std::min(head, frame.received_bytes), list)) {
      return;
    }
  }
}

Result<void> ClientStream::OnReceived(std::uint64_t bytes) {
  while (receiving_ < frames_.size()) {
    ClientFrame& frame = *frames_[receiving_];
    const std::uint64_t part = std::min(bytes, frame.bytes_to_receive() - frame.received_bytes);
    frame.received_bytes += part;
    bytes -= part;
    if (!frame.reply_checked && frame.received_bytes >= frame.reply.size() &&
        !frame.reply.empty()) {
      frame.reply_checked = true;
      MC_TRY(CheckReply(frame));
    }
    if (frame.received_bytes < frame.bytes_to_receive() ||
        frame.sent_bytes < frame.bytes_to_send()) {
      break;
    }
    ++receiving_;
  }
  return {};
}

Result<void> ClientStream::CheckReply(ClientFrame& frame) {
  const auto pieces = frame.claim.pieces();
  const auto refuse = [&frame, &pieces](std::size_t i) {
    NoteFailure(frame, i,
                {ErrorCode::kRejected,
                 fmt::format("{} {} bytes at {:#x}: the peer has not registered this range",
                             frame.is_write() ? "write" : "read", pieces[i].length_bytes,
                             pieces[i].remote_address())});
  };
  if (protocol_ == TcpProtocol::kV2) {
    MC_TRY_ASSIGN(const bool accepted, DecodeTcpStatus(std::span<const std::byte, kTcpStatusBytes>(
                                           frame.reply.data(), kTcpStatusBytes)));
    if (!accepted) {
      refuse(0);
      return Fail(ErrorCode::kRejected, "the peer refused a request and closes the connection");
    }
  } else if (protocol_ == TcpProtocol::kExtended) {
    MC_TRY_ASSIGN(const std::vector<std::uint32_t> rejected,
                  DecodeTcpReply(frame.reply, frame.id, static_cast<std::uint32_t>(pieces.size())));
    std::ranges::for_each(rejected, refuse);
  }
  if (frame.sent_bytes < frame.bytes_to_send()) {
    return Fail(ErrorCode::kMalformed, "the peer answered a request that it had not got whole");
  }
  return {};
}

std::unique_ptr<ClientFrame> ClientStream::TakeAnswered() {
  if (receiving_ == 0) {
    return nullptr;
  }
  std::unique_ptr<ClientFrame> frame = std::move(frames_.front());
  frames_.pop_front();
  --receiving_;
  --sending_;
  window_bytes_ -= frame->payload_bytes;
  return frame;
}

std::deque<std::unique_ptr<ClientFrame>> ClientStream::TakeAll() {
  sending_ = 0;
  receiving_ = 0;
  window_bytes_ = 0;
  return std::exchange(frames_, {});
}

void ClientStream::FailNextToSend(Error why) {
  ClientFrame& frame = *frames_[sending_];
  const std::uint64_t sent =
      frame.sent_bytes - std::min<std::uint64_t>(frame.request.size(), frame.sent_bytes);
  NoteFailure(frame, PieceAt(frame, sent).piece, std::move(why));
}

void ClientStream::FailNextToReceive(Error why) {
  ClientFrame& frame = *frames_[receiving_];
  const std::uint64_t received =
      frame.received_bytes - std::min<std::uint64_t>(frame.reply.size(), frame.received_bytes);
  NoteFailure(frame, PieceAt(frame, received).piece, std::move(why));
}

}  // namespace mooncake::transfer
