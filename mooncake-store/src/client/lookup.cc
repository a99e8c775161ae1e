#include "mooncake-store/src/client/lookup.h"

#include <algorithm>
#include <span>
#include <utility>

#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/failure.h"

namespace mooncake::store {

namespace {

// Tables come from a peer: a run that leaves its vector is as good as none.
template <typename T>
std::span<const T> Run(const std::vector<T>& all, std::uint32_t first, std::uint32_t count) {
  if (first > all.size() || count > all.size() - first) {
    return {};
  }
  return std::span(all).subspan(first, count);
}

}  // namespace

ResolveResult Resolve(ClientCore& core, const ReplicaTable& table, ReplicaRange range,
                      std::uint64_t size_bytes, std::vector<SegmentNumber>& missing) {
  ResolveResult result{.location = std::make_shared<Location>()};
  Location& location = *result.location;
  location.size_bytes = size_bytes;
  const auto replicas = Run(table.replicas, range.first, range.count);
  location.replicas.reserve(replicas.size());
  location.extents.reserve(replicas.size());
  for (const Replica& replica : replicas) {
    if (replica.type != ReplicaType::kMemory) {
      continue;
    }
    const auto first = static_cast<std::uint32_t>(location.extents.size());
    std::uint64_t held_bytes = 0;
    bool known = true;
    for (const Extent& extent : Run(table.extents, replica.first_extent, replica.extent_count)) {
      auto segment = core.segments().Find(extent.segment, extent.incarnation);
      if (segment == nullptr) {
        missing.push_back(extent.segment);
        known = false;
        continue;
      }
      const std::uint64_t address = segment->info.base_address + extent.offset_bytes;
      held_bytes += extent.length_bytes;
      location.extents.push_back(LocatedExtent{
          .segment = std::move(segment), .address = address, .length_bytes = extent.length_bytes});
    }
    if (known && held_bytes >= size_bytes) {
      location.replicas.push_back(LocatedReplica{
          .first_extent = first,
          .extent_count = static_cast<std::uint32_t>(location.extents.size()) - first});
    } else {
      location.extents.resize(first);
      result.complete = result.complete && known;
    }
  }
  return result;
}

void Lookup::Begin(ClientCore& core, std::uint32_t tag, ChainPosition chain, LeaseUse use,
                   Instant now) {
  MC_CHECK(stage_ == Stage::kIdle);
  core_ = &core;
  tag_ = tag;
  stage_ = Stage::kAsking;
  finished_ = false;
  cause_.clear();
  answers_.clear();
  tickets_.clear();
  request_.chain = chain;
  request_.use = use;
  request_.keys.clear();
  slot_.Begin(now, core.options().master_patience, chain.chain_id + tag);
}

void Lookup::Add(std::string_view key, std::uint32_t item) {
  request_.keys.push_back(key);
  answers_.push_back(Answer{.item = item, .code = StoreCode::kInternalError, .location = {}});
  tickets_.push_back(core_->options().descriptor_cache ? core_->cache().TicketFor(key) : 0);
}

bool Lookup::Cancel() {
  stage_ = Stage::kIdle;
  finished_ = false;
  const bool under_way = slot_.under_way();
  slot_.Answered();
  return under_way;
}

bool Lookup::TakeFinished() { return std::exchange(finished_, false); }

std::optional<Action> Lookup::Next(Instant now) {
  if (!slot_.ShouldSend(now)) {
    return std::nullopt;
  }
  slot_.Sent(now);
  const Instant deadline = now + core_->options().rpc_timeout;
  if (stage_ == Stage::kAsking) {
    asked_at_ = now;
    request_.caller = core_->MakeCaller();
    return Action::Call(
        tag_, deadline,
        Exchange<BatchGetReplicasRequest, BatchGetReplicasReply>{&request_, &reply_});
  }
  segments_request_.caller = core_->MakeCaller();
  segments_request_.numbers = missing_;
  return Action::Call(
      tag_, deadline,
      Exchange<QuerySegmentsRequest, QuerySegmentsReply>{&segments_request_, &segments_reply_});
}

void Lookup::OnReply(Instant now) {
  slot_.Answered();
  if (stage_ == Stage::kResolving) {
    for (const QueriedSegment& segment : segments_reply_.segments) {
      core_->segments().Learn(segment);
    }
    Build(/*last_try=*/true);
    return;
  }
  if (reply_.code != StoreCode::kOk || reply_.objects.size() != answers_.size()) {
    cause_ = "the master refused the whole lookup";
    FailAll(reply_.code == StoreCode::kOk ? StoreCode::kInternalError : reply_.code);
    return;
  }
  Build(/*last_try=*/false);
  if (stage_ == Stage::kResolving) {
    slot_.Begin(now, core_->options().master_patience, request_.chain.chain_id + tag_);
  }
}

void Lookup::Build(bool last_try) {
  missing_.clear();
  const Instant lease_until = asked_at_ + std::chrono::milliseconds(reply_.lease_ttl_ms);
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    Answer& answer = answers_[i];
    const ObjectLocation& object = reply_.objects[i];
    answer.code = object.code;
    answer.location = nullptr;
    answer.lease_until = lease_until;
    if (object.code != StoreCode::kOk) {
      continue;
    }
    ResolveResult resolved =
        Resolve(*core_, reply_.table, object.replicas, object.size_bytes, missing_);
    if (resolved.location->replicas.empty()) {
      // Either nothing lies in memory, or the segment left between the two questions.
      answer.code = resolved.complete ? StoreCode::kInvalidReplica : StoreCode::kSegmentNotFound;
      continue;
    }
    resolved.location->version = object.version;
    resolved.location->from_put = object.from_put;
    answer.location = std::move(resolved.location);
  }
  if (!missing_.empty() && !last_try) {
    std::ranges::sort(missing_);
    const auto twice = std::ranges::unique(missing_);
    missing_.erase(twice.begin(), twice.end());
    stage_ = Stage::kResolving;
    return;
  }
  if (core_->options().descriptor_cache) {
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (answers_[i].code == StoreCode::kOk && answers_[i].location->from_put) {
        core_->cache().Offer(request_.keys[i], answers_[i].location, lease_until, tickets_[i]);
      }
    }
  }
  Finish();
}

void Lookup::OnCallFailed(const Error& why, Instant now) {
  if (slot_.Failed(why, now)) {
    return;
  }
  cause_ = why.message;
  FailAll(CodeOfCallFailure(why));
}

void Lookup::FailAll(StoreCode code) {
  for (Answer& answer : answers_) {
    answer.code = code;
    answer.location = nullptr;
  }
  Finish();
}

void Lookup::Finish() {
  stage_ = Stage::kIdle;
  finished_ = true;
}

}  // namespace mooncake::store
