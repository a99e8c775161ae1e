#include "mooncake-store/src/protocol/error_code.h"

#include <algorithm>
#include <array>

namespace mooncake::store {

namespace {

struct NamedCode {
  StoreCode code;
  std::string_view name;
};

constexpr std::array kCodes = {
    NamedCode{StoreCode::kOk, "OK"},
    NamedCode{StoreCode::kInternalError, "INTERNAL_ERROR"},
    NamedCode{StoreCode::kBufferOverflow, "BUFFER_OVERFLOW"},
    NamedCode{StoreCode::kShardIndexOutOfRange, "SHARD_INDEX_OUT_OF_RANGE"},
    NamedCode{StoreCode::kSegmentNotFound, "SEGMENT_NOT_FOUND"},
    NamedCode{StoreCode::kSegmentAlreadyExists, "SEGMENT_ALREADY_EXISTS"},
    NamedCode{StoreCode::kClientNotFound, "CLIENT_NOT_FOUND"},
    NamedCode{StoreCode::kNoAvailableHandle, "NO_AVAILABLE_HANDLE"},
    NamedCode{StoreCode::kInvalidVersion, "INVALID_VERSION"},
    NamedCode{StoreCode::kInvalidKey, "INVALID_KEY"},
    NamedCode{StoreCode::kWriteFail, "WRITE_FAIL"},
    NamedCode{StoreCode::kInvalidParams, "INVALID_PARAMS"},
    NamedCode{StoreCode::kIllegalClient, "ILLEGAL_CLIENT"},
    NamedCode{StoreCode::kInvalidWrite, "INVALID_WRITE"},
    NamedCode{StoreCode::kInvalidRead, "INVALID_READ"},
    NamedCode{StoreCode::kInvalidReplica, "INVALID_REPLICA"},
    NamedCode{StoreCode::kReplicaIsNotReady, "REPLICA_IS_NOT_READY"},
    NamedCode{StoreCode::kObjectNotFound, "OBJECT_NOT_FOUND"},
    NamedCode{StoreCode::kObjectAlreadyExists, "OBJECT_ALREADY_EXISTS"},
    NamedCode{StoreCode::kObjectHasLease, "OBJECT_HAS_LEASE"},
    NamedCode{StoreCode::kLeaseExpired, "LEASE_EXPIRED"},
    NamedCode{StoreCode::kObjectHasReplicationTask, "OBJECT_HAS_REPLICATION_TASK"},
    NamedCode{StoreCode::kObjectNoReplicationTask, "OBJECT_NO_REPLICATION_TASK"},
    NamedCode{StoreCode::kReplicaNotFound, "REPLICA_NOT_FOUND"},
    NamedCode{StoreCode::kReplicaAlreadyExists, "REPLICA_ALREADY_EXISTS"},
    NamedCode{StoreCode::kReplicaIsGone, "REPLICA_IS_GONE"},
    NamedCode{StoreCode::kReplicaNotInLocalMemory, "REPLICA_NOT_IN_LOCAL_MEMORY"},
    NamedCode{StoreCode::kObjectReplicaBusy, "OBJECT_REPLICA_BUSY"},
    NamedCode{StoreCode::kTransferFail, "TRANSFER_FAIL"},
    NamedCode{StoreCode::kChecksumMismatch, "CHECKSUM_MISMATCH"},
    NamedCode{StoreCode::kRpcFail, "RPC_FAIL"},
    NamedCode{StoreCode::kRpcTimeout, "RPC_TIMEOUT"},
    NamedCode{StoreCode::kEtcdOperationError, "ETCD_OPERATION_ERROR"},
    NamedCode{StoreCode::kEtcdKeyNotExist, "ETCD_KEY_NOT_EXIST"},
    NamedCode{StoreCode::kEtcdTransactionFail, "ETCD_TRANSACTION_FAIL"},
    NamedCode{StoreCode::kEtcdCtxCancelled, "ETCD_CTX_CANCELLED"},
    NamedCode{StoreCode::kOplogEntryNotFound, "OPLOG_ENTRY_NOT_FOUND"},
    NamedCode{StoreCode::kK8sLeaseOperationError, "K8S_LEASE_OPERATION_ERROR"},
    NamedCode{StoreCode::kK8sLeaseNotFound, "K8S_LEASE_NOT_FOUND"},
    NamedCode{StoreCode::kIncompleteOplogCatchUp, "INCOMPLETE_OPLOG_CATCH_UP"},
    NamedCode{StoreCode::kUnavailableInCurrentStatus, "UNAVAILABLE_IN_CURRENT_STATUS"},
    NamedCode{StoreCode::kUnavailableInCurrentMode, "UNAVAILABLE_IN_CURRENT_MODE"},
    NamedCode{StoreCode::kNotSupported, "NOT_SUPPORTED"},
    NamedCode{StoreCode::kFileNotFound, "FILE_NOT_FOUND"},
    NamedCode{StoreCode::kFileOpenFail, "FILE_OPEN_FAIL"},
    NamedCode{StoreCode::kFileReadFail, "FILE_READ_FAIL"},
    NamedCode{StoreCode::kFileWriteFail, "FILE_WRITE_FAIL"},
    NamedCode{StoreCode::kFileInvalidBuffer, "FILE_INVALID_BUFFER"},
    NamedCode{StoreCode::kFileLockFail, "FILE_LOCK_FAIL"},
    NamedCode{StoreCode::kFileInvalidHandle, "FILE_INVALID_HANDLE"},
    NamedCode{StoreCode::kBucketNotFound, "BUCKET_NOT_FOUND"},
    NamedCode{StoreCode::kBucketAlreadyExists, "BUCKET_ALREADY_EXISTS"},
    NamedCode{StoreCode::kKeysExceedBucketLimit, "KEYS_EXCEED_BUCKET_LIMIT"},
    NamedCode{StoreCode::kKeysUltraLimit, "KEYS_ULTRA_LIMIT"},
    NamedCode{StoreCode::kUnableOffload, "UNABLE_OFFLOAD"},
    NamedCode{StoreCode::kUnableOffloading, "UNABLE_OFFLOADING"},
    NamedCode{StoreCode::kTaskNotFound, "TASK_NOT_FOUND"},
    NamedCode{StoreCode::kTaskPendingLimitExceeded, "TASK_PENDING_LIMIT_EXCEEDED"},
    NamedCode{StoreCode::kJobNotFound, "JOB_NOT_FOUND"},
    NamedCode{StoreCode::kSerializeUnsupported, "SERIALIZE_UNSUPPORTED"},
    NamedCode{StoreCode::kSerializeFail, "SERIALIZE_FAIL"},
    NamedCode{StoreCode::kDeserializeFail, "DESERIALIZE_FAIL"},
    NamedCode{StoreCode::kPersistentFail, "PERSISTENT_FAIL"},
    NamedCode{StoreCode::kDfsNetworkTimeout, "DFS_NETWORK_TIMEOUT"},
    NamedCode{StoreCode::kDfsServiceUnavailable, "DFS_SERVICE_UNAVAILABLE"},
    NamedCode{StoreCode::kDfsQuotaExceeded, "DFS_QUOTA_EXCEEDED"},
    NamedCode{StoreCode::kDfsPermissionDenied, "DFS_PERMISSION_DENIED"},
    NamedCode{StoreCode::kDfsStaleHandle, "DFS_STALE_HANDLE"},
    NamedCode{StoreCode::kDfsPartialWrite, "DFS_PARTIAL_WRITE"},
    NamedCode{StoreCode::kTenantQuotaExceeded, "TENANT_QUOTA_EXCEEDED"},
    NamedCode{StoreCode::kTenantNotRegistered, "TENANT_NOT_REGISTERED"},
    NamedCode{StoreCode::kTenantNotEmpty, "TENANT_NOT_EMPTY"},
};

}  // namespace

std::string_view StoreCodeName(StoreCode code) {
  const auto* found = std::ranges::find(kCodes, code, &NamedCode::code);
  return found == kCodes.end() ? "UNKNOWN_ERROR" : found->name;
}

}  // namespace mooncake::store
