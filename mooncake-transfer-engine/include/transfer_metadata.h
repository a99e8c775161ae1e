// What a TransferEngine knows of segments, its own and its peers': where their registered memory
// lies, and who answers for them. Comes from TransferEngine::getMetadata().
//
// Thread-safety: every method, from any thread at once.
// Blocking:      asking about a segment for the first time, or with force_update, sendNotify,
//                sendProbe and removeSegmentDesc ask the network, with a deadline of seconds.
// Lifetime:      outlives its engine; then every call fails.
// Errors:        null or UINT64_MAX, or one of the negative ERR_ numbers; the log has the reason.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mooncake {

namespace transfer {
class Engine;
}

using SegmentID = std::uint64_t;

class TransferMetadata {
 public:
  struct BufferDesc {
    std::string name;
    std::uint64_t addr = 0;  // In the address space of the segment's process.
    std::uint64_t length = 0;
  };
  struct SegmentDesc {
    std::string name;
    std::string protocol;
    std::vector<BufferDesc> buffers;
    std::string tcp_data_host;
    std::uint16_t tcp_data_port = 0;
    std::uint32_t tcp_proto_version = 1;
    std::string timestamp;  // Of its publication: "YYYY-MM-DD HH:MM:SS.uuuuuu".
  };
  struct NotifyDesc {
    std::string name;
    std::string notify_msg;
  };
  struct RpcMetaDesc {
    std::string ip_or_host_name;
    std::uint16_t rpc_port = 0;
  };

  explicit TransferMetadata(std::weak_ptr<transfer::Engine> engine);

  // As it was when last asked for, or, with force_update, as it is now. Our own segment is always
  // as it is now.
  std::shared_ptr<SegmentDesc> getSegmentDescByName(const std::string& segment_name,
                                                    bool force_update = false);
  std::shared_ptr<SegmentDesc> getSegmentDescByID(SegmentID segment_id, bool force_update = false);
  SegmentID getSegmentID(const std::string& segment_name);
  // Deletes what a metadata server holds about a segment, of a process known to be gone. Between
  // peers there is nothing to delete.
  int removeSegmentDesc(const std::string& segment_name);

  int sendNotify(const std::string& peer_server_name, const NotifyDesc& notify);
  int sendProbe(const std::string& peer_server_name);  // 0 when the peer's process answers.

  // Where peers' handshakes reach this engine; empty and 0 when it is gone.
  [[nodiscard]] RpcMetaDesc localRpcMeta() const;
  // Writes the descriptor of a segment to the log, or, of "", that of our own.
  void dumpMetadataContent(const std::string& segment_name = "");

 private:
  std::weak_ptr<transfer::Engine> engine_;
};

}  // namespace mooncake
