#include "mooncake-transfer-engine/include/transfer_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <utility>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/factory.h"
#include "mooncake-transfer-engine/src/faces/classic_types.h"
#include "mooncake-transfer-engine/src/faces/graceful_shutdown.h"

namespace mooncake {

std::string Status::ToString() const {
  return ok() ? "OK" : fmt::format("{}: {}", static_cast<int>(code_), message_);
}

TransferEngine::TransferEngine(bool auto_discover) { auto_discover_.enabled = auto_discover; }

TransferEngine::TransferEngine(bool auto_discover, const std::vector<std::string>& filter)
    : filter_(filter) {
  auto_discover_.enabled = auto_discover;
}

TransferEngine::~TransferEngine() { freeEngine(); }
TransferEngine::TransferEngine(TransferEngine&&) noexcept = default;
TransferEngine& TransferEngine::operator=(TransferEngine&& other) noexcept {
  if (this != &other) {
    freeEngine();
    auto_discover_ = std::move(other.auto_discover_);
    filter_ = std::move(other.filter_);
    engine_ = std::move(other.engine_);
    tcp_ = std::move(other.tcp_);
  }
  return *this;
}

int TransferEngine::init(const std::string& metadata_conn_string,
                         const std::string& local_server_name,
                         const std::string& /*ip_or_host_name*/, std::uint64_t rpc_port) {
  if (engine_ != nullptr) {
    return 0;
  }
  auto engine = transfer::CreateEngine({.local_name = local_server_name,
                                        .metadata = metadata_conn_string,
                                        .protocol = auto_discover_.protocol,
                                        .devices = fmt::format("{}", fmt::join(filter_, ",")),
                                        .rpc_port = rpc_port});
  if (!engine) {
    return Failed("initialise the engine", engine.error());
  }
  engine_ = std::move(engine).value();
  tcp_ = std::make_unique<Transport>("tcp");
  return 0;
}

int TransferEngine::freeEngine() {
  if (engine_ != nullptr) {
    engine_->Stop();
    engine_.reset();
  }
  tcp_.reset();
  return 0;
}

Transport* TransferEngine::installTransport(const std::string& proto, void** /*args*/) {
  Transport* transport = getTransport(proto);
  if (transport == nullptr) {
    MC_LOG_WARNING("install transport {}: this engine offers tcp only{}", proto,
                   engine_ == nullptr ? ", and only after init()" : "");
  }
  return transport;
}

int TransferEngine::uninstallTransport(const std::string& /*proto*/) { return 0; }

Transport* TransferEngine::getTransport(const std::string& proto) {
  return proto == "tcp" ? tcp_.get() : nullptr;
}

std::string TransferEngine::getLocalIpAndPort() {
  if (engine_ == nullptr) {
    return "";
  }
  const std::string host = ReachedHost(*engine_);
  return host.empty() ? engine_->name() : FormatHostPort(host, engine_->rpc_port());
}

int TransferEngine::getRpcPort() { return engine_ ? engine_->rpc_port() : 0; }

SegmentHandle TransferEngine::openSegment(const std::string& segment_name) {
  return OpenedOrMax(engine_.get(), segment_name);
}

Status TransferEngine::CheckSegmentStatus(SegmentID segment) {
  return ToStatus(engine_ ? engine_->RefreshSegment(segment) : std::unexpected(NotInitialised()));
}

int TransferEngine::closeSegment(SegmentHandle segment) {
  return engine_ ? Number("close a segment", engine_->CloseSegment(segment)) : 0;
}

int TransferEngine::removeLocalSegment(const std::string& segment_name) {
  // The local segment is there exactly as long as the engine runs.
  if (engine_ != nullptr && segment_name == engine_->name()) {
    engine_->Stop();
  }
  return 0;
}

int TransferEngine::syncSegmentCache(const std::string& segment_name) {
  if (engine_ == nullptr) {
    return Failed("refresh descriptors", NotInitialised());
  }
  if (segment_name.empty()) {
    return Number("refresh descriptors", engine_->RefreshAllSegments());
  }
  const auto segment = engine_->OpenSegment(segment_name);
  return segment ? Number("refresh a descriptor", engine_->RefreshSegment(*segment))
                 : Failed("refresh a descriptor", segment.error());
}

int TransferEngine::registerLocalMemory(void* addr, std::size_t length, const std::string& location,
                                        bool remote_accessible, bool update_metadata) {
  if (engine_ == nullptr) {
    return Failed("register memory", NotInitialised());
  }
  const transfer::MemoryRegistration memory{.address = addr,
                                            .length_bytes = length,
                                            .location = location,
                                            .remote_accessible = remote_accessible,
                                            .shared = {}};
  return Number("register memory", engine_->RegisterMemory(std::span(&memory, 1), update_metadata));
}

int TransferEngine::unregisterLocalMemory(void* addr, bool update_metadata) {
  return engine_ ? Number("unregister memory",
                          engine_->UnregisterMemory(std::span(&addr, 1), update_metadata))
                 : Failed("unregister memory", NotInitialised());
}

int TransferEngine::registerLocalMemoryBatch(const std::vector<BufferEntry>& buffers,
                                             const std::string& location) {
  if (engine_ == nullptr) {
    return Failed("register memory", NotInitialised());
  }
  std::vector<transfer::MemoryRegistration> memory;
  memory.reserve(buffers.size());
  for (const BufferEntry& buffer : buffers) {
    memory.push_back({.address = buffer.addr,
                      .length_bytes = buffer.length,
                      .location = location,
                      .shared = {}});
  }
  return Number("register memory", engine_->RegisterMemory(memory));
}

int TransferEngine::unregisterLocalMemoryBatch(const std::vector<void*>& addresses) {
  return engine_ ? Number("unregister memory", engine_->UnregisterMemory(addresses))
                 : Failed("unregister memory", NotInitialised());
}

bool TransferEngine::checkOverlap(void* addr, std::uint64_t length) {
  return engine_ != nullptr && engine_->OverlapsRegistered(addr, length);
}

BatchID TransferEngine::allocateBatchID(std::size_t batch_size) {
  const auto batch = engine_ ? engine_->AllocateBatch(batch_size)
                             : Result<BatchID>(std::unexpected(NotInitialised()));
  if (!batch) {
    Failed("allocate a batch", batch.error());
    return INVALID_BATCH_ID;
  }
  return *batch;
}

Status TransferEngine::Submit(BatchID batch, const std::vector<TransferRequest>& entries,
                              const TransferMetadata::NotifyDesc* notify) {
  if (engine_ == nullptr) {
    return ToStatus(NotInitialised());
  }
  std::vector<transfer::TransferRequest> requests;
  requests.reserve(entries.size());
  for (const TransferRequest& entry : entries) {
    requests.push_back(ToRequest(entry));
  }
  return ToBatchStatus(
      notify == nullptr
          ? engine_->Submit(batch, requests)
          : engine_->SubmitWithNotify(batch, requests,
                                      {.name = notify->name, .message = notify->notify_msg}));
}

Status TransferEngine::submitTransfer(BatchID batch, const std::vector<TransferRequest>& entries) {
  return Submit(batch, entries, nullptr);
}

Status TransferEngine::submitTransferWithNotify(
    BatchID batch, const std::vector<TransferRequest>& entries,
    // NOLINTNEXTLINE(performance-unnecessary-value-param)
    TransferMetadata::NotifyDesc notify) {
  return Submit(batch, entries, &notify);
}

namespace {

Status Report(const Result<transfer::TransferStatus>& result, TransferStatus& status) {
  if (result) {
    status.s = static_cast<TransferStatusEnum>(result->state);
    status.transferred_bytes = result->transferred_bytes;
  }
  return ToBatchStatus(result);
}

}  // namespace

Status TransferEngine::getTransferStatus(BatchID batch, std::size_t task, TransferStatus& status) {
  return engine_ ? Report(engine_->TaskStatus(batch, task), status) : ToStatus(NotInitialised());
}

Status TransferEngine::getBatchTransferStatus(BatchID batch, TransferStatus& status) {
  if (engine_ == nullptr) {
    return ToStatus(NotInitialised());
  }
  auto report = engine_->BatchStatus(batch);
  // Of a batch, users know three states; each task tells how it failed.
  if (report && transfer::IsTerminal(report->state) &&
      report->state != transfer::TransferState::kCompleted) {
    report->state = transfer::TransferState::kFailed;
  }
  return Report(report, status);
}

Status TransferEngine::freeBatchID(BatchID batch) {
  return ToBatchStatus(engine_ ? engine_->FreeBatch(batch) : std::unexpected(NotInitialised()));
}

int TransferEngine::getNotifies(std::vector<TransferMetadata::NotifyDesc>& notifies) {
  if (engine_ == nullptr) {
    return Failed("take notifies", NotInitialised());
  }
  notifies.clear();
  for (transfer::Notify& notify : engine_->TakeNotifies()) {
    notifies.push_back({.name = std::move(notify.name), .notify_msg = std::move(notify.message)});
  }
  return 0;
}

int TransferEngine::sendNotifyByID(SegmentID segment, TransferMetadata::NotifyDesc notify) {
  return engine_ ? Number("send a notify",
                          engine_->SendNotify(segment, {.name = std::move(notify.name),
                                                        .message = std::move(notify.notify_msg)}))
                 : Failed("send a notify", NotInitialised());
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the published signature.
int TransferEngine::sendNotifyByName(std::string segment_name,
                                     TransferMetadata::NotifyDesc notify) {
  return engine_
             ? Number("send a notify",
                      engine_->SendNotify(segment_name, {.name = std::move(notify.name),
                                                         .message = std::move(notify.notify_msg)}))
             : Failed("send a notify", NotInitialised());
}

PeerLiveness TransferEngine::probePeerAliveByID(SegmentID segment) {
  return engine_ != nullptr && engine_->ProbePeer(segment) ? PeerLiveness::Alive
                                                           : PeerLiveness::Unreachable;
}

std::shared_ptr<TransferMetadata> TransferEngine::getMetadata() {
  return engine_ ? std::make_shared<TransferMetadata>(engine_) : nullptr;
}

Status TransferEngine::getNicLoadStats(std::vector<NicLoadStats>& stats) const {
  stats.clear();
  return Status::OK();
}

std::string TransferEngine::showLinks(bool json) const {
  return json ? R"({"local_nics":[],"topology":{}})"
              : "Local NICs\n  none\nTopology (NIC Selection)\n  none\n";
}

void TransferEngine::enableGracefulShutdown() {
  if (engine_ != nullptr) {
    transfer::AddToGracefulShutdown(engine_);
  }
}

}  // namespace mooncake
