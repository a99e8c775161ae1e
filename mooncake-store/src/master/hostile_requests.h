// What anybody who reaches the port may send: requests that decode, with numbers and texts that no
// client of ours would put there. For the fuzzer and a test.
//
// Thread-safety: none.
// Ownership:     borrows the master and the source of numbers.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "mooncake-store/src/master/master.h"
#include "mooncake-store/src/protocol/codec.h"

namespace mooncake::store {

class HostileRequests {
 public:
  // `next` gives any 64 bits.
  HostileRequests(Master& master, std::function<std::uint64_t()> next)
      : master_(master), next_(std::move(next)) {}

  // One request, after some time, through the codec as from the wire. What the master answers must
  // decode at a client.
  void Send() {
    now_ += std::chrono::milliseconds(next_() % 3000);
    switch (next_() % 16) {
      case 0:
        return Ask<PingReply>(PingRequest{.caller = AnyCaller(), .view_version = Any()});
      case 1:
        return Mount();
      case 2:
        return Ask<UnmountSegmentReply>(UnmountSegmentRequest{
            .caller = AnyCaller(), .segment = AnySegmentId(), .grace_ms = Any()});
      case 3:
        return Ask<ReMountSegmentsReply>(ReMountSegmentsRequest{
            .caller = AnyCaller(), .segments = {AnySegment(), AnySegment()}});
      case 4:
        return Ask<QuerySegmentsReply>(QuerySegmentsRequest{
            .caller = AnyCaller(), .numbers = {static_cast<SegmentNumber>(Any()), 0}});
      case 5:
        return Ask<ReportFailedReadsReply>(ReportFailedReadsRequest{
            .caller = AnyCaller(),
            .segments = {mounted_, {static_cast<SegmentNumber>(Any()), Any()}, mounted_}});
      case 6:
        return Ask<BatchExistReply>(
            BatchExistRequest{.caller = AnyCaller(), .chain = AnyChain(), .keys = AnyKeys()});
      case 7:
        return Ask<BatchGetReplicasReply>(
            BatchGetReplicasRequest{.caller = AnyCaller(),
                                    .chain = AnyChain(),
                                    .keys = AnyKeys(),
                                    .use = next_() % 2 == 0 ? LeaseUse::kRead : LeaseUse::kWhole});
      case 8:
        return Sweep<GetReplicasByRegexReply>(
            GetReplicasByRegexRequest{.caller = AnyCaller(), .pattern = AnyText()});
      case 9:
        return Ask<BatchRemoveReply>(BatchRemoveRequest{
            .caller = AnyCaller(), .force = next_() % 2 == 0, .keys = AnyKeys()});
      case 10:
        return Sweep<RemoveManyReply>(RemoveByRegexRequest{
            .caller = AnyCaller(), .force = next_() % 2 == 0, .pattern = AnyText()});
      case 11:
        return Ask<BatchReplicaClearReply>(BatchReplicaClearRequest{
            .caller = AnyCaller(), .segment_name = AnyText(), .keys = AnyKeys()});
      case 12:
        static_cast<void>(master_.Tick(now_));
        return;
      case 13:
        return End();
      default:
        return Start();
    }
  }

 private:
  // Mostly where sums and casts go wrong.
  std::uint64_t Any() {
    static constexpr std::array<std::uint64_t, 16> kEdges = {
        0,           1,           2,
        4096,        1U << 20U,   0x7fffffff,
        0x80000000,  0xfffffffd,  0xfffffffe,
        0xffffffff,  1ULL << 32U, (1ULL << 63U) - 1,
        1ULL << 63U, kMaxSpanMs,  ~0ULL - 4095,
        ~0ULL};
    const std::uint64_t which = next_() % (kEdges.size() + 1);
    return which < kEdges.size() ? kEdges[which] : next_();
  }
  std::string_view AnyText() {
    static constexpr std::array<std::string_view, 8> kTexts = {
        "", "a", "b", "segment", ".*", "(", "(a|b)*$", std::string_view("\0\xff", 2)};
    return kTexts[next_() % kTexts.size()];
  }
  std::vector<std::string_view> AnyTexts(std::size_t count) {
    std::vector<std::string_view> texts(count);
    for (std::string_view& text : texts) {
      text = AnyText();
    }
    return texts;
  }
  std::vector<std::string_view> AnyKeys() { return AnyTexts(next_() % 4); }
  Caller AnyCaller() {
    return {.client = {next_() % 3, 1},
            .tenant = AnyText(),
            .cache_hits = Any(),
            .cache_hit_bytes = Any()};
  }
  ChainPosition AnyChain() {
    return {.chain_id = Any(),
            .position = static_cast<std::uint32_t>(Any()),
            .total = static_cast<std::uint32_t>(Any())};
  }
  Uuid AnySegmentId() { return {next_() % 3, 7}; }
  SegmentInfo AnySegment() {
    return {.id = AnySegmentId(),
            .name = std::string(AnyText()),
            .base_address = Any(),
            .size_bytes = Any(),
            .te_endpoint = std::string(AnyText()),
            .protocol = std::string(AnyText()),
            .host_id = std::string(AnyText())};
  }

  void Mount() {
    MountSegmentReply reply;
    Ask(
        MountSegmentRequest{
            .caller = AnyCaller(), .segment = AnySegment(), .repeated = next_() % 2 == 0},
        reply);
    if (reply.code == StoreCode::kOk) {
      mounted_ = reply.identity;
    }
  }
  void Start() {
    BatchPutStartRequest request{.caller = AnyCaller(),
                                 .chain = AnyChain(),
                                 .upsert = next_() % 2 == 0,
                                 .config = {.replica_num = 1, .host_id = AnyText()},
                                 .keys = AnyKeys()};
    if (next_() % 2 == 0) {
      request.config.replica_num = static_cast<std::uint32_t>(Any());
      request.config.nof_replica_num = static_cast<std::uint32_t>(Any());
      request.config.dfs_replica_num = static_cast<std::uint32_t>(Any());
    }
    if (next_() % 2 == 0) {
      request.config.soft_pin_action = static_cast<SoftPinAction>(next_() % 3);
      request.config.soft_pin_ttl_ms = Any();
      request.config.with_hard_pin = next_() % 2 == 0;
      request.config.preferred_segments = AnyTexts(next_() % 3);
      request.config.group_ids = AnyTexts(next_() % 2 == 0 ? request.keys.size() : next_() % 3);
    }
    for (std::size_t i = 0; i < request.keys.size(); ++i) {
      request.sizes_bytes.push_back(Any());
    }
    BatchPutStartReply reply;
    Ask(request, reply);
    for (const PutStartResult& result : reply.results) {
      started_ = result.code == StoreCode::kOk ? result.version : started_;
    }
  }
  void End() {
    BatchPutEndRequest request{.caller = AnyCaller(), .keys = AnyKeys()};
    for (std::size_t i = 0; i < request.keys.size(); ++i) {
      request.endings.push_back({.version = next_() % 2 == 0 ? started_ : Any(),
                                 .success = next_() % 2 == 0,
                                 .has_checksum = next_() % 2 == 0,
                                 .checksum = Any()});
    }
    BatchPutEndReply reply;
    Ask(request, reply);
  }

  template <typename Reply, typename Request>
  void Ask(const Request& request) {
    Reply reply;
    Ask(request, reply);
  }
  template <typename Request, typename Reply>
  void Ask(const Request& request, Reply& reply) {
    if (Request taken; wire_.Decode(wire_.Encode(request), taken)) {
      master_.Handle(taken, now_, reply);
      CheckAnswer(reply);
    }
  }
  template <typename Reply, typename Request>
  void Sweep(const Request& request) {
    Request taken;
    if (!wire_.Decode(wire_.Encode(request), taken)) {
      return;
    }
    ObjectSweep sweep;
    Reply reply;
    reply.code = Master::Begin(taken, sweep);
    for (bool done = reply.code != StoreCode::kOk; !done;) {
      if constexpr (std::is_same_v<Reply, RemoveManyReply>) {
        done = master_.StepRemove(sweep, now_);
      } else {
        done = master_.StepGet(sweep, taken.caller.client, now_, reply);
      }
    }
    CheckAnswer(reply);
  }
  template <typename Reply>
  void CheckAnswer(const Reply& reply) {
    Reply told;
    MC_CHECK(answers_.Decode(answers_.Encode(reply), told).has_value());
  }

  Master& master_;
  const std::function<std::uint64_t()> next_;
  Instant now_{};
  Codec wire_;  // A decoded request points into its bytes.
  Codec answers_;
  SegmentIdentity mounted_;
  std::uint64_t started_ = 0;
};

}  // namespace mooncake::store
