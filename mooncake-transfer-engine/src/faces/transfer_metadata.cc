#include "mooncake-transfer-engine/include/transfer_metadata.h"

#include <limits>
#include <utility>

#include "mooncake-common/src/base/log.h"
#include "mooncake-transfer-engine/src/faces/classic_types.h"
#include "mooncake-transfer-engine/src/metadata/descriptor_codec.h"

namespace mooncake {

namespace {

TransferMetadata::SegmentDesc ToClassic(const transfer::SegmentDescriptor& descriptor) {
  TransferMetadata::SegmentDesc segment{.name = descriptor.name,
                                        .protocol = descriptor.protocol,
                                        .buffers = {},
                                        .tcp_data_host = descriptor.tcp_data_host,
                                        .tcp_data_port = descriptor.tcp_data_port,
                                        .tcp_proto_version = descriptor.tcp_proto_version,
                                        .timestamp = descriptor.timestamp};
  segment.buffers.reserve(descriptor.buffers.size());
  for (const transfer::BufferDescriptor& buffer : descriptor.buffers) {
    segment.buffers.push_back(
        {.name = buffer.name, .addr = buffer.address, .length = buffer.length_bytes});
  }
  return segment;
}

using Descriptor = std::shared_ptr<const transfer::SegmentDescriptor>;

Result<Descriptor> Describe(transfer::Engine& engine, SegmentID segment, bool force_update) {
  if (force_update && segment != transfer::kLocalSegment) {
    MC_TRY(engine.RefreshSegment(segment));
  }
  return engine.Descriptor(segment);
}

Result<Descriptor> Describe(transfer::Engine& engine, const std::string& name, bool force_update) {
  MC_TRY_ASSIGN(const SegmentID segment, engine.OpenSegment(name));
  return Describe(engine, segment, force_update);
}

template <typename Which>
std::shared_ptr<TransferMetadata::SegmentDesc> Answer(const std::weak_ptr<transfer::Engine>& engine,
                                                      const Which& which, bool force_update) {
  const auto alive = engine.lock();
  const Result<Descriptor> described =
      alive != nullptr ? Describe(*alive, which, force_update) : std::unexpected(NotInitialised());
  if (!described) {
    Failed("describe a segment", described.error());
    return nullptr;
  }
  return std::make_shared<TransferMetadata::SegmentDesc>(ToClassic(**described));
}

}  // namespace

TransferMetadata::TransferMetadata(std::weak_ptr<transfer::Engine> engine)
    : engine_(std::move(engine)) {}

std::shared_ptr<TransferMetadata::SegmentDesc> TransferMetadata::getSegmentDescByName(
    const std::string& segment_name, bool force_update) {
  return Answer(engine_, segment_name, force_update);
}

std::shared_ptr<TransferMetadata::SegmentDesc> TransferMetadata::getSegmentDescByID(
    SegmentID segment_id, bool force_update) {
  return Answer(engine_, segment_id, force_update);
}

SegmentID TransferMetadata::getSegmentID(const std::string& segment_name) {
  const auto engine = engine_.lock();
  return OpenedOrMax(engine.get(), segment_name);
}

int TransferMetadata::removeSegmentDesc(const std::string& segment_name) {
  const auto engine = engine_.lock();
  return engine != nullptr ? Number("remove a descriptor", engine->RemoveDescriptor(segment_name))
                           : Failed("remove a descriptor", NotInitialised());
}

int TransferMetadata::sendNotify(const std::string& peer_server_name, const NotifyDesc& notify) {
  const auto engine = engine_.lock();
  return engine != nullptr
             ? Number("send a notify",
                      engine->SendNotify(peer_server_name,
                                         {.name = notify.name, .message = notify.notify_msg}))
             : Failed("send a notify", NotInitialised());
}

int TransferMetadata::sendProbe(const std::string& peer_server_name) {
  const auto engine = engine_.lock();
  return engine != nullptr ? Number("probe a peer", engine->ProbePeer(peer_server_name))
                           : Failed("probe a peer", NotInitialised());
}

TransferMetadata::RpcMetaDesc TransferMetadata::localRpcMeta() const {
  const auto engine = engine_.lock();
  return engine != nullptr
             ? RpcMetaDesc{.ip_or_host_name = ReachedHost(*engine), .rpc_port = engine->rpc_port()}
             : RpcMetaDesc{};
}

void TransferMetadata::dumpMetadataContent(const std::string& segment_name) {
  const auto engine = engine_.lock();
  const auto described = engine == nullptr ? Result<Descriptor>(std::unexpected(NotInitialised()))
                         : segment_name.empty()
                             ? engine->LocalDescriptor()
                             : Describe(*engine, segment_name, /*force_update=*/false);
  if (described) {
    MC_LOG_INFO("{}", transfer::EncodeDescriptor(**described));
  } else {
    Failed("dump a descriptor", described.error());
  }
}

}  // namespace mooncake
