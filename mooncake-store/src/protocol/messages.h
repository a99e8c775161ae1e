// What clients and the master say to each other, as plain structs. The batch is the normal form:
// one key is a batch of one. codec.h turns them into FlatBuffers and back; the simulator hands them
// over as they are.
//
// Thread-safety: values.
// Ownership:     keys and other string_views of a request point into memory of its sender (or the
//                received frame) and must outlive it; replies own all they hold. Clear() keeps
//                capacity, so that a struct reused from call to call stops allocating.
// Bounds:        kMaxKeysPerBatch keys, kMaxKeyBytes a key, kMaxSpanMs a reply's span of time; more
//                is an error of the whole message.
// Order:         per-key vectors have one entry for each key, in the order of the keys.
// Source:        docs/formats/store_rpc.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/uuid.h"
#include "mooncake-store/src/protocol/error_code.h"
#include "mooncake-store/src/protocol/replicas.h"

namespace mooncake::store {

inline constexpr std::size_t kMaxKeysPerBatch = 16384;  // A client cuts larger calls into windows.
inline constexpr std::size_t kMaxKeyBytes = 16384;
inline constexpr std::uint64_t kMinSegmentBytes = 4096;
inline constexpr std::uint64_t kMaxGraceMs = 365ULL * 24 * 3600 * 1000;
// Of every span of time in a reply, and of an operator's: 100 years, so that a clock's value and
// two of them fit into 64 bits of nanoseconds.
inline constexpr std::uint64_t kMaxSpanMs = 3'155'760'000'000;

// Numbers of the RPC frames. Only ever added to.
enum class Method : std::uint16_t {
  kServiceReady = 1,
  kPing = 2,
  kMountSegment = 3,
  kUnmountSegment = 4,
  kReMountSegments = 5,
  kQuerySegments = 6,
  kBatchExist = 10,
  kBatchGetReplicas = 11,
  kGetReplicasByRegex = 12,
  kBatchPutStart = 13,
  kBatchPutEnd = 14,
  kBatchRemove = 15,
  kRemoveByRegex = 16,
  kRemoveAll = 17,
  kBatchReplicaClear = 18,
  kReportFailedReads = 19,
};

// Who asks. The cache hits are those that the client served from its descriptor cache since its
// last message: the master counts them, it did not see them.
struct Caller {
  Uuid client;
  std::string_view tenant;  // Empty = "default"; without effect while tenants are off.
  std::uint64_t cache_hits = 0;
  std::uint64_t cache_hit_bytes = 0;
};

// Which part of a call this message is: the keys of one call form a chain (each useful only with
// those before it), which eviction respects across the windows that the call is cut into.
struct ChainPosition {
  std::uint64_t chain_id = 0;  // The same for all windows of a call; new for each call of a client.
  std::uint32_t position = 0;  // Index of the message's first key in the call.
  std::uint32_t total = 0;     // Keys in the whole call.
};

enum class SoftPinAction : std::uint8_t { kPreserve = 0, kEnable = 1, kDisable = 2 };

// Where and how a batch is to be placed. Fields as in the public ReplicateConfig.
struct ReplicateConfigView {
  std::uint32_t replica_num = 1;
  std::uint32_t nof_replica_num = 0;
  std::uint32_t dfs_replica_num = 0;
  SoftPinAction soft_pin_action = SoftPinAction::kPreserve;
  std::optional<std::uint64_t> soft_pin_ttl_ms;
  bool with_hard_pin = false;
  bool prefer_alloc_in_same_node = false;
  std::uint8_t data_type = 0;
  std::string_view preferred_segment;                // Wins over the list when not empty.
  std::vector<std::string_view> preferred_segments;  // Names, best first; a wish, not a demand.
  std::vector<std::string_view> group_ids;           // Empty, or one a key ("" = no group).
  std::string_view host_id;                          // Of the writer; empty = unknown.
};

// ---- Liveness and segments ----

struct ServiceReadyReply {
  StoreCode code = StoreCode::kOk;
  std::string version;  // Of the master, "1.0.0".
};

enum class ClientStatus : std::uint8_t { kUndefined = 0, kOk = 1, kNeedRemount = 2 };

struct PingRequest {
  Caller caller;
  std::uint64_t view_version = 0;  // Last one heard; 0 = none.
};
struct PingReply {
  StoreCode code = StoreCode::kOk;
  std::uint64_t view_version = 0;  // Changes when the master starts anew or leadership moves.
  ClientStatus status = ClientStatus::kUndefined;
  std::uint64_t client_ttl_ms = 0;  // Silence after which the master drops the client.
};

// Memory that a client offers.
struct SegmentInfo {
  Uuid id;
  std::string name;  // Several segments may share one.
  std::uint64_t base_address = 0;
  std::uint64_t size_bytes = 0;
  std::string te_endpoint;  // What the transfer engine opens.
  std::string protocol;
  std::string host_id;  // Empty = unknown.

  friend bool operator==(const SegmentInfo&, const SegmentInfo&) = default;
};

// What the master calls it.
struct SegmentIdentity {
  SegmentNumber number = 0;
  std::uint64_t incarnation = 0;

  friend bool operator==(const SegmentIdentity&, const SegmentIdentity&) = default;
};

struct MountSegmentRequest {
  Caller caller;
  SegmentInfo segment;
  // An earlier try got no answer, so the segment may have been mounted, and read, since.
  bool repeated = false;
};
struct MountSegmentReply {
  StoreCode code = StoreCode::kOk;
  SegmentIdentity identity;
};

// All segments of a client, after NEED_REMOUNT or a new master. Idempotent.
struct ReMountSegmentsRequest {
  Caller caller;
  std::vector<SegmentInfo> segments;
};
struct ReMountSegmentsReply {
  StoreCode code = StoreCode::kOk;  // Of the whole message; kOk when each segment has its own.
  std::vector<MountSegmentReply> segments;
};

struct UnmountSegmentRequest {
  Caller caller;
  Uuid segment;
  // Readable but not allocatable for so long, kMaxGraceMs at most; 0 = gone at once.
  std::uint64_t grace_ms = 0;
};
struct UnmountSegmentReply {
  StoreCode code = StoreCode::kOk;
};

enum class SegmentStatus : std::uint8_t {
  kUndefined = 0,
  kOk = 1,
  kDraining = 2,
  kDrained = 3,
  kGracefullyUnmounting = 4,
  kUnmounting = 5,
};

struct QuerySegmentsRequest {
  Caller caller;
  std::vector<SegmentNumber> numbers;  // Empty = all.
};
struct QueriedSegment {
  SegmentIdentity identity;
  SegmentInfo info;
  Uuid owner;
  SegmentStatus status = SegmentStatus::kUndefined;
};
struct QuerySegmentsReply {
  StoreCode code = StoreCode::kOk;
  std::vector<QueriedSegment> segments;  // In number order; unknown numbers are left out.
};

// ---- Lookups: each key found is leased to all readers ----

struct BatchExistRequest {
  Caller caller;
  ChainPosition chain;
  std::vector<std::string_view> keys;
};
struct BatchExistReply {
  StoreCode code = StoreCode::kOk;
  std::uint64_t lease_ttl_ms = 0;    // Counts from when the request was sent.
  std::vector<std::uint8_t> exists;  // 1 or 0 a key.

  void Clear() { exists.clear(); }
};

// What a location is asked for. It may be used for the reply's lease_ttl_ms; the object is kept
// from eviction and removal for the whole lease in any case.
enum class LeaseUse : std::uint8_t {
  kRead,   // To read now: a short time, renewed by asking again.
  kWhole,  // To be handed on: as long as the whole lease.
};

struct BatchGetReplicasRequest {
  Caller caller;
  ChainPosition chain;
  std::vector<std::string_view> keys;
  LeaseUse use = LeaseUse::kRead;
};
struct ObjectLocation {
  StoreCode code = StoreCode::kOk;  // The rest means something only for kOk.
  std::uint8_t data_type = 0;
  bool from_put = false;  // Never upserted: its descriptor may be cached for the lease.
  bool has_checksum = false;
  std::uint64_t size_bytes = 0;
  std::uint64_t version = 0;
  std::uint64_t checksum = 0;
  ReplicaRange replicas;  // Readable ones, in the order of storage.

  friend bool operator==(const ObjectLocation&, const ObjectLocation&) = default;
};
struct BatchGetReplicasReply {
  StoreCode code = StoreCode::kOk;
  std::uint64_t lease_ttl_ms = 0;  // Of the locations; counts from when the request was sent.
  std::vector<ObjectLocation> objects;
  ReplicaTable table;

  void Clear() {
    objects.clear();
    table.Clear();
  }
};

struct GetReplicasByRegexRequest {
  Caller caller;
  std::string_view pattern;  // ECMAScript, found anywhere in the key.
};
struct GetReplicasByRegexReply {
  StoreCode code = StoreCode::kOk;
  std::uint64_t lease_ttl_ms = 0;
  std::vector<std::string> keys;
  std::vector<ObjectLocation> objects;
  ReplicaTable table;
};

// ---- Writing: start, move the bytes, end ----

struct BatchPutStartRequest {
  Caller caller;
  ChainPosition chain;
  bool upsert = false;
  ReplicateConfigView config;
  std::vector<std::string_view> keys;
  std::vector<std::uint64_t> sizes_bytes;
};
struct PutStartResult {
  StoreCode code = StoreCode::kOk;
  std::uint64_t version = 0;  // Names this write in BatchPutEnd.
  ReplicaRange replicas;      // All of them are to be written.

  friend bool operator==(const PutStartResult&, const PutStartResult&) = default;
};
// Why a key got kNoAvailableHandle. All zero when none did.
struct FullHint {
  std::uint64_t retry_after_ms = 0;  // When something may have become free; 0 = unknown.
  std::uint64_t leased_bytes = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t in_flight_bytes = 0;

  friend bool operator==(const FullHint&, const FullHint&) = default;
};
struct BatchPutStartReply {
  StoreCode code = StoreCode::kOk;
  std::vector<PutStartResult> results;
  ReplicaTable table;
  FullHint full;

  void Clear() {
    results.clear();
    table.Clear();
    full = {};
  }
};

struct PutEnding {
  std::uint64_t version = 0;  // From PutStartResult; 0 = whichever write of this client is open.
  bool success = true;        // False: the write is revoked.
  bool has_checksum = false;
  std::uint64_t checksum = 0;
};
struct BatchPutEndRequest {
  Caller caller;
  std::vector<std::string_view> keys;
  std::vector<PutEnding> endings;
};
struct BatchPutEndReply {
  StoreCode code = StoreCode::kOk;
  std::vector<StoreCode> codes;

  void Clear() { codes.clear(); }
};

// ---- Removing ----

struct BatchRemoveRequest {
  Caller caller;
  bool force = false;  // Leased objects too.
  std::vector<std::string_view> keys;
};
struct BatchRemoveReply {
  StoreCode code = StoreCode::kOk;
  std::vector<StoreCode> codes;

  void Clear() { codes.clear(); }
};

struct RemoveByRegexRequest {
  Caller caller;
  bool force = false;
  std::string_view pattern;  // ECMAScript, found anywhere in the key.
};
struct RemoveAllRequest {
  Caller caller;
  bool force = false;
};
struct RemoveManyReply {  // Of both.
  StoreCode code = StoreCode::kOk;
  std::uint64_t removed = 0;
};

// Drops what the caller itself wrote: whole objects, or, with a segment's name, their replicas
// there.
struct BatchReplicaClearRequest {
  Caller caller;
  std::string_view segment_name;
  std::vector<std::string_view> keys;
};
struct BatchReplicaClearReply {
  StoreCode code = StoreCode::kOk;
  std::vector<std::uint8_t> cleared;  // 1 or 0 a key.

  void Clear() { cleared.clear(); }
};

// ---- Evidence ----

// Segments whose bytes this client could not reach. The master hides them from this client at
// once, and from all after several clients said so.
struct ReportFailedReadsRequest {
  Caller caller;
  std::vector<SegmentIdentity> segments;
};
struct ReportFailedReadsReply {
  StoreCode code = StoreCode::kOk;
};

}  // namespace mooncake::store
