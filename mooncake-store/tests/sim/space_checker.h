// Watches every answer of the master from outside and keeps its own map of who owns which byte of
// which memory. What it objects to:
//   - a range given to a writer while bytes of another write may still arrive there, or while a
//   lease
//     on it lives: whoever it belonged to before, and whatever happened since;
//   - a lookup that answers with a range that was meanwhile given to somebody else;
//   - a write that is completed though its range was meanwhile given to somebody else;
//   - two answers that place one version differently.
//
// Addresses, not segments, are compared, so that a segment mounted again is the same memory.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-store/src/client/operation.h"

namespace mooncake::store {

class SpaceChecker {
 public:
  // Whether bytes of some write may still arrive between two addresses.
  using BeingWritten = std::function<bool(std::uint64_t begin, std::uint64_t end)>;

  explicit SpaceChecker(BeingWritten being_written) : being_written_(std::move(being_written)) {}

  // The master answered. Returns what is wrong, empty = nothing.
  [[nodiscard]] std::string OnServed(const MasterCall& call, Instant now);

 private:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Instant lease_until{};       // The latest that a reader was promised.
    std::uint64_t given_to = 0;  // The version that got some of its bytes later; 0 = nobody.

    [[nodiscard]] bool Overlaps(const Range& other) const {
      return begin < other.end && other.begin < end;
    }
    [[nodiscard]] bool SamePlace(const Range& other) const {
      return begin == other.begin && end == other.end;
    }
  };
  // What one version of a key was given.
  struct Grant {
    std::string key;
    std::vector<Range> ranges;
  };

  [[nodiscard]] std::string Granted(const BatchPutStartRequest& request,
                                    const BatchPutStartReply& reply, Instant now);
  void Mounted(const SegmentInfo& info, const MountSegmentReply& reply);
  [[nodiscard]] std::string Ended(const BatchPutEndRequest& request,
                                  const BatchPutEndReply& reply) const;
  [[nodiscard]] std::string Found(const BatchGetReplicasRequest& request,
                                  const BatchGetReplicasReply& reply, Instant now);
  [[nodiscard]] std::vector<Range> RangesOf(const ReplicaTable& table, ReplicaRange replicas) const;

  const BeingWritten being_written_;
  std::map<std::pair<SegmentNumber, std::uint64_t>, std::uint64_t> bases_;
  std::map<std::uint64_t, Grant> grants_;  // By version.
};

}  // namespace mooncake::store
