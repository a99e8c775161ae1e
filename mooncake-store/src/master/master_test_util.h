// A master on a clock that the test moves, with one-line calls. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-store/src/master/eviction/policies.h"
#include "mooncake-store/src/master/master.h"

namespace mooncake::store {

class TestMaster {
 public:
  explicit TestMaster(MasterOptions options = {}, EventSink* sink = nullptr,
                      std::unique_ptr<EvictionPolicy> policy = MakePolicy(EvictionPolicyKind::kHdi,
                                                                          1))
      : master(options, std::move(policy), sink) {}

  static Uuid Client(std::uint64_t number) { return {number, number + 1000}; }
  static SegmentInfo Info(std::uint64_t number, std::uint64_t bytes, std::string host = "") {
    return {.id = {number, 7},
            .name = "host" + std::to_string(number) + ":12345",
            .base_address = number << 40U,
            .size_bytes = bytes,
            .te_endpoint = "host" + std::to_string(number) + ":23456",
            .protocol = "tcp",
            .host_id = std::move(host)};
  }

  // Segment `number`, owned by client `number`.
  StoreCode Mount(std::uint64_t number, std::uint64_t bytes, std::string host = "") {
    MountSegmentReply reply;
    master.Handle(MountSegmentRequest{.caller = {.client = Client(number)},
                                      .segment = Info(number, bytes, std::move(host))},
                  now(), reply);
    return reply.code;
  }
  StoreCode Unmount(std::uint64_t number, std::uint64_t grace_ms = 0) {
    UnmountSegmentReply reply;
    master.Handle(
        UnmountSegmentRequest{
            .caller = {.client = Client(number)}, .segment = {number, 7}, .grace_ms = grace_ms},
        now(), reply);
    return reply.code;
  }
  ClientStatus Ping(std::uint64_t client) {
    PingReply reply;
    master.Handle(PingRequest{.caller = {.client = Client(client)}}, now(), reply);
    return reply.status;
  }

  // The whole reply is kept in `started`.
  StoreCode Start(const std::string& key, std::uint64_t size, std::uint64_t client = 1,
                  const ReplicateConfigView& config = {}, bool upsert = false) {
    master.Handle(
        BatchPutStartRequest{.caller = {.client = Client(client)},
                             .chain = {.chain_id = ++last_chain, .position = 0, .total = 1},
                             .upsert = upsert,
                             .config = config,
                             .keys = {key},
                             .sizes_bytes = {size}},
        now(), started);
    return started.results.at(0).code;
  }
  StoreCode End(const std::string& key, std::uint64_t client = 1, PutEnding ending = {}) {
    BatchPutEndReply reply;
    master.Handle(
        BatchPutEndRequest{
            .caller = {.client = Client(client)}, .keys = {key}, .endings = {ending}},
        now(), reply);
    return reply.codes.at(0);
  }
  StoreCode Put(const std::string& key, std::uint64_t size, std::uint64_t client = 1,
                const ReplicateConfigView& config = {}, bool upsert = false) {
    const StoreCode code = Start(key, size, client, config, upsert);
    return code == StoreCode::kOk ? End(key, client) : code;
  }
  StoreCode Upsert(const std::string& key, std::uint64_t size, std::uint64_t client = 1,
                   const ReplicateConfigView& config = {}) {
    return Put(key, size, client, config, true);
  }

  bool Exists(const std::string& key, std::uint64_t client = 1) {
    BatchExistReply reply;
    master.Handle(BatchExistRequest{.caller = {.client = Client(client)},
                                    .chain = {.chain_id = ++last_chain, .total = 1},
                                    .keys = {key}},
                  now(), reply);
    return reply.exists.at(0) == 1;
  }
  // The whole reply is kept in `got`.
  StoreCode Get(const std::string& key, std::uint64_t client = 1, LeaseUse use = LeaseUse::kRead) {
    master.Handle(BatchGetReplicasRequest{.caller = {.client = Client(client)},
                                          .chain = {.chain_id = ++last_chain, .total = 1},
                                          .keys = {key},
                                          .use = use},
                  now(), got);
    return got.objects.at(0).code;
  }
  // Where the object's bytes are, of the last Get(): offsets of its first replica.
  std::vector<Extent> GotExtents(std::uint32_t replica = 0) {
    const auto replicas = got.table.Replicas(got.objects.at(0).replicas);
    const auto extents = got.table.Extents(replicas[replica]);
    return {extents.begin(), extents.end()};
  }
  StoreCode Remove(const std::string& key, bool force = false) {
    BatchRemoveReply reply;
    master.Handle(BatchRemoveRequest{.force = force, .keys = {key}}, now(), reply);
    return reply.codes.at(0);
  }
  std::uint64_t RemoveAll(bool force = false) {
    ObjectSweep sweep;
    EXPECT_EQ(Master::Begin(RemoveAllRequest{.force = force}, sweep), StoreCode::kOk);
    while (!master.StepRemove(sweep, now())) {
    }
    return sweep.removed;
  }
  std::uint64_t RemoveByRegex(std::string_view pattern, bool force = false) {
    ObjectSweep sweep;
    EXPECT_EQ(Master::Begin(RemoveByRegexRequest{.force = force, .pattern = pattern}, sweep),
              StoreCode::kOk);
    while (!master.StepRemove(sweep, now())) {
    }
    return sweep.removed;
  }
  void ReportFailed(std::uint64_t client, const std::vector<SegmentNumber>& numbers) {
    ReportFailedReadsRequest request{.caller = {.client = Client(client)}};
    for (const SegmentReport& report : master.ReportSegments(now())) {
      for (const SegmentNumber number : numbers) {
        if (report.segment.identity.number == number) {
          request.segments.push_back(report.segment.identity);
        }
      }
    }
    ReportFailedReadsReply reply;
    master.Handle(request, now(), reply);
  }
  void Tick() {
    while (master.Tick(now())) {
    }
  }

  [[nodiscard]] Instant now() const { return clock.Now(); }
  void Advance(Duration by) { clock.Advance(by); }

  ManualClock clock;
  Master master;
  BatchPutStartReply started;
  BatchGetReplicasReply got;
  std::uint64_t last_chain = 0;
};

}  // namespace mooncake::store
