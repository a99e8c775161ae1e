#include "mooncake-store/src/client/get_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mooncake-store/src/client/key_window.h"

namespace mooncake::store {
namespace {

constexpr std::uint8_t kMaxAsked = 3;     // Lookups for one item because its replicas failed.
constexpr std::uint8_t kMaxVersions = 8;  // Replacements that one read follows.

}  // namespace

void GetOperation::Start(std::span<const GetItem> items, DestinationProvider* provider) {
  items_ = items;
  provider_ = provider;
  chain_ = core_.NextChain();
  next_item_ = 0;
  failures_.Clear();
  states_.clear();
  states_.resize(items.size());
  results_.assign(items.size(), Result{});
  blame_.Clear();
}

Action GetOperation::Next(Instant now) {
  if (auto told = blame_.Next(core_, now)) {
    return *told;
  }
  Instant wake = Instant::max();
  bool pending = blame_.under_way();
  for (std::uint32_t index = 0; index < kWindows; ++index) {
    Window& window = windows_[index];
    while (window.active || next_item_ < items_.size()) {
      if (!window.active) {
        Open(window, now);
      }
      if (auto action = NextOf(index, now)) {
        return *action;
      }
      if (window.unsettled > 0) {
        pending = true;
        wake = std::min({wake, window.lookup.WakeAt(), window.renewal.WakeAt()});
        if (!window.renewal.active()) {
          wake = std::min(wake, window.renew_at);
        }
        break;
      }
      window.active = false;
      if (window.renewal.active() && window.renewal.Cancel()) {
        return Action::Forget(index * kTagsPerWindow + kRenewalTag);
      }
    }
  }
  return pending ? Action::Wait(wake) : Action::Done();
}

void GetOperation::Open(Window& window, Instant now) {
  window.active = true;
  window.first = next_item_;
  window.end = WindowEnd(
      window.first, static_cast<std::uint32_t>(items_.size()), core_.options().window_keys,
      UINT64_MAX, [this](std::uint32_t i) { return items_[i].key.size(); },
      [](std::uint32_t) { return 0U; });
  window.unsettled = window.end - window.first;
  window.to_lookup = window.unsettled;
  window.ready = 0;
  window.to_check = 0;
  window.renew_at = Instant::max();
  next_item_ = window.end;
  for (std::uint32_t item = window.first; item < window.end; ++item) {
    if (items_[item].key.empty() || items_[item].key.size() > kMaxKeyBytes) {
      Settle(window, item, StoreCode::kInvalidParams,
             fmt::format("a key has 1 to {} bytes", kMaxKeyBytes));
      continue;
    }
    if (auto hit = core_.cache().Find(items_[item].key, now); hit.location != nullptr) {
      core_.CountCacheHit(hit.location->size_bytes);
      Locate(window, item, std::move(hit.location), hit.lease_until, now);
    }
  }
}

std::optional<Action> GetOperation::NextOf(std::uint32_t index, Instant now) {
  Window& window = windows_[index];
  // A place is asked for anew only once the master has heard what failed there.
  if (window.to_lookup > 0 && !window.lookup.active() && !blame_.under_way()) {
    StartLookup(window, index, now);
  }
  if (auto action = window.lookup.Next(now)) {
    return action;
  }
  if (window.ready > 0 && !window.moving && FillBatch(window, now)) {
    window.moving = true;
    return Action::Move(index * kTagsPerWindow + kMoveTag, &window.batch);
  }
  const bool renewal_due = window.to_check > 0 || now >= window.renew_at;
  if (renewal_due && !window.renewal.active()) {
    window.renew_at = Instant::max();
    if (AnyLeased(window)) {
      StartRenewal(window, index, now);
    }
  }
  return window.renewal.Next(now);
}

void GetOperation::StartLookup(Window& window, std::uint32_t index, Instant now) {
  window.lookup.Begin(core_, index * kTagsPerWindow + kLookupTag,
                      ChainPosition{.chain_id = chain_,
                                    .position = window.first,
                                    .total = static_cast<std::uint32_t>(items_.size())},
                      LeaseUse::kRead, now);
  for (std::uint32_t item = window.first; item < window.end; ++item) {
    ItemState& state = states_[item];
    if (state.phase == Phase::kLookup) {
      ++state.asked;
      SetPhase(window, state, Phase::kLookingUp);
      window.lookup.Add(items_[item].key, item);
    }
  }
}

bool GetOperation::AnyLeased(const Window& window) const {
  for (std::uint32_t item = window.first; item < window.end; ++item) {
    if (IsLeased(states_[item])) {
      return true;
    }
  }
  return false;
}

void GetOperation::StartRenewal(Window& window, std::uint32_t index, Instant now) {
  window.renewal.Begin(core_, index * kTagsPerWindow + kRenewalTag,
                       ChainPosition{.chain_id = chain_,
                                     .position = window.first,
                                     .total = static_cast<std::uint32_t>(items_.size())},
                       LeaseUse::kRead, now);
  for (std::uint32_t item = window.first; item < window.end; ++item) {
    if (IsLeased(states_[item])) {
      window.renewal.Add(items_[item].key, item);
    }
  }
}

bool GetOperation::FillBatch(Window& window, Instant now) {
  window.batch.opcode = TransferOpcode::kRead;
  window.batch.pieces.clear();
  std::uint64_t bytes = 0;
  for (std::uint32_t item = window.first; item < window.end && window.ready > 0; ++item) {
    ItemState& state = states_[item];
    if (state.phase != Phase::kReady) {
      continue;
    }
    if (bytes > 0 && bytes + state.location->size_bytes > core_.options().window_bytes) {
      break;
    }
    bytes += state.location->size_bytes;
    ChooseReplica(state, now);
    const bool moves = CutItem(item, window.batch.pieces);
    SetPhase(window, state, Phase::kMoving);
    if (!moves) {
      Moved(window, item, nullptr, now);  // Every fragment was refused or empty.
    }
  }
  return !window.batch.pieces.empty();
}

bool GetOperation::CutItem(std::uint32_t item, std::vector<TransferPiece>& pieces) {
  const GetItem& wanted = items_[item];
  ItemState& state = states_[item];
  const Location& location = *state.location;
  const auto extents = location.Extents(location.replicas[state.replica]);
  const std::size_t before = pieces.size();
  std::uint64_t bytes = 0;
  if (wanted.fragment_results != nullptr) {
    for (std::size_t i = 0; i < wanted.fragments.size(); ++i) {
      const Fragment& fragment = wanted.fragments[i];
      if (fragment.object_offset > location.size_bytes ||
          fragment.length_bytes > location.size_bytes - fragment.object_offset) {
        wanted.fragment_results[i] = ToInt(StoreCode::kInvalidParams);
        continue;
      }
      wanted.fragment_results[i] = static_cast<std::int64_t>(fragment.length_bytes);
      bytes += fragment.length_bytes;
      CutPieces(extents, fragment, item, pieces);
    }
  } else if (state.provided.memory != nullptr) {
    CutPieces(extents, state.provided, item, pieces);
    bytes = location.size_bytes;
  } else {
    for (const Fragment& fragment : wanted.fragments) {
      const std::uint64_t length = std::min(fragment.length_bytes, location.size_bytes - bytes);
      CutPieces(extents, {fragment.memory, bytes, length}, item, pieces);
      bytes += length;
    }
  }
  results_[item].bytes = bytes;
  return pieces.size() > before;
}

void GetOperation::Locate(Window& window, std::uint32_t item,
                          std::shared_ptr<const Location> location, Instant lease_until,
                          Instant now) {
  const GetItem& wanted = items_[item];
  ItemState& state = states_[item];
  const std::uint64_t size = location->size_bytes;
  if (wanted.fragment_results == nullptr && wanted.fragments.empty()) {
    if (state.provided.memory == nullptr || state.provided.length_bytes != size) {
      state.provided = {};
      std::byte* memory = provider_ == nullptr ? nullptr : provider_->Provide(item, size);
      if (memory == nullptr) {
        Settle(window, item, StoreCode::kInvalidParams,
               fmt::format("no local memory for its {} bytes", size));
        return;
      }
      state.provided = {.memory = memory, .object_offset = 0, .length_bytes = size};
    }
  } else if (wanted.fragment_results == nullptr) {
    std::uint64_t room = 0;
    for (const Fragment& fragment : wanted.fragments) {
      room += std::min(fragment.length_bytes, size - room);
    }
    if (room < size) {
      Settle(window, item, StoreCode::kInvalidParams,
             fmt::format("it has {} bytes, the buffer only {}", size, room));
      return;
    }
  }
  state.location = std::move(location);
  state.lease_until = lease_until;
  state.tried = 0;
  SetPhase(window, state, Phase::kReady);
  window.renew_at = std::min(window.renew_at, now + (lease_until - now) / 2);
}

// Nearest first; one that failed a moment ago only when nothing else is left.
void GetOperation::ChooseReplica(ItemState& state, Instant now) const {
  const Location& location = *state.location;
  std::uint32_t best = 0;
  std::uint32_t best_cost = UINT32_MAX;
  for (std::uint32_t r = 0; r < location.replicas.size() && r < 32; ++r) {
    if ((state.tried >> r & 1U) != 0) {
      continue;
    }
    std::uint32_t cost = 0;
    for (const LocatedExtent& extent : location.Extents(location.replicas[r])) {
      const auto nearness = static_cast<std::uint32_t>(extent.segment->nearness);
      cost = std::max(cost, nearness + (extent.segment->IsSuspect(now) ? 8U : 0U));
    }
    if (cost < best_cost) {
      best_cost = cost;
      best = r;
    }
  }
  state.replica = best;
}

void GetOperation::OnReply(std::uint32_t tag, Instant now) {
  if (blame_.Ended(tag)) {
    return;
  }
  Window& window = windows_[tag / kTagsPerWindow];
  if (tag % kTagsPerWindow == kLookupTag) {
    window.lookup.OnReply(now);
    TakeLookup(window, now);
  } else {
    window.renewal.OnReply(now);
    TakeRenewal(window, now);
  }
}

void GetOperation::OnCallFailed(std::uint32_t tag, const Error& why, Instant now) {
  if (blame_.Ended(tag)) {
    return;
  }
  Window& window = windows_[tag / kTagsPerWindow];
  if (tag % kTagsPerWindow == kLookupTag) {
    window.lookup.OnCallFailed(why, now);
    TakeLookup(window, now);
  } else {
    window.renewal.OnCallFailed(why, now);
    TakeRenewal(window, now);
  }
}

void GetOperation::TakeLookup(Window& window, Instant now) {
  if (!window.lookup.TakeFinished()) {
    return;
  }
  for (const Lookup::Answer& answer : window.lookup.answers()) {
    const ItemState& state = states_[answer.item];
    if (state.phase != Phase::kLookingUp) {
      continue;
    }
    if (answer.code == StoreCode::kOk) {
      Locate(window, answer.item, answer.location, answer.lease_until, now);
    } else if (answer.code == StoreCode::kSegmentNotFound && state.asked < kMaxAsked) {
      SetPhase(window, states_[answer.item], Phase::kLookup);  // It left while we asked.
    } else if (state.unreadable) {
      Settle(window, answer.item, StoreCode::kTransferFail,
             fmt::format("every replica failed, and the master then said {}",
                         StoreCodeName(answer.code)));
    } else {
      Settle(window, answer.item, answer.code, window.lookup.cause());
    }
  }
}

void GetOperation::TakeRenewal(Window& window, Instant now) {
  if (!window.renewal.TakeFinished()) {
    return;
  }
  const Instant asked_at = window.renewal.asked_at();
  for (const Lookup::Answer& answer : window.renewal.answers()) {
    ItemState& state = states_[answer.item];
    if (!IsLeased(state)) {
      continue;
    }
    const bool holds = answer.code == StoreCode::kOk &&
                       (state.phase == Phase::kReady
                            ? answer.location->version == state.location->version
                            : StillHolds(*state.location, state.location->replicas[state.replica],
                                         *answer.location));
    if (holds) {
      state.lease_until = std::max(state.lease_until, answer.lease_until);
      window.renew_at =
          std::min(window.renew_at, now + std::max(Duration(0), state.lease_until - now) / 2);
      // The same version lay there when the master answered, so it did all the time before; and if
      // the lease then given covers the end of the move, nothing was reused since.
      if (state.phase == Phase::kCheck &&
          (asked_at >= state.moved_at || state.moved_at < state.lease_until)) {
        Succeed(window, answer.item);
      }
      continue;
    }
    const bool unknown = answer.code == StoreCode::kRpcFail ||
                         answer.code == StoreCode::kRpcTimeout ||
                         answer.code == StoreCode::kSegmentNotFound;
    if (unknown && state.phase != Phase::kCheck) {
      window.renew_at =
          std::min(window.renew_at, now + (now - asked_at) + SegmentBlame::kSuspicion / 10);
      continue;  // The move may still end in time; if not, it is checked afterwards.
    }
    const bool replaced = answer.code == StoreCode::kOk;
    switch (state.phase) {
      case Phase::kMoving:
        (replaced ? state.stale : state.gone) = true;
        break;
      case Phase::kReady:
        if (replaced) {
          Replaced(window, answer.item);
        } else {
          Settle(window, answer.item, answer.code, window.renewal.cause());
        }
        break;
      default:
        if (replaced) {
          Replaced(window, answer.item);
        } else {
          Settle(window, answer.item, StoreCode::kLeaseExpired,
                 unknown ? "its lease ended while it was read, and the master did not answer: " +
                               window.renewal.cause()
                         : "its lease ended while it was read");
        }
    }
  }
}

void GetOperation::OnTransfersDone(std::uint32_t tag, std::span<const PieceFailure> failures,
                                   Instant now) {
  Window& window = windows_[tag / kTagsPerWindow];
  window.moving = false;
  for (const PieceFailure& failure : failures) {
    const TransferPiece& piece = window.batch.pieces[failure.piece];
    ItemState& state = states_[piece.item];
    if (IsPeerFault(failure.why)) {
      blame_.Blame(*piece.segment, now);
    }
    if (!state.failed_piece) {
      state.failed_piece = true;
      Moved(window, piece.item, &failure.why, now);
    }
  }
  for (const TransferPiece& piece : window.batch.pieces) {
    ItemState& state = states_[piece.item];
    if (!state.failed_piece && state.phase == Phase::kMoving) {
      Moved(window, piece.item, nullptr, now);
    }
  }
  for (const PieceFailure& failure : failures) {
    states_[window.batch.pieces[failure.piece].item].failed_piece = false;
  }
}

void GetOperation::Moved(Window& window, std::uint32_t item, const Error* why, Instant now) {
  ItemState& state = states_[item];
  if (why != nullptr && !IsPeerFault(*why)) {
    Settle(window, item, CodeOfTransferFailure(*why), why->message);
  } else if (std::exchange(state.gone, false)) {
    Settle(window, item, StoreCode::kLeaseExpired, "it was removed while it was read");
  } else if (std::exchange(state.stale, false)) {
    Replaced(window, item);
  } else if (why != nullptr) {
    ReadFailed(window, item, *why, now);
  } else if (now < state.lease_until) {
    Succeed(window, item);
  } else {
    state.moved_at = now;
    SetPhase(window, state, Phase::kCheck);
  }
}

void GetOperation::ReadFailed(Window& window, std::uint32_t item, const Error& why, Instant now) {
  ItemState& state = states_[item];
  const auto extents = state.location->Extents(state.location->replicas[state.replica]);
  state.tried |= 1U << state.replica;
  const std::uint32_t replicas =
      std::min<std::uint32_t>(32, static_cast<std::uint32_t>(state.location->replicas.size()));
  const std::uint32_t all = replicas == 32 ? UINT32_MAX : (1U << replicas) - 1;
  if (state.tried != all) {
    SetPhase(window, state, Phase::kReady);
    window.renew_at = std::min(window.renew_at, now + (state.lease_until - now) / 2);
    return;
  }
  core_.cache().Forget(items_[item].key);
  state.unreadable = true;
  if (state.asked < kMaxAsked) {
    SetPhase(window, state, Phase::kLookup);
    return;
  }
  Settle(window, item, StoreCode::kTransferFail,
         fmt::format("read of {} bytes from {}: {}", state.location->size_bytes, PeerOf(extents),
                     why.message));
}

void GetOperation::Replaced(Window& window, std::uint32_t item) {
  ItemState& state = states_[item];
  core_.cache().Forget(items_[item].key);
  if (++state.versions > kMaxVersions) {
    Settle(window, item, StoreCode::kLeaseExpired,
           fmt::format("it was replaced {} times while it was read", kMaxVersions));
    return;
  }
  SetPhase(window, state, Phase::kLookup);
}

void GetOperation::Succeed(Window& window, std::uint32_t item) {
  results_[item].code = StoreCode::kOk;
  SetPhase(window, states_[item], Phase::kSettled);
  if (items_[item].fragment_results != nullptr) {
    for (std::size_t i = 0; i < items_[item].fragments.size(); ++i) {
      if (items_[item].fragment_results[i] < 0) {
        const Fragment& fragment = items_[item].fragments[i];
        failures_.Add(
            item, StoreCode::kInvalidParams,
            FailureText(StoreCode::kInvalidParams, "get", items_[item].key,
                        fmt::format("bytes {} + {} are not in its {}", fragment.object_offset,
                                    fragment.length_bytes, states_[item].location->size_bytes)));
      }
    }
  }
  states_[item].location = nullptr;
}

void GetOperation::Settle(Window& window, std::uint32_t item, StoreCode code,
                          std::string_view cause) {
  const GetItem& wanted = items_[item];
  results_[item] = Result{.code = code, .bytes = 0};
  if (wanted.fragment_results != nullptr) {
    std::fill_n(wanted.fragment_results, wanted.fragments.size(),
                static_cast<std::int64_t>(ToInt(code)));
  }
  failures_.Add(
      item, code,
      failures_.Keeps(code) ? FailureText(code, "get", wanted.key, cause) : std::string());
  SetPhase(window, states_[item], Phase::kSettled);
  states_[item].location = nullptr;
}

void GetOperation::SetPhase(Window& window, ItemState& state, Phase phase) {
  const auto count = [&](Phase which, std::uint32_t& counter) {
    counter -= static_cast<std::uint32_t>(state.phase == which);
    counter += static_cast<std::uint32_t>(phase == which);
  };
  count(Phase::kLookup, window.to_lookup);
  count(Phase::kReady, window.ready);
  count(Phase::kCheck, window.to_check);
  window.unsettled -= static_cast<std::uint32_t>(phase == Phase::kSettled);
  state.phase = phase;
}

}  // namespace mooncake::store
