#include "mooncake-transfer-engine/src/transports/tcp/server_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "mooncake-common/src/base/random.h"

namespace mooncake::transfer {
namespace {

using Bytes = std::vector<std::byte>;

Bytes Concat(std::initializer_list<std::span<const std::byte>> parts) {
  Bytes all;
  for (const auto& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// A session that is fed and emptied without sockets, in portions of any size.
class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_.resize(1 << 20);
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      memory_[i] = static_cast<std::byte>(i * 7);
    }
    ASSERT_TRUE(regions_.Add({.address = base(), .length_bytes = memory_.size() / 2}));
    ASSERT_TRUE(regions_.Add({.address = base() + memory_.size() / 2 + 4096,
                              .length_bytes = 4096,
                              .remote_accessible = false}));
  }

  [[nodiscard]] std::uint64_t base() const {
    return reinterpret_cast<std::uintptr_t>(memory_.data());
  }
  [[nodiscard]] std::span<const std::byte> At(std::size_t offset, std::size_t length) const {
    return std::span(memory_).subspan(offset, length);
  }
  [[nodiscard]] Bytes Head(TcpProtocol protocol, Opcode opcode, std::uint64_t offset,
                           std::uint64_t length) const {
    const auto head =
        EncodeTcpRequest({.protocol = protocol,
                          .opcode = opcode,
                          .extent = {.address = base() + offset, .length_bytes = length}});
    return {head.begin(), head.end()};
  }
  [[nodiscard]] Bytes Extended(Opcode opcode, std::uint64_t id,
                               const std::vector<TcpExtent>& extents) const {
    const auto head =
        EncodeTcpRequest({.protocol = TcpProtocol::kExtended,
                          .opcode = opcode,
                          .id = id,
                          .extent_count = static_cast<std::uint32_t>(extents.size())});
    Bytes bytes(head.begin(), head.end());
    for (const TcpExtent& extent : extents) {
      const auto encoded = EncodeTcpExtent(
          {.address = base() + extent.address, .length_bytes = extent.length_bytes});
      bytes.insert(bytes.end(), encoded.begin(), encoded.end());
    }
    return bytes;
  }

  struct Talk {
    Bytes answer;
    bool closed = false;  // By the session, of its own accord or by an error.
    bool malformed = false;
  };

  // Sends `request` in portions of at most `in` bytes, takes answers in portions of `out`.
  Talk Exchange(std::span<const std::byte> request, std::size_t in, std::size_t out) {
    ServerSession session(regions_, check_);
    Talk talk;
    const auto fails = [&talk](const Result<void>& result) {
      talk.malformed = talk.malformed || !result;
      return !result;
    };
    while (!session.finished() && (!request.empty() || session.HasOutput())) {
      if (session.WantsInput() && !request.empty()) {
        IovList list;
        if (fails(session.FillInput(list))) {
          break;
        }
        std::size_t left = std::min({in, request.size(), list.bytes()});
        const std::size_t moved = left;
        for (const iovec& entry : list.entries()) {
          const std::size_t part = std::min(left, entry.iov_len);
          std::memcpy(entry.iov_base, request.data(), part);
          request = request.subspan(part);
          left -= part;
        }
        if (fails(session.OnInput(moved))) {
          break;
        }
      }
      if (session.HasOutput()) {
        IovList list;
        if (fails(session.FillOutput(list))) {
          break;
        }
        std::size_t left = std::min(out, list.bytes());
        const std::size_t moved = left;
        for (const iovec& entry : list.entries()) {
          const std::size_t part = std::min(left, entry.iov_len);
          const auto* const from = static_cast<const std::byte*>(entry.iov_base);
          talk.answer.insert(talk.answer.end(), from, from + part);
          left -= part;
        }
        if (fails(session.OnOutput(moved))) {
          break;
        }
      }
    }
    talk.closed = session.finished() || talk.malformed;
    return talk;
  }
  Talk Exchange(std::span<const std::byte> request) {
    return Exchange(request, request.size(), 1 << 20);
  }

  RegionTable regions_;
  RemoteCheck check_ = RemoteCheck::kAuto;
  Bytes memory_;
};

TEST_F(SessionTest, ServesAllProtocolsAlternatelyOnOneConnectionInAnyPortions) {
  const Bytes payload(300, std::byte{0xAB});
  const auto ok = EncodeTcpStatus(true);
  const Bytes read = Bytes(At(500, 40).begin(), At(500, 40).end());
  const Bytes read2 = Bytes(At(9000, 8).begin(), At(9000, 8).end());
  const Bytes request = Concat({Head(TcpProtocol::kV2, Opcode::kRead, 500, 40),
                                Head(TcpProtocol::kV1, Opcode::kWrite, 1000, 300), payload,
                                Head(TcpProtocol::kV1, Opcode::kRead, 1000, 300),
                                Head(TcpProtocol::kV2, Opcode::kWrite, 2000, 300), payload,
                                Extended(Opcode::kRead, 77, {{1299, 1}, {9000, 8}}),
                                Extended(Opcode::kWrite, 78, {{4000, 100}, {5000, 200}}), payload,
                                Head(TcpProtocol::kV2, Opcode::kRead, 4000, 100)});
  const Bytes wanted = Concat(
      {ok, read, payload, ok, EncodeTcpReply(77, {false, false}), std::span(payload).first(1),
       read2, EncodeTcpReply(78, {false, false}), ok, std::span(payload).first(100)});
  const Bytes before = memory_;
  for (const auto& [in, out] : {std::pair{1UL, 1UL},
                                {1UL, 1000UL},
                                {23UL, 5UL},
                                {25UL, 1UL},
                                {5000UL, 1UL},
                                {5000UL, 5000UL}}) {
    SCOPED_TRACE(testing::Message() << "in " << in << " out " << out);
    std::ranges::copy(before, memory_.begin());
    const Talk talk = Exchange(request, in, out);
    EXPECT_FALSE(talk.closed);
    EXPECT_EQ(talk.answer, wanted);
    EXPECT_TRUE(std::ranges::equal(At(2000, 300), payload));
    EXPECT_TRUE(std::ranges::equal(At(5000, 200), std::span(payload).first(200)));
  }
}

TEST_F(SessionTest, AnswersABurstOfPipelinedRequestsInOrder) {
  Bytes request;
  Bytes wanted;
  const auto ok = EncodeTcpStatus(true);
  for (std::size_t i = 0; i < 1000; ++i) {
    const Bytes payload(64, static_cast<std::byte>(i));
    request = Concat({request, Head(TcpProtocol::kV2, Opcode::kWrite, i * 64, 64), payload});
    wanted = Concat({wanted, ok});
  }
  request = Concat({request, Head(TcpProtocol::kV2, Opcode::kRead, 999 * 64, 64)});
  wanted = Concat({wanted, ok, Bytes(64, static_cast<std::byte>(999))});
  EXPECT_EQ(Exchange(request).answer, wanted);
  EXPECT_EQ(Exchange(request, 7000, 3).answer, wanted);
}

TEST_F(SessionTest, AReadThatWaitsToBeSentIsNotChangedByALaterWrite) {
  const Bytes old = Bytes(At(0, 1000).begin(), At(0, 1000).end());
  const Bytes payload(1000, std::byte{1});
  const Bytes request = Concat({Head(TcpProtocol::kV1, Opcode::kRead, 0, 1000),
                                Head(TcpProtocol::kV1, Opcode::kWrite, 0, 1000), payload});
  EXPECT_EQ(Exchange(request, 1 << 20, 10).answer, old);
  EXPECT_TRUE(std::ranges::equal(At(0, 1000), payload));
}

TEST_F(SessionTest, RefusesWhatDoesNotLieInOneRegionAndCloses) {
  const std::uint64_t half = memory_.size() / 2;
  const auto no = EncodeTcpStatus(false);
  for (const auto& [offset, length] : {std::pair{half, std::uint64_t{8}},
                                       {half - 4, 8},
                                       {0, 0},
                                       {0, ~std::uint64_t{0}},
                                       {std::uint64_t{0} - base(), 8},
                                       {~std::uint64_t{0} - base(), 1},
                                       {0, half + 1}}) {
    SCOPED_TRACE(testing::Message() << "offset " << offset << " length " << length);
    for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
      const Talk v2 = Exchange(Concat({Head(TcpProtocol::kV2, opcode, offset, length),
                                       Head(TcpProtocol::kV2, Opcode::kRead, 0, 8)}));
      EXPECT_TRUE(v2.closed);
      EXPECT_EQ(v2.answer, Bytes(no.begin(), no.end()));
      const Talk v1 = Exchange(Head(TcpProtocol::kV1, opcode, offset, length));
      EXPECT_TRUE(v1.closed);
      EXPECT_TRUE(v1.answer.empty());
    }
  }
}

TEST_F(SessionTest, AnExtendedRequestLosesOnlyItsBadExtents) {
  const std::uint64_t half = memory_.size() / 2;
  const Bytes good = Bytes(At(10, 5).begin(), At(10, 5).end());
  const Talk read = Exchange(Concat({Extended(Opcode::kRead, 1, {{half, 6}, {10, 5}}),
                                     Head(TcpProtocol::kV1, Opcode::kRead, 10, 5)}));
  EXPECT_FALSE(read.closed);
  EXPECT_EQ(read.answer,
            Concat({EncodeTcpReply(1, {true, false}), Bytes(6, std::byte{0}), good, good}));

  const Bytes before = memory_;
  const Bytes payload(100'011, std::byte{0x55});
  const Talk write =
      Exchange(Concat({Extended(Opcode::kWrite, 2, {{half, 100'000}, {10, 5}, {half - 1, 6}}),
                       payload, Head(TcpProtocol::kV1, Opcode::kRead, 10, 5)}),
               999, 7);
  EXPECT_EQ(write.answer,
            Concat({EncodeTcpReply(2, {true, false, true}), Bytes(5, std::byte{0x55})}));
  EXPECT_TRUE(std::ranges::equal(std::span(memory_).subspan(15), std::span(before).subspan(15)));
}

// Published peers do not look at remote_accessible, ours do, unless the setting says otherwise.
TEST_F(SessionTest, TheSettingSaysWhoMustRespectRemoteAccessible) {
  const std::uint64_t hidden = memory_.size() / 2 + 4096;
  for (const RemoteCheck check : {RemoteCheck::kAuto, RemoteCheck::kAlways, RemoteCheck::kNever}) {
    check_ = check;
    const bool open_to_published = check != RemoteCheck::kAlways;
    const Talk v1 = Exchange(Head(TcpProtocol::kV1, Opcode::kRead, hidden, 8));
    EXPECT_EQ(v1.answer.size(), open_to_published ? 8U : 0U);
    EXPECT_EQ(v1.closed, !open_to_published);
    EXPECT_EQ(Exchange(Head(TcpProtocol::kV2, Opcode::kRead, hidden, 8)).closed,
              !open_to_published);
    const Bytes before = memory_;
    Exchange(
        Concat({Head(TcpProtocol::kV2, Opcode::kWrite, hidden, 8), Bytes(8, std::byte{0x55})}));
    EXPECT_EQ(memory_ == before, !open_to_published);
    memory_ = before;

    const bool open_to_ours = check == RemoteCheck::kNever;
    EXPECT_EQ(Exchange(Extended(Opcode::kRead, 3, {{hidden, 8}})).answer,
              Concat({EncodeTcpReply(3, {!open_to_ours}),
                      open_to_ours ? At(hidden, 8) : Bytes(8, std::byte{0})}));
  }
}

TEST_F(SessionTest, ClosesOnUnknownOpcodesAndFramesBeyondTheBounds) {
  for (const int opcode : {2, 5, 0x42, 0x82, 0xC0, 0xFF}) {
    Bytes head = Head(TcpProtocol::kV2, Opcode::kRead, 0, 8);
    head[16] = static_cast<std::byte>(opcode);
    EXPECT_TRUE(Exchange(head).malformed) << opcode;
  }
  EXPECT_TRUE(Exchange(Extended(Opcode::kRead, 1, {{0, 0}})).malformed);
  EXPECT_TRUE(Exchange(Extended(Opcode::kRead, 1, {{0, kTcpMaxFrameBytes}, {0, 1}})).malformed);
  EXPECT_TRUE(Exchange(Extended(Opcode::kWrite, 1, {{0, ~std::uint64_t{0}}, {0, 2}})).malformed);
}

TEST_F(SessionTest, ARegionThatIsRemovedMidwayEndsTheSessionAndIsNotTouched) {
  ServerSession session(regions_);
  const Bytes head = Head(TcpProtocol::kV2, Opcode::kWrite, 0, 100);
  IovList list;
  ASSERT_TRUE(session.FillInput(list));
  std::memcpy(list.entries()[0].iov_base, head.data(), head.size());
  ASSERT_TRUE(session.OnInput(head.size()));
  // Nobody waits for the silent peer.
  ASSERT_TRUE(regions_.Remove(base(), Duration::zero()));
  IovList more;
  EXPECT_FALSE(session.FillInput(more));
  EXPECT_TRUE(more.empty());
}

TEST_F(SessionTest, APeerThatDoesNotReadIsNotReadFromWithoutBound) {
  ServerSession session(regions_);
  std::size_t fed = 0;
  while (session.WantsInput() && fed < (std::size_t{8} << 20)) {
    IovList list;
    ASSERT_TRUE(session.FillInput(list));
    const Bytes head = Head(TcpProtocol::kV2, Opcode::kRead, 0, 8);
    std::size_t moved = 0;
    for (const iovec& entry : list.entries()) {
      for (std::size_t i = 0; i < entry.iov_len; ++i) {
        static_cast<std::byte*>(entry.iov_base)[i] = head[(fed + moved++) % head.size()];
      }
    }
    fed += moved;
    ASSERT_TRUE(session.OnInput(moved));
  }
  EXPECT_LT(fed, std::size_t{64} << 10);
}

TEST_F(SessionTest, SurvivesFlippedAndCutRequests) {
  const Bytes payload(64, std::byte{1});
  const Bytes request = Concat({Extended(Opcode::kWrite, 5, {{0, 32}, {64, 32}}), payload,
                                Head(TcpProtocol::kV2, Opcode::kRead, 0, 8),
                                Head(TcpProtocol::kV1, Opcode::kWrite, 8, 64), payload});
  Rng random(1);
  for (std::size_t at = 0; at < request.size(); ++at) {
    (void)Exchange(std::span(request).first(at), 1 + random.Uniform(40), 1 + random.Uniform(40));
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = request;
      flipped[at] ^= std::byte{1} << bit;
      (void)Exchange(flipped, 1 + random.Uniform(40), 1 + random.Uniform(40));
    }
  }
}

}  // namespace
}  // namespace mooncake::transfer
