// The classic C++ interface of the transfer engine, as users of the published package know it. New
// code does better with mooncake/transfer/engine.h, on which this stands.
//
// Thread-safety: after init() every method, from any thread at once. init(), freeEngine() and moves
//                are for one thread, with no other call under way.
// Ownership:     the caller keeps memory registered and alive until its tasks are terminal.
// Errors:        methods that return int give 0 or one of the negative ERR_ numbers and log the
//                reason; methods that return Status carry it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transfer_metadata.h"

namespace mooncake {

// NOLINTBEGIN(readability-identifier-naming): users' spelling.
inline constexpr int ERR_INVALID_ARGUMENT = -1;
inline constexpr int ERR_TOO_MANY_REQUESTS = -2;
inline constexpr int ERR_ADDRESS_NOT_REGISTERED = -3;
inline constexpr int ERR_BATCH_BUSY = -4;
inline constexpr int ERR_DEVICE_NOT_FOUND = -6;
inline constexpr int ERR_ADDRESS_OVERLAPPED = -7;
inline constexpr int ERR_DNS = -101;
inline constexpr int ERR_SOCKET = -102;
inline constexpr int ERR_MALFORMED_JSON = -103;
inline constexpr int ERR_REJECT_HANDSHAKE = -104;
inline constexpr int ERR_METADATA = -200;
inline constexpr int ERR_ENDPOINT = -201;
inline constexpr int ERR_CONTEXT = -202;
inline constexpr int ERR_NUMA = -300;
inline constexpr int ERR_CLOCK = -301;
inline constexpr int ERR_MEMORY = -302;
inline constexpr int ERR_NOT_IMPLEMENTED = -303;
// NOLINTEND(readability-identifier-naming)

class Status {
 public:
  enum class Code : std::uint16_t {
    kOk = 0,
    kInvalidArgument = 1,
    kTooManyRequests = 2,
    kAddressNotRegistered = 3,
    kBatchBusy = 4,
    kDeviceNotFound = 6,
    kAddressOverlapped = 7,
    kNotSupportedTransport = 8,
    kDns = 101,
    kSocket = 102,
    kMalformedJson = 103,
    kRejectHandshake = 104,
    kMetadata = 200,
    kEndpoint = 201,
    kContext = 202,
    kNuma = 300,
    kClock = 301,
    kMemory = 302,
    kNotImplemented = 999,
  };

  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status OK() { return {}; }

  [[nodiscard]] bool ok() const { return code_ == Code::kOk; }
  [[nodiscard]] Code code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  // "OK", or "<number>: <message>".
  [[nodiscard]] std::string ToString() const;
  friend bool operator==(const Status& a, const Status& b) { return a.code_ == b.code_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

using SegmentHandle = std::uint64_t;
using BatchID = std::uint64_t;
inline constexpr SegmentID LOCAL_SEGMENT_ID = 0;         // NOLINT(readability-identifier-naming)
inline constexpr BatchID INVALID_BATCH_ID = UINT64_MAX;  // NOLINT(readability-identifier-naming)
inline const std::string kWildcardLocation = "*";        // NOLINT(bugprone-throwing-static-*)

struct BufferEntry {
  void* addr;
  std::size_t length;
};

struct TransferRequest {
  enum OpCode { READ, WRITE };  // NOLINT(readability-identifier-naming): users' spelling.
  OpCode opcode;
  void* source;  // Local memory: a READ's destination, a WRITE's source.
  SegmentID target_id;
  std::uint64_t target_offset;  // An address of the peer.
  std::size_t length;
  int advise_retry_cnt = 0;  // Of no effect: the engine sends failed slices again by itself.
  int transport_hint = 0;    // Of no effect.
  std::uint64_t task_group_id = 0;
};

// NOLINTBEGIN(readability-identifier-naming): users' spelling.
enum TransferStatusEnum { WAITING, PENDING, INVALID, CANCELED, COMPLETED, TIMEOUT, FAILED };
// NOLINTEND(readability-identifier-naming)

struct TransferStatus {
  TransferStatusEnum s;
  std::size_t transferred_bytes;
};

struct NicLoadStats {
  std::string device_name;
  std::uint64_t inflight_bytes;
  double ewma_bandwidth_bps;
};

enum class PeerLiveness { Alive = 0, Unreachable = 1 };  // NOLINT(readability-identifier-naming)

struct AutoDiscoverConfig {
  bool enabled = false;
  std::string protocol;
};

// Which NICs serve which memory. Empty: this build drives no NIC by itself.
class Topology {
 public:
  [[nodiscard]] std::string toString() const { return "{}\n"; }
  [[nodiscard]] std::vector<std::string> getHcaList() const { return {}; }
};

// Transports between GPUs; this build has none.
namespace device {
class P2pTransport;
class RdmaTransport;
class NcclTransport;
}  // namespace device

// A transport that is in use; what installTransport() answers with.
class Transport {
 public:
  explicit Transport(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] const char* getName() const { return name_.c_str(); }

 private:
  std::string name_;
};

// Many fragments between one remote and one local range.
struct ScatterTransferRange {
  TransferRequest::OpCode opcode;
  std::string remote_segment;
  std::uint64_t remote_base_offset;
  std::size_t remote_size;
  void* local_buffer;
  std::size_t local_capacity;
  std::span<const std::size_t> local_offsets;   // One a fragment, from local_buffer.
  std::span<const std::size_t> remote_offsets;  // One a fragment, from remote_base_offset.
  std::span<const std::size_t> lengths;         // One a fragment.
  // Called once a fragment, with its index, by the thread that waits for the operation (or destroys
  // it); must not wait for it itself. Not called when the transfer could not begin.
  std::function<void(std::size_t, const Status&)> on_fragment_complete;
};

// Handle of a scatter under way. Movable; for one consumer. Destroying it waits for the end.
class ScatterTransferOperation {
 public:
  ScatterTransferOperation(ScatterTransferOperation&&) noexcept;
  ScatterTransferOperation& operator=(ScatterTransferOperation&&) noexcept;
  ~ScatterTransferOperation();

  // Until every fragment has ended: the first fragment's failure, in order, or ok. Not to be called
  // on what was moved from.
  Status wait();
  // The same; kSocket when fragments are still under way after `timeout` (0 = only looks). The
  // transfer goes on then.
  Status waitFor(std::chrono::nanoseconds timeout);

 private:
  friend class TransferEngine;
  struct State;
  Status Settle(std::chrono::nanoseconds waited);
  explicit ScatterTransferOperation(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class TransferEngine {
 public:
  explicit TransferEngine(bool auto_discover = false);
  // `filter`: names of NICs that may be used.
  TransferEngine(bool auto_discover, const std::vector<std::string>& filter);
  ~TransferEngine();
  TransferEngine(TransferEngine&&) noexcept;
  TransferEngine& operator=(TransferEngine&&) noexcept;
  TransferEngine(const TransferEngine&) = delete;
  TransferEngine& operator=(const TransferEngine&) = delete;

  // What is advertised follows from the name and MC_TCP_BIND_ADDRESS; `ip_or_host_name` is of no
  // effect, and `rpc_port` only under MC_LEGACY_RPC_PORT_BINDING, when the name has no port.
  int init(const std::string& metadata_conn_string, const std::string& local_server_name,
           const std::string& ip_or_host_name = "", std::uint64_t rpc_port = 12345);
  int freeEngine();

  // "tcp" is always there after init(); nullptr for what this machine does not offer. The pointer
  // is the engine's.
  Transport* installTransport(const std::string& proto, void** args);
  int uninstallTransport(const std::string& proto);
  Transport* getTransport(const std::string& proto);
  [[nodiscard]] bool isTcpOnly() const { return true; }
  [[nodiscard]] int numContexts() const { return 0; }  // NICs that work by verbs.
  [[nodiscard]] bool isUsingTent() const { return false; }

  std::string getLocalIpAndPort();  // Where peers' handshakes reach this engine, "host:port".
  int getRpcPort();

  SegmentHandle openSegment(const std::string& segment_name);  // UINT64_MAX on failure.
  Status CheckSegmentStatus(SegmentID segment);
  int closeSegment(SegmentHandle segment);
  // Our own name: stops the engine, whose memory may still be unregistered; another name: nothing.
  int removeLocalSegment(const std::string& segment_name);
  int syncSegmentCache(const std::string& segment_name = "");

  int registerLocalMemory(void* addr, std::size_t length,
                          const std::string& location = kWildcardLocation,
                          bool remote_accessible = true, bool update_metadata = true);
  int unregisterLocalMemory(void* addr, bool update_metadata = true);
  int registerLocalMemoryBatch(const std::vector<BufferEntry>& buffers,
                               const std::string& location);
  int unregisterLocalMemoryBatch(const std::vector<void*>& addresses);
  bool checkOverlap(void* addr, std::uint64_t length);
  void* getBaseAddr() { return nullptr; }  // Of a CXL device; there is none.

  BatchID allocateBatchID(std::size_t batch_size);  // INVALID_BATCH_ID on failure.
  Status submitTransfer(BatchID batch, const std::vector<TransferRequest>& entries);
  Status submitTransferWithNotify(BatchID batch, const std::vector<TransferRequest>& entries,
                                  TransferMetadata::NotifyDesc notify);
  Status getTransferStatus(BatchID batch, std::size_t task, TransferStatus& status);
  Status getBatchTransferStatus(BatchID batch, TransferStatus& status);
  // kBatchBusy until the status of all tasks was seen to be terminal. Statuses of batches:
  // kInvalidArgument for a batch, task or segment that the engine does not know.
  Status freeBatchID(BatchID batch);

  ScatterTransferOperation submitScatter(const std::vector<ScatterTransferRange>& ranges);
  Status transferScatter(const std::vector<ScatterTransferRange>& ranges);

  int getNotifies(std::vector<TransferMetadata::NotifyDesc>& notifies);
  int sendNotifyByID(SegmentID segment, TransferMetadata::NotifyDesc notify);
  int sendNotifyByName(std::string segment_name, TransferMetadata::NotifyDesc notify);
  PeerLiveness probePeerAliveByID(SegmentID segment);

  Status getNicLoadStats(std::vector<NicLoadStats>& stats) const;  // Empty: no NIC is driven.
  std::shared_ptr<TransferMetadata> getMetadata();                 // Null before init().
  std::shared_ptr<Topology> getLocalTopology() { return std::make_shared<Topology>(); }
  std::string getLocalTopologyString() { return Topology().toString(); }
  [[nodiscard]] std::string showLinks(bool json = false) const;

  device::P2pTransport* getOrCreateP2pTransport(int /*num_ranks*/) { return nullptr; }
  device::RdmaTransport* getOrCreateRdmaTransport(const std::vector<std::string>& /*filter*/ = {}) {
    return nullptr;
  }
  device::NcclTransport* getOrCreateNcclTransport() { return nullptr; }

  void setAutoDiscover(bool enabled) { auto_discover_.enabled = enabled; }
  void setAutoDiscover(const AutoDiscoverConfig& config) { auto_discover_ = config; }
  void setWhitelistFilters(std::vector<std::string>&& filters) { filter_ = std::move(filters); }

  // On SIGTERM, SIGINT and at exit: stops every engine that asked for it, then ends the process.
  void enableGracefulShutdown();

  // The engine underneath; empty before init().
  [[nodiscard]] std::shared_ptr<transfer::Engine> engine() const { return engine_; }

 private:
  Status Submit(BatchID batch, const std::vector<TransferRequest>& entries,
                const TransferMetadata::NotifyDesc* notify);

  AutoDiscoverConfig auto_discover_;
  std::vector<std::string> filter_;
  std::shared_ptr<transfer::Engine> engine_;
  std::unique_ptr<Transport> tcp_;
};

}  // namespace mooncake
