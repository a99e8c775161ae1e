// Any bytes as any message: decoding ends in a value that can be encoded again, or in kMalformed.

#include <cstdint>
#include <span>

#include "mooncake-store/src/protocol/codec.h"

namespace {

template <typename Message>
void Try(std::span<const std::byte> body) {
  mooncake::store::Codec codec;
  mooncake::store::Codec again;
  Message message;
  if (codec.Decode(body, message)) {
    Message copy;
    MC_CHECK(again.Decode(codec.Encode(message), copy).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mooncake::store;  // NOLINT(google-build-using-namespace)
  if (size == 0) {
    return 0;
  }
  const auto body = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 10) {
    case 0:
      Try<PingRequest>(body);
      break;
    case 1:
      Try<ReMountSegmentsRequest>(body);
      break;
    case 2:
      Try<BatchPutStartRequest>(body);
      break;
    case 3:
      Try<BatchPutEndRequest>(body);
      break;
    case 4:
      Try<BatchGetReplicasRequest>(body);
      break;
    case 5:
      Try<ReportFailedReadsRequest>(body);
      break;
    case 6:
      Try<QuerySegmentsReply>(body);
      break;
    case 7:
      Try<BatchPutStartReply>(body);
      break;
    case 8:
      Try<GetReplicasByRegexReply>(body);
      break;
    default:
      Try<ReMountSegmentsReply>(body);
      break;
  }
  return 0;
}
