#include "mooncake-common/src/base/result.h"

#include <cstdio>
#include <cstdlib>

namespace mooncake {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case ErrorCode::kMalformed:
      return "MALFORMED";
    case ErrorCode::kNotFound:
      return "NOT_FOUND";
    case ErrorCode::kAlreadyExists:
      return "ALREADY_EXISTS";
    case ErrorCode::kAddressNotRegistered:
      return "ADDRESS_NOT_REGISTERED";
    case ErrorCode::kAddressOverlapped:
      return "ADDRESS_OVERLAPPED";
    case ErrorCode::kBusy:
      return "BUSY";
    case ErrorCode::kExhausted:
      return "EXHAUSTED";
    case ErrorCode::kPermissionDenied:
      return "PERMISSION_DENIED";
    case ErrorCode::kRejected:
      return "REJECTED";
    case ErrorCode::kUnavailable:
      return "UNAVAILABLE";
    case ErrorCode::kTimeout:
      return "TIMEOUT";
    case ErrorCode::kCancelled:
      return "CANCELLED";
    case ErrorCode::kDns:
      return "DNS";
    case ErrorCode::kIo:
      return "IO";
    case ErrorCode::kNotSupported:
      return "NOT_SUPPORTED";
    case ErrorCode::kInternal:
      return "INTERNAL";
  }
  return "UNKNOWN";
}

std::string Error::ToString() const {
  std::string text(ErrorCodeName(code));
  text += ": ";
  text += message;
  return text;
}

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace mooncake
