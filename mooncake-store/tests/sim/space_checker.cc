#include "mooncake-store/tests/sim/space_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <variant>

namespace mooncake::store {

std::string SpaceChecker::OnServed(const MasterCall& call, Instant now) {
  return std::visit(
      [&](const auto& exchange) -> std::string {
        using Kind = std::decay_t<decltype(exchange)>;
        if constexpr (std::is_same_v<Kind, Exchange<MountSegmentRequest, MountSegmentReply>>) {
          Mounted(exchange.request->segment, *exchange.reply);
        } else if constexpr (std::is_same_v<
                                 Kind, Exchange<ReMountSegmentsRequest, ReMountSegmentsReply>>) {
          for (std::size_t i = 0; i < exchange.reply->segments.size(); ++i) {
            Mounted(exchange.request->segments.at(i), exchange.reply->segments[i]);
          }
        } else if constexpr (std::is_same_v<Kind,
                                            Exchange<BatchPutStartRequest, BatchPutStartReply>>) {
          return Granted(*exchange.request, *exchange.reply, now);
        } else if constexpr (std::is_same_v<Kind, Exchange<BatchPutEndRequest, BatchPutEndReply>>) {
          return Ended(*exchange.request, *exchange.reply);
        } else if constexpr (std::is_same_v<
                                 Kind, Exchange<BatchGetReplicasRequest, BatchGetReplicasReply>>) {
          return Found(*exchange.request, *exchange.reply, now);
        }
        return "";
      },
      call);
}

void SpaceChecker::Mounted(const SegmentInfo& info, const MountSegmentReply& reply) {
  if (reply.code == StoreCode::kOk) {
    bases_[{reply.identity.number, reply.identity.incarnation}] = info.base_address;
  }
}

std::vector<SpaceChecker::Range> SpaceChecker::RangesOf(const ReplicaTable& table,
                                                        ReplicaRange replicas) const {
  std::vector<Range> ranges;
  for (const Replica& replica : table.Replicas(replicas)) {
    for (const Extent& extent : table.Extents(replica)) {
      const std::uint64_t begin =
          bases_.at({extent.segment, extent.incarnation}) + extent.offset_bytes;
      ranges.push_back({.begin = begin, .end = begin + extent.length_bytes});
    }
  }
  return ranges;
}

std::string SpaceChecker::Granted(const BatchPutStartRequest& request,
                                  const BatchPutStartReply& reply, Instant now) {
  for (std::size_t i = 0; i < reply.results.size(); ++i) {
    const PutStartResult& result = reply.results[i];
    if (result.code != StoreCode::kOk) {
      continue;
    }
    const auto ranges = RangesOf(reply.table, result.replicas);
    if (const auto known = grants_.find(result.version); known != grants_.end()) {
      // A repeated start is answered alike, less the replicas lost with their segment since.
      const bool same = std::ranges::all_of(ranges, [&](const Range& range) {
        return std::ranges::any_of(known->second.ranges, [&](const Range& mine) {
          return mine.SamePlace(range) && mine.given_to == 0;
        });
      });
      if (!same || known->second.key != request.keys[i]) {
        return fmt::format("version {} of {} is given a second, different place", result.version,
                           request.keys[i]);
      }
      continue;
    }
    for (const Range& range : ranges) {
      if (being_written_(range.begin, range.end)) {
        return fmt::format(
            "version {} of {} is given bytes [{:x}, {:x}) to which another writer's "
            "may still be on their way",
            result.version, request.keys[i], range.begin, range.end);
      }
      for (auto& [version, other] : grants_) {
        for (Range& theirs : other.ranges) {
          if (!theirs.Overlaps(range)) {
            continue;
          }
          if (theirs.lease_until > now) {
            return fmt::format(
                "version {} of {} is given bytes of version {} of {}, whose lease lives for {} us "
                "more",
                result.version, request.keys[i], version, other.key,
                (theirs.lease_until - now).count() / 1000);
          }
          theirs.given_to = result.version;
        }
      }
    }
    grants_[result.version] = Grant{.key = std::string(request.keys[i]), .ranges = ranges};
  }
  return "";
}

std::string SpaceChecker::Ended(const BatchPutEndRequest& request,
                                const BatchPutEndReply& reply) const {
  for (std::size_t i = 0; i < reply.codes.size(); ++i) {
    const PutEnding& ending = request.endings[i];
    const auto known = grants_.find(ending.version);
    if (reply.codes[i] != StoreCode::kOk || !ending.success || known == grants_.end()) {
      continue;
    }
    // One replica may have been lost with its segment; a write of which nothing is left is not
    // whole.
    const auto& ranges = known->second.ranges;
    if (std::ranges::all_of(ranges, [](const Range& range) { return range.given_to != 0; })) {
      return fmt::format("version {} of {} is completed, but its bytes belong to version {}",
                         ending.version, request.keys[i], ranges.front().given_to);
    }
  }
  return "";
}

std::string SpaceChecker::Found(const BatchGetReplicasRequest& request,
                                const BatchGetReplicasReply& reply, Instant now) {
  for (std::size_t i = 0; i < reply.objects.size(); ++i) {
    const ObjectLocation& object = reply.objects[i];
    if (object.code != StoreCode::kOk) {
      continue;
    }
    const auto known = grants_.find(object.version);
    if (known == grants_.end() || known->second.key != request.keys[i]) {
      return fmt::format("{} is found as version {}, which nobody was given", request.keys[i],
                         object.version);
    }
    for (const Range& range : RangesOf(reply.table, object.replicas)) {
      const auto mine = std::ranges::find_if(
          known->second.ranges, [&](const Range& other) { return other.SamePlace(range); });
      if (mine == known->second.ranges.end()) {
        return fmt::format("{} version {} is found where it was not written", request.keys[i],
                           object.version);
      }
      if (mine->given_to != 0) {
        return fmt::format("{} is found as version {}, but some of its bytes belong to version {}",
                           request.keys[i], object.version, mine->given_to);
      }
      mine->lease_until =
          std::max(mine->lease_until, now + std::chrono::milliseconds(reply.lease_ttl_ms));
    }
  }
  return "";
}

}  // namespace mooncake::store
