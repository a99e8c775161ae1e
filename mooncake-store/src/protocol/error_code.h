// The store's public codes: what the RPCs, the Python functions, the C API and the admin HTTP API
// return. Zero is success, failures are negative.
//
// Thread-safety: values.
// Source:        the published interface; numbers and names are contract.
#pragma once

#include <cstdint>
#include <string_view>

namespace mooncake::store {

enum class StoreCode : std::int32_t {
  kOk = 0,
  kInternalError = -1,
  kBufferOverflow = -10,
  kShardIndexOutOfRange = -100,
  kSegmentNotFound = -101,
  kSegmentAlreadyExists = -102,
  kClientNotFound = -103,
  kNoAvailableHandle = -200,
  kInvalidVersion = -300,
  kInvalidKey = -400,
  kWriteFail = -500,
  kInvalidParams = -600,
  kIllegalClient = -601,
  kInvalidWrite = -700,
  kInvalidRead = -701,
  kInvalidReplica = -702,
  kReplicaIsNotReady = -703,
  kObjectNotFound = -704,
  kObjectAlreadyExists = -705,
  kObjectHasLease = -706,
  kLeaseExpired = -707,
  kObjectHasReplicationTask = -708,
  kObjectNoReplicationTask = -709,
  kReplicaNotFound = -710,
  kReplicaAlreadyExists = -711,
  kReplicaIsGone = -712,
  kReplicaNotInLocalMemory = -713,
  kObjectReplicaBusy = -714,
  kTransferFail = -800,
  kChecksumMismatch = -801,
  kRpcFail = -900,
  kRpcTimeout = -901,
  kEtcdOperationError = -1000,
  kEtcdKeyNotExist = -1001,
  kEtcdTransactionFail = -1002,
  kEtcdCtxCancelled = -1003,
  kOplogEntryNotFound = -1004,
  kK8sLeaseOperationError = -1005,
  kK8sLeaseNotFound = -1006,
  kIncompleteOplogCatchUp = -1007,
  kUnavailableInCurrentStatus = -1010,
  kUnavailableInCurrentMode = -1011,
  kNotSupported = -1012,
  kFileNotFound = -1100,
  kFileOpenFail = -1101,
  kFileReadFail = -1102,
  kFileWriteFail = -1103,
  kFileInvalidBuffer = -1104,
  kFileLockFail = -1105,
  kFileInvalidHandle = -1106,
  kBucketNotFound = -1200,
  kBucketAlreadyExists = -1201,
  kKeysExceedBucketLimit = -1202,
  kKeysUltraLimit = -1203,
  kUnableOffload = -1300,
  kUnableOffloading = -1301,
  kTaskNotFound = -1400,
  kTaskPendingLimitExceeded = -1401,
  kJobNotFound = -1402,
  kSerializeUnsupported = -1500,
  kSerializeFail = -1501,
  kDeserializeFail = -1502,
  kPersistentFail = -1503,
  kDfsNetworkTimeout = -1600,
  kDfsServiceUnavailable = -1601,
  kDfsQuotaExceeded = -1602,
  kDfsPermissionDenied = -1603,
  kDfsStaleHandle = -1604,
  kDfsPartialWrite = -1605,
  kTenantQuotaExceeded = -1700,
  kTenantNotRegistered = -1701,
  kTenantNotEmpty = -1702,
};

// "OBJECT_NOT_FOUND" and so on; "UNKNOWN_ERROR" for a number that is no StoreCode.
[[nodiscard]] std::string_view StoreCodeName(StoreCode code);

// What a StoreCode is on the wire and in the public APIs.
[[nodiscard]] constexpr std::int32_t ToInt(StoreCode code) {
  return static_cast<std::int32_t>(code);
}

}  // namespace mooncake::store
