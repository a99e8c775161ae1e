#include "mooncake-transfer-engine/src/transports/tcp/server_session.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace mooncake::transfer {
namespace {

constexpr std::size_t kInputBytes = std::size_t{16} << 10;
constexpr std::size_t kMaxItems = 256;

std::byte* AsPointer(std::uint64_t address) {
  // Only of ranges that are registered, which the region table was asked about.
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

std::unexpected<Error> RegionGone(std::uint64_t address) {
  return Fail(ErrorCode::kAddressNotRegistered,
              fmt::format("memory at {:#x} was unregistered during a transfer", address));
}

}  // namespace

ServerSession::ServerSession(RegionTable& regions, RemoteCheck check)
    : regions_(regions), check_(check), input_(kInputBytes) {}

bool ServerSession::WantsInput() const {
  if (refused_) {
    return false;
  }
  if (state_ == State::kPayload) {
    // What was read before must have left before it may be overwritten.
    return memory_items_ == 0;
  }
  return items_.size() < kMaxItems && available() < input_.size();
}

Result<void> ServerSession::FillInput(IovList& list) {
  bool room = true;
  if (state_ == State::kPayload) {
    std::uint64_t offset = payload_offset_;
    for (std::size_t i = payload_extent_; i < extents_.size() && room; ++i, offset = 0) {
      const std::uint64_t length = extents_[i].length_bytes - offset;
      if (rejected_[i]) {
        std::uint64_t left = length;
        while (left > 0 && room) {
          const std::uint64_t part = std::min<std::uint64_t>(left, kFillerBytes);
          room = list.Add(DiscardedBytes(), part);
          left -= part;
        }
        continue;
      }
      if (!Pin(extents_[i].address + offset, length)) {
        return RegionGone(extents_[i].address);
      }
      room = list.Add(AsPointer(extents_[i].address + offset), length);
    }
  }
  if (room) {
    if (begin_ > 0) {
      std::memmove(input_.data(), input_.data() + begin_, available());
      end_ -= std::exchange(begin_, 0);
    }
    list.Add(input_.data() + end_, input_.size() - end_);
  }
  return {};
}

Result<void> ServerSession::OnInput(std::size_t bytes) {
  Unpin();
  if (state_ == State::kPayload) {
    const std::uint64_t payload = std::min<std::uint64_t>(bytes, payload_bytes_);
    AdvancePayload(payload);
    bytes -= payload;
  }
  end_ += bytes;
  return Advance();
}

Result<void> ServerSession::Advance() {
  bool more = true;
  while (more && !refused_) {
    switch (state_) {
      case State::kHead: {
        MC_TRY_ASSIGN(more, TakeHead());
        break;
      }
      case State::kExtents: {
        MC_TRY_ASSIGN(more, TakeExtents());
        break;
      }
      case State::kPayload: {
        MC_TRY_ASSIGN(more, TakePayload());
        break;
      }
    }
  }
  return {};
}

Result<bool> ServerSession::TakeHead() {
  if (available() < kTcpRequestBytes || items_.size() >= kMaxItems) {
    return false;
  }
  MC_TRY_ASSIGN(request_, DecodeTcpRequest(std::span<const std::byte, kTcpRequestBytes>(
                              input_.data() + begin_, kTcpRequestBytes)));
  begin_ += kTcpRequestBytes;
  extents_.clear();
  if (request_.protocol == TcpProtocol::kExtended) {
    state_ = State::kExtents;
  } else {
    extents_.push_back(request_.extent);
    BeginRequest();
  }
  return true;
}

Result<bool> ServerSession::TakeExtents() {
  std::uint64_t total = 0;
  while (extents_.size() < request_.extent_count) {
    if (available() < kTcpExtentBytes) {
      return false;
    }
    extents_.push_back(DecodeTcpExtent(
        std::span<const std::byte, kTcpExtentBytes>(input_.data() + begin_, kTcpExtentBytes)));
    begin_ += kTcpExtentBytes;
  }
  for (const TcpExtent& extent : extents_) {
    if (extent.length_bytes == 0 || extent.length_bytes > kTcpMaxFrameBytes) {
      return Fail(ErrorCode::kMalformed,
                  fmt::format("extended request with an extent of {} bytes", extent.length_bytes));
    }
    total += extent.length_bytes;
  }
  if (total > kTcpMaxFrameBytes) {
    return Fail(ErrorCode::kMalformed, fmt::format("extended request for {} bytes", total));
  }
  BeginRequest();
  return true;
}

void ServerSession::BeginRequest() {
  rejected_.assign(extents_.size(), false);
  payload_bytes_ = 0;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    rejected_[i] = !IsAllowed(extents_[i]);
    payload_bytes_ += extents_[i].length_bytes;
  }
  if (request_.protocol != TcpProtocol::kExtended && rejected_[0]) {
    if (request_.protocol == TcpProtocol::kV2) {
      QueueAnswer(EncodeTcpStatus(false));
    }
    refused_ = true;
    return;
  }
  if (request_.opcode == Opcode::kWrite) {
    payload_extent_ = 0;
    payload_offset_ = 0;
    state_ = State::kPayload;
    return;
  }
  Answer();
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    items_.push_back({.kind = rejected_[i] ? OutputItem::Kind::kZeros : OutputItem::Kind::kMemory,
                      .at = extents_[i].address,
                      .length_bytes = extents_[i].length_bytes});
    memory_items_ += rejected_[i] ? 0 : 1;
  }
  state_ = State::kHead;
}

Result<bool> ServerSession::TakePayload() {
  if (memory_items_ > 0 && payload_bytes_ > 0) {
    return false;
  }
  while (payload_bytes_ > 0 && available() > 0) {
    const TcpExtent& extent = extents_[payload_extent_];
    const std::uint64_t part =
        std::min<std::uint64_t>(extent.length_bytes - payload_offset_, available());
    if (!rejected_[payload_extent_]) {
      const std::uint64_t address = extent.address + payload_offset_;
      if (!Pin(address, part)) {
        return RegionGone(extent.address);
      }
      std::memcpy(AsPointer(address), input_.data() + begin_, part);
      Unpin();
    }
    begin_ += part;
    AdvancePayload(part);
  }
  if (payload_bytes_ > 0) {
    return false;
  }
  Answer();
  state_ = State::kHead;
  return true;
}

void ServerSession::AdvancePayload(std::uint64_t bytes) {
  payload_bytes_ -= bytes;
  while (bytes > 0) {
    const std::uint64_t left = extents_[payload_extent_].length_bytes - payload_offset_;
    if (bytes < left) {
      payload_offset_ += bytes;
      return;
    }
    bytes -= left;
    ++payload_extent_;
    payload_offset_ = 0;
  }
}

void ServerSession::Answer() {
  switch (request_.protocol) {
    case TcpProtocol::kV1:
      return;
    case TcpProtocol::kV2:
      QueueAnswer(EncodeTcpStatus(true));
      return;
    case TcpProtocol::kExtended:
      QueueAnswer(EncodeTcpReply(request_.id, rejected_));
      return;
  }
}

void ServerSession::QueueAnswer(std::span<const std::byte> bytes) {
  items_.push_back(
      {.kind = OutputItem::Kind::kAnswer, .at = answers_.size(), .length_bytes = bytes.size()});
  answers_.insert(answers_.end(), bytes.begin(), bytes.end());
}

Result<void> ServerSession::FillOutput(IovList& list) {
  std::uint64_t offset = item_offset_;
  bool room = true;
  for (std::size_t i = next_item_; i < items_.size() && room; ++i, offset = 0) {
    const OutputItem& item = items_[i];
    std::uint64_t left = item.length_bytes - offset;
    switch (item.kind) {
      case OutputItem::Kind::kAnswer:
        room = list.Add(answers_.data() + item.at + offset, left);
        break;
      case OutputItem::Kind::kMemory:
        if (!Pin(item.at + offset, left)) {
          return RegionGone(item.at);
        }
        room = list.Add(AsPointer(item.at + offset), left);
        break;
      case OutputItem::Kind::kZeros:
        while (left > 0 && room) {
          const std::uint64_t part = std::min<std::uint64_t>(left, kFillerBytes);
          room = list.Add(ZeroBytes(), part);
          left -= part;
        }
        break;
    }
  }
  return {};
}

Result<void> ServerSession::OnOutput(std::size_t bytes) {
  Unpin();
  while (bytes > 0) {
    const OutputItem& item = items_[next_item_];
    const std::uint64_t left = item.length_bytes - item_offset_;
    if (bytes < left) {
      item_offset_ += bytes;
      break;
    }
    bytes -= left;
    memory_items_ -= item.kind == OutputItem::Kind::kMemory ? 1 : 0;
    ++next_item_;
    item_offset_ = 0;
  }
  if (!HasOutput()) {
    items_.clear();
    answers_.clear();
    next_item_ = 0;
  }
  return Advance();  // What waited for room, or for a read to leave.
}

bool ServerSession::IsAllowed(const TcpExtent& extent) {
  // Published peers never look at remote_accessible; ours do.
  const bool checked =
      check_ == RemoteCheck::kAlways ||
      (check_ == RemoteCheck::kAuto && request_.protocol == TcpProtocol::kExtended);
  const auto access = checked ? RegionTable::Access::kRemote : RegionTable::Access::kLocal;
  return extent.length_bytes > 0 &&
         static_cast<bool>(regions_.Pin(extent.address, extent.length_bytes, access));
}

bool ServerSession::Pin(std::uint64_t address, std::uint64_t length_bytes) {
  if (!pins_.empty()) {
    const Region& last = pins_.back().region();
    const AddressRange range{.begin = last.address, .end = last.address + last.length_bytes};
    if (range.Contains(address, length_bytes)) {
      return true;
    }
  }
  RegionPin pin = regions_.Pin(address, length_bytes, RegionTable::Access::kLocal);
  if (!pin) {
    return false;
  }
  pins_.push_back(std::move(pin));
  return true;
}

}  // namespace mooncake::transfer
