// Drives one operation on a virtual clock and writes down, line by line, what it wanted: the
// readable transcripts of the client's tests.
//
// Thread-safety: none.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-store/src/client/operation.h"

namespace mooncake::store {

// "get a, b" and so on.
inline std::string DescribeCall(const MasterCall& call) {
  struct Describe {
    static std::string Keys(const std::vector<std::string_view>& keys) {
      if (keys.size() > 4) {
        return fmt::format(" {}..{} ({})", keys.front(), keys.back(), keys.size());
      }
      std::string text;
      for (const auto key : keys) {
        text += fmt::format(" {}", key);
      }
      return text;
    }
    std::string operator()(std::monostate) const { return "nothing"; }
    std::string operator()(const Exchange<PingRequest, PingReply>& e) const {
      return fmt::format("ping view={}", e.request->view_version);
    }
    std::string operator()(const Exchange<MountSegmentRequest, MountSegmentReply>& e) const {
      return e.request->repeated ? "mount, repeated" : "mount";
    }
    std::string operator()(const Exchange<ReMountSegmentsRequest, ReMountSegmentsReply>& e) const {
      return fmt::format("remount {}", e.request->segments.size());
    }
    std::string operator()(const Exchange<UnmountSegmentRequest, UnmountSegmentReply>&) const {
      return "unmount";
    }
    std::string operator()(const Exchange<QuerySegmentsRequest, QuerySegmentsReply>& e) const {
      return fmt::format("segments {}", fmt::join(e.request->numbers, " "));
    }
    std::string operator()(const Exchange<BatchExistRequest, BatchExistReply>& e) const {
      return "exist" + Keys(e.request->keys);
    }
    std::string operator()(
        const Exchange<BatchGetReplicasRequest, BatchGetReplicasReply>& e) const {
      return "lookup" + Keys(e.request->keys);
    }
    std::string operator()(
        const Exchange<GetReplicasByRegexRequest, GetReplicasByRegexReply>&) const {
      return "lookup by regex";
    }
    std::string operator()(const Exchange<BatchPutStartRequest, BatchPutStartReply>& e) const {
      return (e.request->upsert ? "upsert start" : "put start") + Keys(e.request->keys);
    }
    std::string operator()(const Exchange<BatchPutEndRequest, BatchPutEndReply>& e) const {
      std::string text = "put end";
      for (std::size_t i = 0; i < e.request->keys.size() && i < 4; ++i) {
        text += fmt::format(" {}{}", e.request->endings[i].success ? "+" : "-", e.request->keys[i]);
      }
      return text;
    }
    std::string operator()(const Exchange<BatchRemoveRequest, BatchRemoveReply>& e) const {
      return "remove" + Keys(e.request->keys);
    }
    std::string operator()(const Exchange<RemoveByRegexRequest, RemoveManyReply>&) const {
      return "remove by regex";
    }
    std::string operator()(const Exchange<RemoveAllRequest, RemoveManyReply>&) const {
      return "remove all";
    }
    std::string operator()(
        const Exchange<BatchReplicaClearRequest, BatchReplicaClearReply>&) const {
      return "clear replicas";
    }
    std::string operator()(
        const Exchange<ReportFailedReadsRequest, ReportFailedReadsReply>& e) const {
      return fmt::format("report {} segments", e.request->segments.size());
    }
  };
  return std::visit(Describe{}, call);
}

class ScriptedDriver {
 public:
  // Fills the reply, or says why there is none.
  using Server = std::function<std::optional<Error>(const MasterCall&)>;
  // Moves the bytes; returns what failed.
  using Mover = std::function<std::vector<PieceFailure>(const TransferBatch&)>;

  ScriptedDriver(Server server, Mover mover)
      : server_(std::move(server)), mover_(std::move(mover)) {}

  Instant now{std::chrono::seconds(1000)};
  Duration call_time = std::chrono::milliseconds(1);
  Duration transfer_time = std::chrono::milliseconds(1);
  // Milliseconds since the driver was made, and what happened, a line each.
  std::string transcript;

  // Until kDone. False if it waits for ever.
  bool Run(Operation& operation) { return RunUntil(operation, Instant::max()); }

  bool RunUntil(Operation& operation, Instant end) {
    while (true) {
      Action action = operation.Next(now);
      switch (action.kind) {
        case ActionKind::kDone:
          return true;
        case ActionKind::kForget:
          Note("forget");
          std::erase_if(pending_,
                        [&](const auto& entry) { return entry.second.tag == action.tag; });
          continue;
        case ActionKind::kCall:
          Note(DescribeCall(action.call));
          pending_.emplace(now + call_time, Pending{.tag = action.tag, .call = action.call});
          continue;
        case ActionKind::kTransfer:
          Note(fmt::format("{} {} pieces",
                           action.transfers->opcode == TransferOpcode::kRead ? "read" : "write",
                           action.transfers->pieces.size()));
          pending_.emplace(now + transfer_time,
                           Pending{.tag = action.tag, .call = {}, .batch = action.transfers});
          continue;
        case ActionKind::kWait:
          break;
      }
      Instant next = action.until;
      if (!pending_.empty()) {
        next = std::min(next, pending_.begin()->first);
      }
      if (next == Instant::max() || next > end) {
        return false;
      }
      now = std::max(now, next);
      if (!pending_.empty() && pending_.begin()->first <= now) {
        Deliver(operation);
      }
    }
  }

 private:
  struct Pending {
    std::uint32_t tag = 0;
    MasterCall call;
    const TransferBatch* batch = nullptr;
  };

  void Deliver(Operation& operation) {
    const Pending done = pending_.begin()->second;
    pending_.erase(pending_.begin());
    if (done.batch != nullptr) {
      const auto failures = mover_(*done.batch);
      operation.OnTransfersDone(done.tag, failures, now);
    } else if (const auto error = server_(done.call)) {
      Note(fmt::format("no answer: {}", error->message));
      operation.OnCallFailed(done.tag, *error, now);
    } else {
      operation.OnReply(done.tag, now);
    }
  }

  void Note(std::string_view text) {
    transcript += fmt::format("{} {}\n", (now - begin_).count() / 1'000'000, text);
  }

  Server server_;
  Mover mover_;
  const Instant begin_ = now;
  std::multimap<Instant, Pending> pending_;
};

}  // namespace mooncake::store
