// Scatter transfers of the classic interface: all fragments of all ranges are tasks of one batch.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "mooncake-transfer-engine/src/faces/classic_types.h"

namespace mooncake {

struct ScatterTransferOperation::State {
  struct Listener {
    std::size_t first_task;
    std::size_t fragments;
    std::function<void(std::size_t, const Status&)> on_fragment_complete;
  };
  std::shared_ptr<transfer::Engine> engine;
  BatchID batch = INVALID_BATCH_ID;  // INVALID_BATCH_ID: nothing is under way (any more).
  std::vector<Listener> listeners;
  Status outcome;
};

ScatterTransferOperation::ScatterTransferOperation(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
ScatterTransferOperation::ScatterTransferOperation(ScatterTransferOperation&&) noexcept = default;
ScatterTransferOperation& ScatterTransferOperation::operator=(
    ScatterTransferOperation&& other) noexcept {
  if (this != &other) {
    if (state_ != nullptr) {
      wait();
    }
    state_ = std::move(other.state_);
  }
  return *this;
}

ScatterTransferOperation::~ScatterTransferOperation() {
  if (state_ != nullptr) {
    wait();
  }
}

Status ScatterTransferOperation::wait() { return waitFor(std::chrono::nanoseconds::max()); }

Status ScatterTransferOperation::waitFor(std::chrono::nanoseconds timeout) {
  constexpr std::chrono::hours kForEver(24 * 365);  // Longer waits would overflow the clock.
  if (state_->batch != INVALID_BATCH_ID && timeout > std::chrono::nanoseconds::zero()) {
    // What it returns does not matter: each task tells its own end.
    static_cast<void>(state_->engine->Wait(
        state_->batch, timeout < kForEver ? timeout : std::chrono::nanoseconds::zero()));
  }
  return Settle(timeout);
}

// The outcome, once all fragments have ended.
Status ScatterTransferOperation::Settle(std::chrono::nanoseconds waited) {
  State& state = *state_;
  if (state.batch == INVALID_BATCH_ID) {
    return state.outcome;
  }
  std::vector<Status> ends;
  for (const State::Listener& listener : state.listeners) {
    for (std::size_t i = 0; i < listener.fragments; ++i) {
      const std::size_t task = listener.first_task + i;
      const auto status = state.engine->TaskStatus(state.batch, task);
      if (status && !transfer::IsTerminal(status->state)) {
        return {Status::Code::kSocket,
                fmt::format("wait for a scatter transfer: not finished after {} ms; it goes on",
                            waited.count() / 1'000'000)};
      }
      const auto why = state.engine->TaskError(state.batch, task);
      ends.push_back(!status ? ToStatus(status) : why ? ToStatus(*why) : Status::OK());
    }
  }
  static_cast<void>(state.engine->FreeBatch(std::exchange(state.batch, INVALID_BATCH_ID)));
  for (const State::Listener& listener : state.listeners) {
    for (std::size_t i = 0; i < listener.fragments; ++i) {
      const Status& end = ends[listener.first_task + i];
      if (state.outcome.ok()) {
        state.outcome = end;
      }
      if (listener.on_fragment_complete) {
        listener.on_fragment_complete(i, end);
      }
    }
  }
  return state.outcome;
}

namespace {

Result<void> CheckRange(const ScatterTransferRange& range) {
  if (range.local_offsets.size() != range.lengths.size() ||
      range.remote_offsets.size() != range.lengths.size()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("scatter with segment {}: {} local offsets, {} remote offsets, {} "
                            "lengths; give as many of each",
                            range.remote_segment, range.local_offsets.size(),
                            range.remote_offsets.size(), range.lengths.size()));
  }
  for (std::size_t i = 0; i < range.lengths.size(); ++i) {
    const auto inside = [length = range.lengths[i]](std::size_t offset, std::size_t size) {
      return offset <= size && length <= size - offset;
    };
    if (!inside(range.local_offsets[i], range.local_capacity) ||
        !inside(range.remote_offsets[i], range.remote_size)) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("scatter with segment {}: fragment {} of {} bytes lies outside the "
                              "local {} or the remote {} bytes",
                              range.remote_segment, i, range.lengths[i], range.local_capacity,
                              range.remote_size));
    }
  }
  return {};
}

Result<BatchID> Begin(transfer::Engine& engine, const std::vector<ScatterTransferRange>& ranges) {
  std::vector<transfer::TransferRequest> requests;
  for (const ScatterTransferRange& range : ranges) {
    MC_TRY(CheckRange(range));
    MC_TRY_ASSIGN(const SegmentID segment, engine.OpenSegment(range.remote_segment));
    for (std::size_t i = 0; i < range.lengths.size(); ++i) {
      requests.push_back(
          ToRequest({.opcode = range.opcode,
                     .source = static_cast<std::byte*>(range.local_buffer) + range.local_offsets[i],
                     .target_id = segment,
                     .target_offset = range.remote_base_offset + range.remote_offsets[i],
                     .length = range.lengths[i]}));
    }
  }
  if (requests.empty()) {
    return INVALID_BATCH_ID;
  }
  MC_TRY_ASSIGN(const BatchID batch, engine.AllocateBatch(requests.size()));
  if (auto submitted = engine.Submit(batch, requests); !submitted) {
    static_cast<void>(engine.FreeBatch(batch));
    return std::unexpected(std::move(submitted).error());
  }
  return batch;
}

}  // namespace

ScatterTransferOperation TransferEngine::submitScatter(
    const std::vector<ScatterTransferRange>& ranges) {
  auto state = std::make_unique<ScatterTransferOperation::State>();
  state->engine = engine_;
  const auto batch =
      engine_ ? Begin(*engine_, ranges) : Result<BatchID>(std::unexpected(NotInitialised()));
  if (batch) {
    state->batch = *batch;
  } else {
    state->outcome = ToStatus(batch);
  }
  std::size_t task = 0;
  for (const ScatterTransferRange& range : ranges) {
    state->listeners.push_back({.first_task = task,
                                .fragments = range.lengths.size(),
                                .on_fragment_complete = range.on_fragment_complete});
    task += range.lengths.size();
  }
  return ScatterTransferOperation(std::move(state));
}

Status TransferEngine::transferScatter(const std::vector<ScatterTransferRange>& ranges) {
  return submitScatter(ranges).wait();
}

}  // namespace mooncake
