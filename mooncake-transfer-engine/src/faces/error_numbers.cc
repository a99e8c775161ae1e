#include "mooncake-transfer-engine/src/faces/error_numbers.h"

#include "mooncake-transfer-engine/include/transfer_engine.h"

namespace mooncake::transfer {

int ErrorNumber(ErrorCode code) {
  switch (code) {
    case ErrorCode::kExhausted:
      return ERR_TOO_MANY_REQUESTS;
    case ErrorCode::kAddressNotRegistered:
      return ERR_ADDRESS_NOT_REGISTERED;
    case ErrorCode::kBusy:
      return ERR_BATCH_BUSY;
    case ErrorCode::kAddressOverlapped:
      return ERR_ADDRESS_OVERLAPPED;
    case ErrorCode::kDns:
      return ERR_DNS;
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
    case ErrorCode::kIo:
      return ERR_SOCKET;
    case ErrorCode::kMalformed:
      return ERR_MALFORMED_JSON;
    case ErrorCode::kRejected:
    case ErrorCode::kPermissionDenied:
      return ERR_REJECT_HANDSHAKE;
    case ErrorCode::kNotFound:
    case ErrorCode::kAlreadyExists:
      return ERR_METADATA;
    case ErrorCode::kNotSupported:
      return ERR_NOT_IMPLEMENTED;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kCancelled:
    case ErrorCode::kInternal:
      return ERR_INVALID_ARGUMENT;
  }
  return ERR_INVALID_ARGUMENT;
}

int StatusNumber(ErrorCode code) {
  return code == ErrorCode::kNotSupported ? static_cast<int>(Status::Code::kNotImplemented)
                                          : -ErrorNumber(code);
}

}  // namespace mooncake::transfer
