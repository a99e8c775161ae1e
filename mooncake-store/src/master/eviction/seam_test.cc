// Goal: the seam carries what a policy with chains, ghosts and chain ends needs (HDI). Method: a
// policy that keeps that data, without its arithmetic, behind a whole master: lookups and puts of
// chains, windows, several clients, a store that is always full.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "mooncake-common/src/base/random.h"
#include "mooncake-store/src/master/key_hash.h"
#include "mooncake-store/src/master/master_test_util.h"

namespace mooncake::store {
namespace {

// Evicts only objects without resident children, at random.
class ChainEndsPolicy final : public EvictionPolicy {
 public:
  explicit ChainEndsPolicy(std::uint64_t seed) : rng_(seed) {}

  bool NeedsParents() const override { return true; }

  void OnChain(const ChainEvent& event) override {
    blocks_seen += event.again ? 0 : event.keys.size();
    for (const ChainKey& key : event.keys) {
      if (key.slot == kNoSlot) {
        misses.insert(key.hash);  // Where HDI leaves its ghosts.
        continue;
      }
      ASSERT_TRUE(objects.contains(key.slot));
      ASSERT_EQ(objects[key.slot].hash, key.hash);
      objects[key.slot].last = blocks_seen;
    }
    if (event.position + event.keys.size() == event.total) {
      ++chains_ended;
    }
  }
  void OnPut(const PutEvent& event) override {
    ASSERT_FALSE(objects.contains(event.slot));
    if (event.parent != kNoSlot) {
      ASSERT_TRUE(objects.contains(event.parent));
      ++objects[event.parent].children;
    }
    objects[event.slot] = {.hash = event.hash,
                           .parent = event.parent,
                           .segment = event.placements[0].segment,
                           .last = blocks_seen};
  }
  void OnReady(Slot slot) override { objects[slot].ready = true; }
  void OnPin(Slot, PinClass) override {}
  void OnGone(Slot slot) override {
    const Object gone = objects[slot];
    ASSERT_EQ(gone.children, 0) << "a parent went before its child";
    if (gone.parent != kNoSlot) {
      --objects[gone.parent].children;
    }
    objects.erase(slot);
  }
  void Pick(const PickRequest& request, SlotGuard& guard, std::vector<Slot>& out) override {
    std::vector<Slot> ends;
    for (const auto& [slot, object] : objects) {
      if (object.children == 0 && object.ready && slot != request.keep &&
          request.segments->Has(object.segment)) {
        ends.push_back(slot);
      }
    }
    std::ranges::sort(ends);
    while (!ends.empty()) {
      std::swap(ends[rng_.Uniform(ends.size())], ends.back());
      if (guard.MayGo(ends.back())) {
        out.push_back(ends.back());
        return;  // Its parent may have become an end: the master asks again.
      }
      ends.pop_back();
    }
  }

  struct Object {
    std::uint64_t hash = 0;
    Slot parent = kNoSlot;
    int children = 0;
    SegmentNumber segment = 0;
    std::uint64_t last = 0;
    bool ready = false;
  };
  std::unordered_map<Slot, Object> objects;
  std::set<std::uint64_t> misses;
  std::uint64_t blocks_seen = 0;
  int chains_ended = 0;

 private:
  Rng rng_;
};

class SeamTest : public testing::Test {
 protected:
  // What a serving engine does: look the whole chain up, put what was missing behind the hits.
  void Serve(std::uint64_t client, const std::vector<std::string>& chain, std::size_t window) {
    const std::uint64_t lookup_id = ++chain_id_;
    std::vector<std::uint8_t> exists;
    for (std::size_t from = 0; from < chain.size(); from += window) {
      const std::size_t count = std::min(window, chain.size() - from);
      BatchExistRequest request{.caller = {.client = TestMaster::Client(client)},
                                .chain = Position(lookup_id, from, chain.size())};
      request.keys.assign(chain.begin() + static_cast<std::ptrdiff_t>(from),
                          chain.begin() + static_cast<std::ptrdiff_t>(from + count));
      BatchExistReply reply;
      test_.master.Handle(request, test_.now(), reply);
      exists.insert(exists.end(), reply.exists.begin(), reply.exists.end());
    }
    std::vector<std::string_view> missing;
    for (std::size_t index = 0; index < chain.size(); ++index) {
      ++asked_;
      hits_ += exists[index];
      if (exists[index] == 0) {
        missing.push_back(chain[index]);
      }
    }
    const std::uint64_t put_id = ++chain_id_;
    for (std::size_t from = 0; from < missing.size(); from += window) {
      const std::size_t count = std::min(window, missing.size() - from);
      BatchPutStartRequest start{.caller = {.client = TestMaster::Client(client)},
                                 .chain = Position(put_id, from, missing.size())};
      start.keys.assign(missing.begin() + static_cast<std::ptrdiff_t>(from),
                        missing.begin() + static_cast<std::ptrdiff_t>(from + count));
      start.sizes_bytes.assign(count, 4096);
      BatchPutStartReply started;
      test_.master.Handle(start, test_.now(), started);
      BatchPutEndRequest end{.caller = {.client = TestMaster::Client(client)}};
      for (std::size_t index = 0; index < count; ++index) {
        if (started.results[index].code == StoreCode::kOk) {
          end.keys.push_back(start.keys[index]);
          end.endings.push_back({.version = started.results[index].version});
        }
      }
      BatchPutEndReply ended;
      test_.master.Handle(end, test_.now(), ended);
    }
    test_.Advance(std::chrono::seconds(11));  // Leases do not matter here.
    for (std::uint64_t each = 1; each <= 2; ++each) {
      (void)test_.Ping(each);
    }
  }

  static ChainPosition Position(std::uint64_t id, std::size_t from, std::size_t total) {
    return {.chain_id = id,
            .position = static_cast<std::uint32_t>(from),
            .total = static_cast<std::uint32_t>(total)};
  }

  // A lookup so long that the ring is drained into the policy.
  void Drain() {
    BatchExistRequest request{.caller = {.client = TestMaster::Client(99)},
                              .chain = Position(++chain_id_, 0, 10000)};
    request.keys.assign(5000, "nobody's");
    BatchExistReply reply;
    test_.master.Handle(request, test_.now(), reply);
  }

  ChainEndsPolicy* policy_ = new ChainEndsPolicy(5);  // Owned by the master.
  TestMaster test_{
      {.client_ttl = std::chrono::seconds(60)}, nullptr, std::unique_ptr<EvictionPolicy>(policy_)};
  std::uint64_t chain_id_ = 0;
  std::uint64_t asked_ = 0;
  std::uint64_t hits_ = 0;
};

TEST_F(SeamTest, EveryObjectKnowsTheKeyBeforeIt) {
  ASSERT_EQ(test_.Mount(1, std::uint64_t{1000} * 4096), StoreCode::kOk);
  const std::vector<std::string> chain{"a", "b", "c", "d", "e", "f", "g"};
  Serve(1, {"a", "b", "c"}, 2);
  Serve(2, chain, 3);  // Puts only d..g, in two windows.
  (void)test_.Remove("g", true);
  Serve(1, chain, 100);  // Puts only g, whose parent is f.
  Drain();
  std::vector<std::uint64_t> hashes;
  hashes.reserve(chain.size());
  for (const std::string& key : chain) {
    hashes.push_back(HashKey(0, key));
  }
  std::map<std::uint64_t, std::uint64_t> parent_of;
  std::map<Slot, std::uint64_t> hash_of;
  for (const auto& [slot, object] : policy_->objects) {
    hash_of[slot] = object.hash;
  }
  for (const auto& [slot, object] : policy_->objects) {
    parent_of[object.hash] = object.parent == kNoSlot ? 0 : hash_of[object.parent];
  }
  ASSERT_EQ(parent_of.size(), chain.size());
  for (std::size_t index = 0; index < chain.size(); ++index) {
    EXPECT_EQ(parent_of[hashes[index]], index == 0 ? 0 : hashes[index - 1]) << chain[index];
  }
  EXPECT_TRUE(policy_->misses.contains(hashes[6]));  // Heard of before it was resident.
  EXPECT_EQ(policy_->chains_ended, 3);
  EXPECT_EQ(policy_->blocks_seen, 3U + 7 + 7 + 5000);
}

TEST_F(SeamTest, AskingWhetherThenWhereIsOneUse) {
  ASSERT_EQ(test_.Mount(1, std::uint64_t{10} * 4096), StoreCode::kOk);
  ASSERT_EQ(test_.Put("a", 4096), StoreCode::kOk);
  ASSERT_TRUE(test_.Exists("a"));
  ASSERT_EQ(test_.Get("a"), StoreCode::kOk);
  Drain();
  EXPECT_EQ(policy_->blocks_seen, 1U + 5000);
  ASSERT_EQ(test_.Get("a"), StoreCode::kOk);  // Not asked for before: a use of its own.
  Drain();
  EXPECT_EQ(policy_->blocks_seen, 2U + 10000);
}

TEST(Seam, WhatThePutOfAMissHangsOnIsNotEvictedForIt) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TestMaster test({}, nullptr, std::make_unique<ChainEndsPolicy>(seed));
    ASSERT_EQ(test.Mount(1, std::uint64_t{2} * 4096), StoreCode::kOk);
    ASSERT_EQ(test.Put("head", 4096), StoreCode::kOk);
    ASSERT_EQ(test.Put("other", 4096), StoreCode::kOk);
    BatchExistReply reply;
    test.master.Handle(BatchExistRequest{.caller = {.client = TestMaster::Client(1)},
                                         .chain = {.chain_id = 100, .total = 2},
                                         .keys = {"head", "tail"}},
                       test.now(), reply);
    test.Advance(std::chrono::seconds(11));  // Prefill took longer than the lease.
    ASSERT_EQ(test.Put("tail", 4096), StoreCode::kOk);
    EXPECT_TRUE(test.Exists("head")) << "seed " << seed;
  }
}

TEST_F(SeamTest, NoObjectStaysBehindAHoleInAStoreThatIsAlwaysFull) {
  ASSERT_EQ(test_.Mount(1, std::uint64_t{120} * 4096), StoreCode::kOk);
  ASSERT_EQ(test_.Mount(2, std::uint64_t{80} * 4096), StoreCode::kOk);
  Rng rng(7);
  std::vector<std::vector<std::string>> sessions;
  for (int round = 0; round < 600; ++round) {
    if (sessions.size() < 10 || rng.Chance(1, 3)) {
      sessions.push_back({"system", "prompt"});
    }
    std::vector<std::string>& session =
        sessions[sessions.size() - 1 - rng.Uniform(std::min<std::uint64_t>(10, sessions.size()))];
    const std::uint64_t grown = rng.Between(1, 6);
    for (std::uint64_t block = 0; block < grown; ++block) {
      session.push_back("s" + std::to_string(rng.Next()));
    }
    Serve(rng.Between(1, 2), session, rng.Chance(1, 2) ? 4 : 1000);
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
  }
  EXPECT_GT(test_.master.counters().evicted_objects, 500U);
  EXPECT_GT(hits_ * 10, asked_);
  EXPECT_EQ(test_.master.CheckInvariants(), "");
}

}  // namespace
}  // namespace mooncake::store
