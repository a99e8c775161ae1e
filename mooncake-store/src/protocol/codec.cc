#include "mooncake-store/src/protocol/codec.h"

#include <cstring>
#include <vector>

#include "mooncake-store/src/protocol/validate.h"
#include "mooncake-store/src/protocol/wire_replies.h"
#include "mooncake-store/src/protocol/wire_requests.h"

namespace mooncake::store {
namespace {

// FlatBuffers reads numbers in place, so a body must begin where its largest number may.
constexpr std::size_t kAlignment = alignof(std::uint64_t);
// A message of kMaxKeysPerBatch keys has far fewer tables than this; hostile ones may claim more.
constexpr flatbuffers::uoffset_t kMaxTables = 1U << 20U;
constexpr flatbuffers::uoffset_t kMaxDepth = 8;

}  // namespace

class Codec::State {
 public:
  template <typename Message>
  std::span<const std::byte> Encode(const Message& message) {
    builder_.Clear();
    if constexpr (requires { message.caller; }) {
      builder_.Finish(wire::WriteRequest(builder_, message));
    } else {
      builder_.Finish(wire::WriteReply(builder_, message));
    }
    return std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
  }

  template <typename Message>
  Result<void> Decode(std::span<const std::byte> body, Message& message) {
    if (reinterpret_cast<std::uintptr_t>(body.data()) % kAlignment != 0) {
      aligned_.resize(body.size() / sizeof(std::uint64_t) + 1);
      std::memcpy(aligned_.data(), body.data(), body.size());
      body = std::as_bytes(std::span(aligned_)).first(body.size());
    }
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(body.data());
    flatbuffers::Verifier verifier(bytes, body.size(), kMaxDepth, kMaxTables);
    using Root = std::conditional_t<requires { message.caller; }, wire::Request, wire::Reply>;
    if (!verifier.VerifyBuffer<Root>(nullptr)) {
      return Fail(ErrorCode::kMalformed, "decode a store message: the bytes are no such table");
    }
    const Root& root = *flatbuffers::GetRoot<Root>(bytes);
    if constexpr (std::is_same_v<Root, wire::Request>) {
      MC_TRY(wire::ReadRequest(root, message));
    } else {
      MC_TRY(wire::ReadReply(root, message));
    }
    return Validate(message);
  }

 private:
  flatbuffers::FlatBufferBuilder builder_{4096};
  std::vector<std::uint64_t> aligned_;
};

Codec::Codec() : state_(std::make_unique<State>()) {}
Codec::~Codec() = default;

template <typename Message>
std::span<const std::byte> Codec::Encode(const Message& message) {
  return state_->Encode(message);
}

template <typename Message>
Result<void> Codec::Decode(std::span<const std::byte> body, Message& message) {
  return state_->Decode(body, message);
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type is not to be put in parentheses.
#define MC_CODEC_FOR(Message)                                                \
  template std::span<const std::byte> Codec::Encode(const Message& message); \
  template Result<void> Codec::Decode(std::span<const std::byte> body, Message& message);
// NOLINTEND(bugprone-macro-parentheses)
MC_CODEC_FOR(PingRequest)
MC_CODEC_FOR(MountSegmentRequest)
MC_CODEC_FOR(ReMountSegmentsRequest)
MC_CODEC_FOR(UnmountSegmentRequest)
MC_CODEC_FOR(QuerySegmentsRequest)
MC_CODEC_FOR(BatchExistRequest)
MC_CODEC_FOR(BatchGetReplicasRequest)
MC_CODEC_FOR(GetReplicasByRegexRequest)
MC_CODEC_FOR(BatchPutStartRequest)
MC_CODEC_FOR(BatchPutEndRequest)
MC_CODEC_FOR(BatchRemoveRequest)
MC_CODEC_FOR(RemoveByRegexRequest)
MC_CODEC_FOR(RemoveAllRequest)
MC_CODEC_FOR(BatchReplicaClearRequest)
MC_CODEC_FOR(ReportFailedReadsRequest)
MC_CODEC_FOR(ServiceReadyReply)
MC_CODEC_FOR(PingReply)
MC_CODEC_FOR(MountSegmentReply)
MC_CODEC_FOR(ReMountSegmentsReply)
MC_CODEC_FOR(UnmountSegmentReply)
MC_CODEC_FOR(QuerySegmentsReply)
MC_CODEC_FOR(BatchExistReply)
MC_CODEC_FOR(BatchGetReplicasReply)
MC_CODEC_FOR(GetReplicasByRegexReply)
MC_CODEC_FOR(BatchPutStartReply)
MC_CODEC_FOR(BatchPutEndReply)
MC_CODEC_FOR(BatchRemoveReply)
MC_CODEC_FOR(RemoveManyReply)
MC_CODEC_FOR(BatchReplicaClearReply)
MC_CODEC_FOR(ReportFailedReadsReply)
#undef MC_CODEC_FOR

}  // namespace mooncake::store
