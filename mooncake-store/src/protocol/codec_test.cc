#include "mooncake-store/src/protocol/codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

const std::vector<std::string_view> kKeys = {"a", "", std::string_view("a key with \0 inside", 19),
                                             "d"};

BatchPutStartRequest PutStart() {
  BatchPutStartRequest request;
  request.caller = {
      .client = {.first = 1, .second = 2}, .tenant = "t", .cache_hits = 3, .cache_hit_bytes = 4};
  request.chain = {.chain_id = 5, .position = 6, .total = 10};
  request.upsert = true;
  request.config.replica_num = 2;
  request.config.soft_pin_action = SoftPinAction::kEnable;
  request.config.soft_pin_ttl_ms = 0;
  request.config.with_hard_pin = true;
  request.config.preferred_segment = "p";
  request.config.preferred_segments = {"q", "r"};
  request.config.group_ids = {"g", "", "", "h"};
  request.config.host_id = "host";
  request.keys = kKeys;
  request.sizes_bytes = {1, 2, UINT64_MAX, 4};
  return request;
}

BatchGetReplicasReply Replicas() {
  BatchGetReplicasReply reply;
  reply.lease_ttl_ms = 500;
  reply.table.extents = {{.segment = 1, .incarnation = 2, .offset_bytes = 3, .length_bytes = 4},
                         {.segment = 5, .incarnation = 6, .offset_bytes = 7, .length_bytes = 8}};
  reply.table.replicas = {{.first_extent = 0, .extent_count = 2},
                          {.first_extent = 1, .extent_count = 1, .type = ReplicaType::kLocalDisk}};
  reply.objects = {{.code = StoreCode::kOk,
                    .data_type = 3,
                    .from_put = true,
                    .has_checksum = true,
                    .size_bytes = 12,
                    .version = 9,
                    .checksum = 10,
                    .replicas = {.first = 0, .count = 2}},
                   {.code = StoreCode::kObjectNotFound}};
  return reply;
}

template <typename Message>
Message RoundTrip(const Message& message) {
  Codec sender;
  Codec receiver;
  const auto bytes = sender.Encode(message);
  static std::vector<std::byte> kept;  // Decoded views point here.
  kept.assign(bytes.begin(), bytes.end());
  Message decoded;
  const auto result = receiver.Decode(kept, decoded);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().ToString());
  return decoded;
}

TEST(Codec, APutStartComesBackWhole) {
  const auto sent = PutStart();
  const auto got = RoundTrip(sent);
  EXPECT_EQ(got.caller.client, sent.caller.client);
  EXPECT_EQ(got.caller.tenant, "t");
  EXPECT_EQ(got.caller.cache_hits, 3U);
  EXPECT_EQ(got.caller.cache_hit_bytes, 4U);
  EXPECT_EQ(got.chain.chain_id, 5U);
  EXPECT_EQ(got.chain.position, 6U);
  EXPECT_EQ(got.chain.total, 10U);
  EXPECT_TRUE(got.upsert);
  EXPECT_EQ(got.keys, sent.keys);
  EXPECT_EQ(got.sizes_bytes, sent.sizes_bytes);
  EXPECT_EQ(got.config.replica_num, 2U);
  EXPECT_EQ(got.config.soft_pin_action, SoftPinAction::kEnable);
  EXPECT_EQ(got.config.soft_pin_ttl_ms, 0U);
  EXPECT_TRUE(got.config.with_hard_pin);
  EXPECT_EQ(got.config.preferred_segment, "p");
  EXPECT_EQ(got.config.preferred_segments, sent.config.preferred_segments);
  EXPECT_EQ(got.config.group_ids, sent.config.group_ids);
  EXPECT_EQ(got.config.host_id, "host");
}

TEST(Codec, ReplicasComeBackWhole) {
  const auto sent = Replicas();
  const auto got = RoundTrip(sent);
  EXPECT_EQ(got.lease_ttl_ms, 500U);
  EXPECT_EQ(got.objects, sent.objects);
  EXPECT_EQ(got.table, sent.table);
}

TEST(Codec, SegmentsComeBackWhole) {
  const SegmentInfo info{.id = {.first = 1, .second = 2},
                         .name = "n",
                         .base_address = 3,
                         .size_bytes = 4,
                         .te_endpoint = "e",
                         .protocol = "tcp",
                         .host_id = "h"};
  MountSegmentRequest mount;
  mount.segment = info;
  mount.repeated = true;
  EXPECT_TRUE(RoundTrip(mount).repeated);
  EXPECT_EQ(RoundTrip(mount).segment, info);
  ReMountSegmentsRequest remount;
  remount.segments = {info, info};
  EXPECT_EQ(RoundTrip(remount).segments, remount.segments);
  MountSegmentReply mounted;
  mounted.identity = {.number = 7, .incarnation = 8};
  EXPECT_EQ(RoundTrip(mounted).identity, mounted.identity);
  ReMountSegmentsReply remounted;
  remounted.segments = {mounted, {.code = StoreCode::kInvalidParams, .identity = {}}};
  const auto got = RoundTrip(remounted);
  ASSERT_EQ(got.segments.size(), 2U);
  EXPECT_EQ(got.segments[0].identity, mounted.identity);
  EXPECT_EQ(got.segments[1].code, StoreCode::kInvalidParams);
  UnmountSegmentRequest unmount;
  unmount.segment = info.id;
  unmount.grace_ms = 9;
  EXPECT_EQ(RoundTrip(unmount).segment, info.id);
  EXPECT_EQ(RoundTrip(unmount).grace_ms, 9U);
  QuerySegmentsRequest query;
  query.numbers = {1, 2};
  EXPECT_EQ(RoundTrip(query).numbers, query.numbers);
  QuerySegmentsReply queried;
  queried.segments = {{.identity = mounted.identity,
                       .info = info,
                       .owner = {.first = 5, .second = 6},
                       .status = SegmentStatus::kDraining}};
  const auto segments = RoundTrip(queried).segments;
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(segments[0].info, info);
  EXPECT_EQ(segments[0].owner, (Uuid{.first = 5, .second = 6}));
  EXPECT_EQ(segments[0].status, SegmentStatus::kDraining);
  ReportFailedReadsRequest report;
  report.segments = {mounted.identity};
  EXPECT_EQ(RoundTrip(report).segments, report.segments);
}

TEST(Codec, TheOtherMessagesComeBackWhole) {
  PingReply pong;
  pong.view_version = 1;
  pong.status = ClientStatus::kNeedRemount;
  pong.client_ttl_ms = 2;
  EXPECT_EQ(RoundTrip(pong).view_version, 1U);
  EXPECT_EQ(RoundTrip(pong).status, ClientStatus::kNeedRemount);
  EXPECT_EQ(RoundTrip(pong).client_ttl_ms, 2U);
  BatchExistReply exist;
  exist.exists = {1, 0, 1};
  EXPECT_EQ(RoundTrip(exist).exists, exist.exists);
  BatchPutStartReply start;
  start.results = {{.code = StoreCode::kNoAvailableHandle}};
  start.full = {.retry_after_ms = 1, .leased_bytes = 2, .pinned_bytes = 3, .in_flight_bytes = 4};
  EXPECT_EQ(RoundTrip(start).results, start.results);
  EXPECT_EQ(RoundTrip(start).full, start.full);
  BatchPutEndRequest end;
  end.keys = {"a"};
  end.endings = {{.version = 1, .success = false, .has_checksum = true, .checksum = 2}};
  EXPECT_EQ(RoundTrip(end).endings[0].version, 1U);
  EXPECT_FALSE(RoundTrip(end).endings[0].success);
  EXPECT_EQ(RoundTrip(end).endings[0].checksum, 2U);
  BatchRemoveReply removed;
  removed.codes = {StoreCode::kOk, StoreCode::kObjectHasLease};
  EXPECT_EQ(RoundTrip(removed).codes, removed.codes);
  GetReplicasByRegexReply found;
  found.keys = {"k", "l"};
  found.objects = Replicas().objects;
  found.table = Replicas().table;
  EXPECT_EQ(RoundTrip(found).keys, found.keys);
  EXPECT_EQ(RoundTrip(found).objects, found.objects);
  RemoveByRegexRequest remove;
  remove.pattern = "^a";
  remove.force = true;
  EXPECT_EQ(RoundTrip(remove).pattern, "^a");
  EXPECT_TRUE(RoundTrip(remove).force);
  RemoveManyReply many;
  many.removed = 5;
  EXPECT_EQ(RoundTrip(many).removed, 5U);
  ServiceReadyReply ready;
  ready.version = "1.0.0";
  EXPECT_EQ(RoundTrip(ready).version, "1.0.0");
}

TEST(Codec, ABodyMayBeginAnywhere) {
  Codec sender;
  const auto bytes = sender.Encode(PutStart());
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> moved(bytes.size() + shift);
    std::copy(bytes.begin(), bytes.end(), moved.begin() + static_cast<std::ptrdiff_t>(shift));
    Codec receiver;
    BatchPutStartRequest got;
    ASSERT_TRUE(receiver.Decode(std::span(moved).subspan(shift), got).has_value()) << shift;
    EXPECT_EQ(got.keys, kKeys);
  }
}

TEST(Codec, WhatContradictsItselfIsMalformed) {
  Codec codec;
  Codec receiver;
  auto request = PutStart();
  request.sizes_bytes.pop_back();
  BatchPutStartRequest got;
  EXPECT_EQ(receiver.Decode(codec.Encode(request), got).error().code, ErrorCode::kMalformed);
  request = PutStart();
  request.keys.assign(kMaxKeysPerBatch + 1, "k");
  request.sizes_bytes.assign(kMaxKeysPerBatch + 1, 1);
  EXPECT_FALSE(receiver.Decode(codec.Encode(request), got).has_value());
  request = PutStart();
  const std::string longest(kMaxKeyBytes + 1, 'k');
  request.keys[0] = longest;
  EXPECT_FALSE(receiver.Decode(codec.Encode(request), got).has_value());
  request = PutStart();
  for (const ChainPosition chain : {ChainPosition{.position = 7, .total = 10},
                                    {.position = 0, .total = 3},
                                    {.position = 1, .total = 0},
                                    {.position = 0xffffffff, .total = 0},
                                    {.position = 0xfffffffd, .total = 0xffffffff}}) {
    request.chain = chain;
    EXPECT_FALSE(receiver.Decode(codec.Encode(request), got).has_value())
        << chain.position << " of " << chain.total;
  }
  auto reply = Replicas();
  reply.objects[0].replicas.count = 3;
  BatchGetReplicasReply got_reply;
  EXPECT_FALSE(receiver.Decode(codec.Encode(reply), got_reply).has_value());
  reply = Replicas();
  reply.table.replicas[0].extent_count = 3;
  EXPECT_FALSE(receiver.Decode(codec.Encode(reply), got_reply).has_value());
  reply = Replicas();
  reply.table.replicas[0].extent_count = 0;
  EXPECT_FALSE(receiver.Decode(codec.Encode(reply), got_reply).has_value());
  EXPECT_FALSE(receiver.Decode({}, got_reply).has_value());
}

// Added to a clock's value they must stay within it.
TEST(Codec, ATimeOfCenturiesIsMalformed) {
  Codec codec;
  Codec receiver;
  for (const std::uint64_t span_ms : {kMaxSpanMs, kMaxSpanMs + 1, UINT64_MAX}) {
    const auto taken = [&](const auto& message) {
      std::remove_cvref_t<decltype(message)> got;
      return receiver.Decode(codec.Encode(message), got).has_value();
    };
    const bool fits = span_ms == kMaxSpanMs;
    EXPECT_EQ(taken(PingReply{.client_ttl_ms = span_ms}), fits);
    EXPECT_EQ(taken(BatchExistReply{.lease_ttl_ms = span_ms}), fits);
    EXPECT_EQ(taken(BatchGetReplicasReply{.lease_ttl_ms = span_ms}), fits);
    EXPECT_EQ(taken(GetReplicasByRegexReply{.lease_ttl_ms = span_ms}), fits);
    EXPECT_EQ(taken(BatchPutStartReply{.full = {.retry_after_ms = span_ms}}), fits);
  }
}

// Goal: whatever is flipped or cut, decoding ends in a value or in kMalformed, and reads nothing
// outside (the sanitizers watch).
TEST(Codec, SurvivesFlippedAndMissingBytes) {
  Codec sender;
  const auto request_bytes = sender.Encode(PutStart());
  const std::vector<std::byte> request(request_bytes.begin(), request_bytes.end());
  const auto reply_bytes = sender.Encode(Replicas());
  const std::vector<std::byte> reply(reply_bytes.begin(), reply_bytes.end());
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    std::vector<std::byte> bytes = seed % 2 == 0 ? request : reply;
    for (std::uint64_t flips = 1 + rng.Next() % 4; flips > 0; --flips) {
      bytes[rng.Next() % bytes.size()] ^=
          std::byte{static_cast<std::uint8_t>(1U << (rng.Next() % 8))};
    }
    if (rng.Next() % 4 == 0) {
      bytes.resize(rng.Next() % bytes.size());
    }
    bytes.shrink_to_fit();
    Codec receiver;
    BatchPutStartRequest got_request;
    BatchGetReplicasReply got_reply;
    for (const auto& result :
         {receiver.Decode(bytes, got_request), receiver.Decode(bytes, got_reply)}) {
      EXPECT_TRUE(result.has_value() || result.error().code == ErrorCode::kMalformed);
    }
  }
}

}  // namespace
}  // namespace mooncake::store
