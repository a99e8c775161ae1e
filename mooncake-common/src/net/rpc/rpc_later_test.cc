// Answers that take long: made in steps, with everybody else served between them.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-common/src/net/rpc/raw_peer.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::rpc {
namespace {

constexpr std::uint16_t kEcho = 1;
constexpr std::uint16_t kLong = 2;   // Answers with its body once it is allowed to.
constexpr std::uint16_t kThrow = 3;  // In its second step.
constexpr std::uint16_t kBig = 4;    // Answers with kBigBytes in its first step.
constexpr std::size_t kBigBytes = 1 << 20;

// What the handlers of kLong share with the test.
struct Work {
  std::atomic<bool> may_answer{false};
  std::atomic<std::size_t> begun{0};
  std::atomic<std::size_t> dropped{0};  // Steps that were destroyed, answered or not.
  std::atomic<std::uint64_t> steps{0};
};

class LongAnswer {
 public:
  LongAnswer(std::shared_ptr<Work> work, std::span<const std::byte> body)
      : work_(std::move(work)), body_(body.begin(), body.end()) {
    ++work_->begun;
  }
  ~LongAnswer() {
    if (work_) {
      ++work_->dropped;
    }
  }
  LongAnswer(LongAnswer&&) = default;
  LongAnswer(const LongAnswer&) = delete;
  LongAnswer& operator=(const LongAnswer&) = delete;
  LongAnswer& operator=(LongAnswer&&) = delete;

  bool operator()(ReplyWriter& reply) {
    ++work_->steps;
    if (!work_->may_answer) {
      return false;
    }
    reply.Append(body_);
    return true;
  }

 private:
  std::shared_ptr<Work> work_;
  std::vector<std::byte> body_;
};

class RpcLater : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(reactor_.Start().has_value());
    server_.Register(kEcho,
                     [](auto body, ReplyWriter& reply, const PeerInfo&) { reply.Append(body); });
    server_.Register(kLong, [work = work_](auto body, ReplyWriter& reply, const PeerInfo&) {
      reply.Append(body);  // Does not count: the step answers.
      reply.Later(LongAnswer(work, body));
    });
    server_.Register(kThrow, [](auto, ReplyWriter& reply, const PeerInfo&) {
      reply.Later([steps = 0](ReplyWriter& later) mutable {
        later.Append(std::vector<std::byte>(100));
        if (++steps == 2) {
          throw std::runtime_error("no memory for the rest");
        }
        return false;
      });
    });
    server_.Register(kBig, [work = work_](auto, ReplyWriter& reply, const PeerInfo&) {
      reply.Later([work](ReplyWriter& later) {
        ++work->steps;
        later.Append(std::vector<std::byte>(kBigBytes));
        return true;
      });
    });
    ASSERT_TRUE(server_.Start().has_value());
  }
  std::unique_ptr<RpcClient> Connect() {
    return RpcClient::Create(reactor_, {.host = "127.0.0.1", .port = server_.port()}).value();
  }
  static std::string Echo(RpcClient& client, const std::string& text) {
    RpcReply reply;
    const auto called = client.Call(kEcho, std::as_bytes(std::span(text)), HangDeadline(), reply);
    EXPECT_TRUE(called.has_value()) << called.error().ToString();
    return {reinterpret_cast<const char*>(reply.body().data()), reply.body().size()};
  }
  // The answer goes to the end of answers_.
  void StartLong(RpcClient& client, std::uint8_t number) {
    const std::byte body{number};
    client.Start(kLong, std::span(&body, 1), HangDeadline(),
                 [this](Result<std::span<const std::byte>> to) {
                   answers_.push_back(to && to->size() == 1 ? static_cast<int>((*to)[0]) : -1);
                   ++answered_;
                 });
  }
  const std::shared_ptr<Work> work_ = std::make_shared<Work>();
  std::vector<int> answers_;  // The client's reactor's, until all are answered.
  std::atomic<std::size_t> answered_{0};
  RpcServer server_{{.host = "127.0.0.1", .threads = 1, .max_unread_bytes = 2 * kBigBytes}};
  Reactor reactor_;
};

// On the very thread that works for the long answer, whoever asks, and over which connection.
TEST_F(RpcLater, OthersAreServedBetweenTheSteps) {
  const auto client = Connect();
  const auto other = Connect();
  StartLong(*client, 7);
  ASSERT_TRUE(WaitUntil([&] { return work_->begun == 1; }));
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before = work_->steps;
    EXPECT_EQ(Echo(*client, "same connection"), "same connection");
    EXPECT_EQ(Echo(*other, "another"), "another");
    ASSERT_TRUE(WaitUntil([&] { return work_->steps > before; }));
  }
  EXPECT_EQ(answered_, 0U);
  work_->may_answer = true;
  ASSERT_TRUE(WaitUntil([&] { return answered_ == 1; }));
  EXPECT_EQ(answers_, std::vector<int>{7});
  EXPECT_EQ(work_->dropped, 1U);
}

TEST_F(RpcLater, LongAnswersOfAConnectionComeInTheirOrder) {
  const auto client = Connect();
  for (std::uint8_t number = 0; number < 10; ++number) {
    StartLong(*client, number);
  }
  ASSERT_TRUE(WaitUntil([&] { return work_->begun == 10; }));
  work_->may_answer = true;
  ASSERT_TRUE(WaitUntil([&] { return answered_ == 10; }));
  EXPECT_EQ(answers_, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(Echo(*client, "and on"), "and on");
}

TEST_F(RpcLater, AStepThatThrowsHasAnsweredInternal) {
  const auto client = Connect();
  RpcReply reply;
  const auto called = client->Call(kThrow, {}, HangDeadline(), reply);
  ASSERT_FALSE(called.has_value());
  EXPECT_EQ(called.error().code, ErrorCode::kInternal);
  EXPECT_NE(called.error().message.find("no memory for the rest"), std::string::npos);
  EXPECT_EQ(server_.stats().thrown, 1U);
  EXPECT_EQ(Echo(*client, "still there"), "still there");
}

TEST_F(RpcLater, WithTooManyUnderWayAConnectionIsNotRead) {
  const auto client = Connect();
  const auto other = Connect();
  constexpr std::size_t kCalls = kMaxLater + 10;
  for (std::size_t call = 0; call < kCalls; ++call) {
    StartLong(*client, static_cast<std::uint8_t>(call));
  }
  ASSERT_TRUE(WaitUntil([&] { return server_.stats().pauses > 0; }));
  EXPECT_EQ(Echo(*other, "unharmed"), "unharmed");
  EXPECT_EQ(work_->begun, kMaxLater);
  work_->may_answer = true;
  ASSERT_TRUE(WaitUntil([&] { return answered_ == kCalls; }));
  for (std::size_t call = 0; call < kCalls; ++call) {
    EXPECT_EQ(answers_[call], static_cast<int>(call));
  }
}

// Goal: long answers do not pile up for a peer that does not read them, and go on once it does.
// Method: between two answers to somebody else each connection that may has had a step made.
TEST_F(RpcLater, WhoDoesNotReadIsNotWorkedFor) {
  constexpr std::uint64_t kRequests = 40;  // More than the kernel holds on the way.
  const auto other = Connect();
  RawPeer peer(server_.port());
  peer.Send(HelloFrame());
  ASSERT_TRUE(peer.Read());
  for (std::uint64_t id = 0; id < kRequests; ++id) {
    peer.Send(FrameOf({.method = kBig, .id = id}, {}));
  }
  ASSERT_TRUE(peer.AwaitArrival());
  EXPECT_TRUE(WaitUntil([&] {
    EXPECT_EQ(Echo(*other, "unharmed"), "unharmed");
    const std::uint64_t before = work_->steps;
    EXPECT_EQ(Echo(*other, "unharmed"), "unharmed");
    EXPECT_EQ(Echo(*other, "unharmed"), "unharmed");
    return before > 0 && work_->steps == before;
  }));
  EXPECT_LT(work_->steps, kRequests);
  for (std::uint64_t id = 0; id < kRequests; ++id) {
    const auto answer = peer.Read();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->size(), kBigBytes);
    EXPECT_EQ(peer.last_id(), id);
  }
}

TEST_F(RpcLater, WorkEndsWithItsConnection) {
  auto client = Connect();
  StartLong(*client, 1);
  StartLong(*client, 2);
  ASSERT_TRUE(WaitUntil([&] { return work_->begun == 2; }));
  client.reset();
  ASSERT_TRUE(WaitUntil([&] { return work_->dropped == 2; }));
  EXPECT_EQ(Echo(*Connect(), "next"), "next");
}

TEST_F(RpcLater, WorkEndsWithTheServer) {
  const auto client = Connect();
  StartLong(*client, 1);
  ASSERT_TRUE(WaitUntil([&] { return work_->begun == 1; }));
  server_.Stop();
  EXPECT_EQ(work_->dropped, 1U);
  ASSERT_TRUE(WaitUntil([&] { return answered_ == 1; }));
  EXPECT_EQ(answers_, std::vector<int>{-1});
}

}  // namespace
}  // namespace mooncake::rpc
