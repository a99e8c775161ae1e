#include "mooncake-store/src/client/put_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <ranges>
#include <utility>

#include "mooncake-store/src/client/key_window.h"
#include "mooncake-store/src/client/lookup.h"

namespace mooncake::store {
namespace {

constexpr std::uint8_t kMaxStarts = 3;
constexpr Duration kShortestRetry = std::chrono::milliseconds(1);
constexpr Duration kDefaultRetry = std::chrono::milliseconds(5);

// The write is not open any more at the master, and not through us.
bool LostTheWrite(StoreCode code) {
  return code == StoreCode::kObjectNotFound || code == StoreCode::kInvalidWrite ||
         code == StoreCode::kIllegalClient || code == StoreCode::kInvalidVersion ||
         code == StoreCode::kReplicaIsGone;
}

}  // namespace

void PutOperation::Start(std::span<const PutItem> items, const ReplicateConfigView& config,
                         bool upsert) {
  items_ = items;
  config_ = config;
  upsert_ = upsert;
  chain_ = core_.NextChain();
  next_item_ = 0;
  failures_.Clear();
  blame_.Clear();
  results_.assign(items.size(), StoreCode::kInternalError);
  states_.clear();
  states_.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (const SourcePiece& piece : items[i].pieces) {
      states_[i].size_bytes += piece.length_bytes;
    }
  }
  duplicates_.clear();
  if (items.size() > 1) {
    FindDuplicates();
  }
}

// The master answers a start that comes again from the same call with the same place, so two values
// for one key must not both be written.
void PutOperation::FindDuplicates() {
  const auto count = static_cast<std::uint32_t>(items_.size());
  const std::size_t mask = std::bit_ceil(std::size_t{count} * 2) - 1;
  key_slots_.assign(mask + 1, count);  // count = free.
  for (std::uint32_t item = 0; item < count; ++item) {
    std::size_t slot = std::hash<std::string_view>{}(items_[item].key) & mask;
    while (key_slots_[slot] != count && items_[key_slots_[slot]].key != items_[item].key) {
      slot = (slot + 1) & mask;
    }
    const std::uint32_t known = key_slots_[slot];
    if (known == count) {
      key_slots_[slot] = item;
      continue;
    }
    const std::uint32_t loser = upsert_ ? known : item;
    if (upsert_) {
      key_slots_[slot] = item;
    }
    states_[loser].phase = Phase::kDuplicate;
    duplicates_.push_back({.item = loser, .written = key_slots_[slot]});
  }
}

void PutOperation::CopyResults() {
  // Backwards: of several values for an upsert each points to the next one.
  for (const Duplicate& duplicate : std::views::reverse(duplicates_)) {
    results_[duplicate.item] = results_[duplicate.written];
    if (!upsert_ && results_[duplicate.item] == StoreCode::kOk) {
      failures_.Add(duplicate.item, StoreCode::kObjectAlreadyExists,
                    FailureText(StoreCode::kObjectAlreadyExists, "put", items_[duplicate.item].key,
                                "an earlier item has the same key"));
    }
  }
  duplicates_.clear();
}

Action PutOperation::Next(Instant now) {
  if (auto told = blame_.Next(core_, now)) {
    return *told;
  }
  Instant wake = Instant::max();
  bool pending = blame_.under_way();
  for (std::uint32_t index = 0; index < kWindows; ++index) {
    Window& window = windows_[index];
    while (window.active || (next_item_ < items_.size() && MayOpen())) {
      if (!window.active) {
        Open(window);
      }
      if (auto action = NextOf(index, now)) {
        return *action;
      }
      if (window.unsettled > 0) {
        pending = true;
        wake = std::min(wake, WakeOf(window));
        break;
      }
      window.active = false;
    }
  }
  if (pending) {
    return Action::Wait(wake);
  }
  CopyResults();
  return Action::Done();
}

// The next window starts once no other one is being placed or waits for space, and at most one
// moves: then one start travels while one window's bytes do.
bool PutOperation::MayOpen() const {
  std::uint32_t moving = 0;
  for (const Window& window : windows_) {
    if (!window.active) {
      continue;
    }
    moving += static_cast<std::uint32_t>(window.moving);
    if (!window.moving && window.ending.idle()) {
      return false;
    }
    if (!window.start.idle() || window.resolving || CountIn(window, Phase::kStart) > 0) {
      return false;
    }
  }
  return moving <= 1;
}

void PutOperation::Open(Window& window) {
  const auto total = static_cast<std::uint32_t>(items_.size());
  window.active = true;
  window.first = next_item_;
  window.end = WindowEnd(
      window.first, total, core_.options().window_keys, core_.options().window_bytes,
      [this](std::uint32_t i) { return items_[i].key.size(); },
      [this](std::uint32_t i) { return states_[i].size_bytes; });
  window.unsettled = window.end - window.first;
  next_item_ = window.end;
  for (std::uint32_t item = window.first; item < window.end; ++item) {
    if (states_[item].phase == Phase::kDuplicate) {
      --window.unsettled;
    } else if (items_[item].key.empty() || items_[item].key.size() > kMaxKeyBytes) {
      Settle(window, item, StoreCode::kInvalidParams,
             fmt::format("a key has 1 to {} bytes", kMaxKeyBytes));
    } else if (states_[item].size_bytes == 0) {
      Settle(window, item, StoreCode::kInvalidParams, "a value has at least one byte");
    }
  }
}

std::optional<Action> PutOperation::NextOf(std::uint32_t index, Instant now) {
  Window& window = windows_[index];
  const std::uint32_t tag = index * kTagsPerWindow;
  if (window.start.idle() && !blame_.under_way() && PrepareStart(window, now)) {
    window.start.Begin(now, core_.options().master_patience, chain_ + index);
  }
  if (window.start.ShouldSend(now)) {
    window.start.Sent(now);
    const Instant deadline = now + core_.options().rpc_timeout;
    if (window.resolving) {
      window.segments_request.caller = core_.MakeCaller();
      return Action::Call(tag + kStartTag, deadline,
                          Exchange<QuerySegmentsRequest, QuerySegmentsReply>{
                              &window.segments_request, &window.segments_reply});
    }
    window.start_request.caller = core_.MakeCaller();
    return Action::Call(tag + kStartTag, deadline,
                        Exchange<BatchPutStartRequest, BatchPutStartReply>{&window.start_request,
                                                                           &window.start_reply});
  }
  if (!window.moving && FillBatch(window)) {
    window.moving = true;
    return Action::Move(tag + kMoveTag, &window.batch);
  }
  if (window.ending.idle() && !window.moving && PrepareEnd(window)) {
    window.ending.Begin(now, core_.options().master_patience, chain_ + index);
  }
  if (window.ending.ShouldSend(now)) {
    window.ending.Sent(now);
    window.end_request.caller = core_.MakeCaller();
    return Action::Call(
        tag + kEndTag, now + core_.options().rpc_timeout,
        Exchange<BatchPutEndRequest, BatchPutEndReply>{&window.end_request, &window.end_reply});
  }
  return std::nullopt;
}

bool PutOperation::PrepareStart(Window& window, Instant now) {
  BatchPutStartRequest& request = window.start_request;
  window.starting.clear();
  request.keys.clear();
  request.sizes_bytes.clear();
  request.config = config_;
  request.config.group_ids.clear();
  for (std::uint32_t item = window.first; item < window.end; ++item) {
    ItemState& state = states_[item];
    if (state.phase != Phase::kStart || now < state.retry_at) {
      continue;
    }
    state.phase = Phase::kStarting;
    window.starting.push_back(item);
    request.keys.push_back(items_[item].key);
    request.sizes_bytes.push_back(state.size_bytes);
    if (!config_.group_ids.empty()) {
      request.config.group_ids.push_back(config_.group_ids[item]);
    }
  }
  if (window.starting.empty()) {
    return false;
  }
  request.upsert = upsert_;
  request.chain = ChainPosition{.chain_id = chain_,
                                .position = window.starting.front(),
                                .total = static_cast<std::uint32_t>(items_.size())};
  return true;
}

bool PutOperation::FillBatch(Window& window) {
  window.batch.opcode = TransferOpcode::kWrite;
  window.batch.pieces.clear();
  for (std::uint32_t item = window.first; item < window.end; ++item) {
    ItemState& state = states_[item];
    if (state.phase != Phase::kReady) {
      continue;
    }
    for (const LocatedReplica& replica : state.location->replicas) {
      std::uint64_t offset = 0;
      for (const SourcePiece& piece : items_[item].pieces) {
        // A transfer of either direction names its local memory alike; a write only reads it.
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
        auto* const memory = const_cast<std::byte*>(piece.memory);
        CutPieces(state.location->Extents(replica), {memory, offset, piece.length_bytes}, item,
                  window.batch.pieces);
        offset += piece.length_bytes;
      }
    }
    state.moved = true;
    state.phase = Phase::kMoving;
  }
  return !window.batch.pieces.empty();
}

bool PutOperation::PrepareEnd(Window& window) {
  window.ended.clear();
  window.end_request.keys.clear();
  window.end_request.endings.clear();
  for (std::uint32_t item = window.first; item < window.end; ++item) {
    ItemState& state = states_[item];
    if (state.phase != Phase::kEnd) {
      continue;
    }
    state.phase = Phase::kEnding;
    window.ended.push_back(item);
    window.end_request.keys.push_back(items_[item].key);
    window.end_request.endings.push_back(
        PutEnding{.version = state.version, .success = state.moved});
  }
  return !window.ended.empty();
}

Instant PutOperation::WakeOf(const Window& window) const {
  Instant wake = std::min(window.start.WakeAt(), window.ending.WakeAt());
  if (window.start.idle() && !blame_.under_way()) {  // While a report travels no start is sent.
    for (std::uint32_t item = window.first; item < window.end; ++item) {
      if (states_[item].phase == Phase::kStart) {
        wake = std::min(wake, states_[item].retry_at);
      }
    }
  }
  return wake;
}

std::uint32_t PutOperation::CountIn(const Window& window, Phase phase) const {
  const auto states = std::span(states_).subspan(window.first, window.end - window.first);
  return static_cast<std::uint32_t>(std::ranges::count(states, phase, &ItemState::phase));
}

bool PutOperation::HoldsSpace() const {
  return std::ranges::any_of(windows_, [this](const Window& window) {
    return window.active &&
           (CountIn(window, Phase::kReady) > 0 || CountIn(window, Phase::kMoving) > 0 ||
            CountIn(window, Phase::kEnd) > 0 || CountIn(window, Phase::kEnding) > 0);
  });
}

void PutOperation::OnReply(std::uint32_t tag, Instant now) {
  if (blame_.Ended(tag)) {
    return;
  }
  Window& window = windows_[tag / kTagsPerWindow];
  if (tag % kTagsPerWindow == kEndTag) {
    window.ending.Answered();
    TakeEnd(window, now);
    return;
  }
  window.start.Answered();
  if (std::exchange(window.resolving, false)) {
    for (const QueriedSegment& segment : window.segments_reply.segments) {
      core_.segments().Learn(segment);
    }
    ResolvePlaces(window, /*last_try=*/true, now);
  } else {
    TakeStart(window, now);
  }
}

void PutOperation::OnCallFailed(std::uint32_t tag, const Error& why, Instant now) {
  if (blame_.Ended(tag)) {
    return;
  }
  Window& window = windows_[tag / kTagsPerWindow];
  const bool end = tag % kTagsPerWindow == kEndTag;
  if ((end ? window.ending : window.start).Failed(why, now)) {
    return;
  }
  const StoreCode code = CodeOfCallFailure(why);
  if (end) {
    for (const std::uint32_t item : window.ended) {
      Settle(window, item, code, fmt::format("whether it is stored is not known: {}", why.message));
    }
    return;
  }
  const bool placed = std::exchange(window.resolving, false);
  for (const std::uint32_t item : window.starting) {
    if (placed && states_[item].phase == Phase::kResolving) {
      Revoke(item, code, /*restart=*/false, why.message);
    } else if (!placed) {
      Settle(window, item, code, why.message);
    }
  }
}

void PutOperation::TakeStart(Window& window, Instant now) {
  const BatchPutStartReply& reply = window.start_reply;
  if (reply.code != StoreCode::kOk || reply.results.size() != window.starting.size()) {
    for (const std::uint32_t item : window.starting) {
      Settle(window, item, reply.code == StoreCode::kOk ? StoreCode::kInternalError : reply.code,
             "the master refused the whole batch");
    }
    return;
  }
  // Asked once a reply: it looks at every item, and a full store refuses many.
  const bool any_refused = std::ranges::any_of(reply.results, [](const PutStartResult& result) {
    return result.code == StoreCode::kNoAvailableHandle;
  });
  const bool holds_space = any_refused && HoldsSpace();
  for (std::size_t i = 0; i < window.starting.size(); ++i) {
    const std::uint32_t item = window.starting[i];
    const PutStartResult& result = reply.results[i];
    ItemState& state = states_[item];
    switch (result.code) {
      case StoreCode::kOk:
        state.version = result.version;
        state.range = result.replicas;
        state.phase = Phase::kResolving;
        break;
      case StoreCode::kNoAvailableHandle:
        Refused(window, item, holds_space, now);
        break;
      default:
        Settle(window, item, result.code, "");
    }
  }
  ResolvePlaces(window, /*last_try=*/false, now);
}

void PutOperation::ResolvePlaces(Window& window, bool last_try, Instant now) {
  window.missing.clear();
  for (const std::uint32_t item : window.starting) {
    ItemState& state = states_[item];
    if (state.phase != Phase::kResolving) {
      continue;
    }
    ResolveResult resolved =
        Resolve(core_, window.start_reply.table, state.range, state.size_bytes, window.missing);
    if (resolved.location->replicas.size() == state.range.count && state.range.count > 0) {
      state.location = std::move(resolved.location);
      state.phase = Phase::kReady;
    } else if (last_try || resolved.complete) {
      Revoke(item, StoreCode::kSegmentNotFound, /*restart=*/true, "its segment left meanwhile");
    }
  }
  if (!window.missing.empty() && !last_try) {
    std::ranges::sort(window.missing);
    const auto twice = std::ranges::unique(window.missing);
    window.missing.erase(twice.begin(), twice.end());
    window.segments_request.numbers = window.missing;
    window.resolving = true;
    window.start.Begin(now, core_.options().master_patience, chain_);
  }
}

void PutOperation::Refused(Window& window, std::uint32_t item, bool holds_space, Instant now) {
  ItemState& state = states_[item];
  const FullHint& full = window.start_reply.full;
  // Space that this very call holds comes back by itself: the wait begins after that.
  if (state.full_until == Instant{} || holds_space) {
    state.full_until = now + core_.options().put_wait;
  }
  if (now >= state.full_until) {
    Settle(
        window, item, StoreCode::kNoAvailableHandle,
        fmt::format("no room for {} bytes: {} bytes are leased, {} pinned, {} in flight",
                    state.size_bytes, full.leased_bytes, full.pinned_bytes, full.in_flight_bytes));
    return;
  }
  const Duration hint = full.retry_after_ms == 0
                            ? kDefaultRetry
                            : Duration(std::chrono::milliseconds(full.retry_after_ms));
  state.retry_at = std::min(now + std::max(hint, kShortestRetry), state.full_until);
  state.phase = Phase::kStart;
}

void PutOperation::OnTransfersDone(std::uint32_t tag, std::span<const PieceFailure> failures,
                                   Instant now) {
  Window& window = windows_[tag / kTagsPerWindow];
  window.moving = false;
  for (const PieceFailure& failure : failures) {
    const TransferPiece& piece = window.batch.pieces[failure.piece];
    const bool peer_fault = IsPeerFault(failure.why);
    if (peer_fault) {
      blame_.Blame(*piece.segment, now);
    }
    if (states_[piece.item].moved) {
      states_[piece.item].moved = false;
      Revoke(piece.item, CodeOfTransferFailure(failure.why), /*restart=*/peer_fault,
             fmt::format("write of {} bytes to {}: {}", piece.length_bytes,
                         piece.segment->info.te_endpoint, failure.why.message));
    }
  }
  for (std::uint32_t item = window.first; item < window.end; ++item) {
    if (states_[item].phase == Phase::kMoving) {
      states_[item].phase = Phase::kEnd;
    }
  }
}

void PutOperation::Revoke(std::uint32_t item, StoreCode code, bool restart,
                          std::string_view cause) {
  ItemState& state = states_[item];
  state.moved = false;
  state.location = nullptr;
  state.revoke_code = code;
  state.cause.assign(cause);
  state.restart = restart && ++state.starts < kMaxStarts;
  state.phase = Phase::kEnd;
}

void PutOperation::TakeEnd(Window& window, Instant now) {
  const BatchPutEndReply& reply = window.end_reply;
  const bool whole = reply.code == StoreCode::kOk && reply.codes.size() == window.ended.size();
  for (std::size_t i = 0; i < window.ended.size(); ++i) {
    const StoreCode failed = reply.code == StoreCode::kOk ? StoreCode::kInternalError : reply.code;
    Ended(window, window.ended[i], whole ? reply.codes[i] : failed, now);
  }
}

void PutOperation::Ended(Window& window, std::uint32_t item, StoreCode code, Instant now) {
  ItemState& state = states_[item];
  if (state.moved) {
    if (LostTheWrite(code) && ++state.starts < kMaxStarts) {
      state.moved = false;
      state.location = nullptr;
      state.retry_at = now;
      state.phase = Phase::kStart;
      return;
    }
    Settle(window, item, code, "its bytes were written, but the master would not complete it");
    return;
  }
  // A revoke that fails found nothing to revoke.
  if (state.restart) {
    state.restart = false;
    state.retry_at = now;
    state.phase = Phase::kStart;
    return;
  }
  Settle(window, item, state.revoke_code, state.cause);
}

void PutOperation::Settle(Window& window, std::uint32_t item, StoreCode code,
                          std::string_view cause) {
  ItemState& state = states_[item];
  const bool existed = code == StoreCode::kObjectAlreadyExists && !upsert_;
  results_[item] = existed ? StoreCode::kOk : code;
  if (code != StoreCode::kOk) {
    failures_.Add(item, code,
                  failures_.Keeps(code)
                      ? FailureText(code, upsert_ ? "upsert" : "put", items_[item].key, cause)
                      : std::string());
  }
  if (!existed) {
    core_.cache().Forget(items_[item].key);  // Also after a failure: it may have been carried out.
  }
  state.location = nullptr;
  state.phase = Phase::kSettled;
  --window.unsettled;
}

}  // namespace mooncake::store
