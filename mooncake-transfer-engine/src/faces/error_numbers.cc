#include "mooncake-transfer-engine/src/faces/error_numbers.h"

namespace mooncake::transfer {

int ErrorNumber(ErrorCode code) {
  switch (code) {
    case ErrorCode::kExhausted:
      return -2;
    case ErrorCode::kAddressNotRegistered:
      return -3;
    case ErrorCode::kBusy:
      return -4;
    case ErrorCode::kAddressOverlapped:
      return -7;
    case ErrorCode::kDns:
      return -101;
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
    case ErrorCode::kIo:
      return -102;
    case ErrorCode::kMalformed:
      return -103;
    case ErrorCode::kRejected:
    case ErrorCode::kPermissionDenied:
      return -104;
    case ErrorCode::kNotFound:
    case ErrorCode::kAlreadyExists:
      return -200;
    case ErrorCode::kNotSupported:
      return -303;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kCancelled:
    case ErrorCode::kInternal:
      return -1;
  }
  return -1;
}

int StatusNumber(ErrorCode code) {
  constexpr int kNotImplemented = 999;
  return code == ErrorCode::kNotSupported ? kNotImplemented : -ErrorNumber(code);
}

}  // namespace mooncake::transfer
