#include "mooncake-transfer-engine/include/transfer_engine_c.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/log.h"
#include "mooncake-transfer-engine/include/transfer_engine.h"
#include "mooncake-transfer-engine/src/faces/error_numbers.h"

namespace {

using mooncake::Status;
using mooncake::TransferEngine;

static_assert(sizeof(transfer_request) == 40 && offsetof(transfer_request, source) == 8 &&
              offsetof(transfer_request, target_id) == 16 &&
              offsetof(transfer_request, target_offset) == 24 &&
              offsetof(transfer_request, length) == 32);
static_assert(sizeof(transfer_status) == 16 && offsetof(transfer_status, transferred_bytes) == 8);
static_assert(sizeof(notify_msg) == 16 && sizeof(buffer_entry) == 16);
static_assert(sizeof(nic_load_stat) == 80 && offsetof(nic_load_stat, ewma_bandwidth_bps) == 72);
static_assert(sizeof(segment_desc) == 48 && offsetof(segment_desc, desc_) == 8);

constexpr int kInvalidArgument = mooncake::ERR_INVALID_ARGUMENT;

TransferEngine* Of(transfer_engine_t engine) { return static_cast<TransferEngine*>(engine); }

std::string Text(const char* text) { return text == nullptr ? "" : text; }

// No exception (out of memory is the only one left) may cross into C. Calls `call` with the engine.
template <typename R, typename F>
R Guard(transfer_engine_t engine, R failure, F&& call) {
  if (engine == nullptr) {
    return failure;
  }
  try {
    return call(*Of(engine));
  } catch (const std::exception& error) {
    MC_LOG_ERROR("call the transfer engine: {}", error.what());
    return failure;
  }
}

constexpr int kStatusInvalidArgument = static_cast<int>(Status::Code::kInvalidArgument);

std::vector<mooncake::TransferRequest> Requests(const transfer_request* entries, size_t count) {
  std::vector<mooncake::TransferRequest> requests;
  requests.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    requests.push_back({.opcode = entries[i].opcode == OPCODE_READ
                                      ? mooncake::TransferRequest::READ
                                      : mooncake::TransferRequest::WRITE,
                        .source = entries[i].source,
                        // Negative ids are no segment's; the engine then says so.
                        .target_id = static_cast<mooncake::SegmentID>(entries[i].target_id),
                        .target_offset = entries[i].target_offset,
                        .length = entries[i].length});
  }
  return requests;
}

bool Malformed(const transfer_request* entries, size_t count) {
  if (entries == nullptr) {
    return count != 0;
  }
  return std::any_of(entries, entries + count, [](const transfer_request& entry) {
    return entry.opcode != OPCODE_READ && entry.opcode != OPCODE_WRITE;
  });
}

int Copy(const std::string& text, char* buf_out, size_t buf_len) {
  if (buf_out == nullptr || text.size() >= buf_len) {
    return kInvalidArgument;
  }
  std::memcpy(buf_out, text.c_str(), text.size() + 1);
  return 0;
}

segment_id_t ToSegmentId(mooncake::SegmentHandle segment) {
  return segment > INT32_MAX ? -1 : static_cast<segment_id_t>(segment);
}

char* Duplicate(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) {
    std::memcpy(copy, text.c_str(), text.size() + 1);
  }
  return copy;
}

}  // namespace

extern "C" {

transfer_engine_t createTransferEngine(const char* metadata_conn_string,
                                       const char* local_server_name, const char* ip_or_host_name,
                                       uint64_t rpc_port, int auto_discover) {
  try {
    auto engine = std::make_unique<TransferEngine>(auto_discover != 0);
    const int code = engine->init(Text(metadata_conn_string), Text(local_server_name),
                                  Text(ip_or_host_name), rpc_port);
    return code == 0 ? engine.release() : nullptr;
  } catch (const std::exception& error) {
    MC_LOG_ERROR("create a transfer engine: {}", error.what());
    return nullptr;
  }
}

void destroyTransferEngine(transfer_engine_t engine) { delete Of(engine); }

int discoverTopology(transfer_engine_t engine) { return engine == nullptr ? kInvalidArgument : 0; }

int getLocalIpAndPort(transfer_engine_t engine, char* buf_out, size_t buf_len) {
  return Guard(engine, kInvalidArgument, [&](TransferEngine& one) {
    return Copy(one.getLocalIpAndPort(), buf_out, buf_len);
  });
}

transport_t installTransport(transfer_engine_t engine, const char* proto, void** args) {
  return Guard(engine, static_cast<transport_t>(nullptr), [&](TransferEngine& one) -> transport_t {
    return one.installTransport(Text(proto), args);
  });
}

int uninstallTransport(transfer_engine_t engine, const char* proto) {
  return Guard(engine, kInvalidArgument,
               [&](TransferEngine& one) { return one.uninstallTransport(Text(proto)); });
}

segment_id_t openSegment(transfer_engine_t engine, const char* segment_name) {
  return Guard(engine, segment_id_t{-1}, [&](TransferEngine& one) {
    return ToSegmentId(one.openSegment(Text(segment_name)));
  });
}

segment_id_t openSegmentNoCache(transfer_engine_t engine, const char* segment_name) {
  return Guard(engine, segment_id_t{-1}, [&](TransferEngine& one) {
    const auto segment = one.openSegment(Text(segment_name));
    const bool fresh = ToSegmentId(segment) >= 0 &&
                       (segment == LOCAL_SEGMENT || one.CheckSegmentStatus(segment).ok());
    return fresh ? ToSegmentId(segment) : segment_id_t{-1};
  });
}

int closeSegment(transfer_engine_t engine, segment_id_t segment_id) {
  return Guard(engine, kInvalidArgument, [&](TransferEngine& one) {
    return one.closeSegment(static_cast<mooncake::SegmentHandle>(segment_id));
  });
}

int warmupEfaSegment(transfer_engine_t engine, const char* /*segment_name*/) {
  return engine == nullptr ? kInvalidArgument : 0;
}

int removeLocalSegment(transfer_engine_t engine, const char* segment_name) {
  return Guard(engine, kInvalidArgument,
               [&](TransferEngine& one) { return one.removeLocalSegment(Text(segment_name)); });
}

int registerLocalMemory(transfer_engine_t engine, void* addr, size_t length, const char* location,
                        int remote_accessible) {
  return Guard(engine, kInvalidArgument, [&](TransferEngine& one) {
    return one.registerLocalMemory(addr, length,
                                   location == nullptr ? mooncake::kWildcardLocation : location,
                                   remote_accessible != 0);
  });
}

int unregisterLocalMemory(transfer_engine_t engine, void* addr) {
  return Guard(engine, kInvalidArgument,
               [&](TransferEngine& one) { return one.unregisterLocalMemory(addr); });
}

int registerLocalMemoryBatch(transfer_engine_t engine, buffer_entry_t* buffer_list,
                             size_t buffer_len, const char* location) {
  return Guard(engine, kInvalidArgument, [&](TransferEngine& one) {
    if (buffer_list == nullptr && buffer_len != 0) {
      return kInvalidArgument;
    }
    std::vector<mooncake::BufferEntry> buffers;
    for (size_t i = 0; i < buffer_len; ++i) {
      buffers.push_back({.addr = buffer_list[i].addr, .length = buffer_list[i].length});
    }
    return one.registerLocalMemoryBatch(
        buffers, location == nullptr ? mooncake::kWildcardLocation : location);
  });
}

int unregisterLocalMemoryBatch(transfer_engine_t engine, void** addr_list, size_t addr_len) {
  return Guard(engine, kInvalidArgument, [&](TransferEngine& one) {
    return addr_list == nullptr && addr_len != 0
               ? kInvalidArgument
               : one.unregisterLocalMemoryBatch(
                     std::vector<void*>(addr_list, addr_list + addr_len));
  });
}

batch_id_t allocateBatchID(transfer_engine_t engine, size_t batch_size) {
  return Guard(engine, batch_id_t{INVALID_BATCH},
               [&](TransferEngine& one) { return one.allocateBatchID(batch_size); });
}

int submitTransfer(transfer_engine_t engine, batch_id_t batch_id, struct transfer_request* entries,
                   size_t count) {
  return Guard(engine, kStatusInvalidArgument, [&](TransferEngine& one) {
    return Malformed(entries, count)
               ? kStatusInvalidArgument
               : static_cast<int>(one.submitTransfer(batch_id, Requests(entries, count)).code());
  });
}

int submitTransferWithNotify(transfer_engine_t engine, batch_id_t batch_id,
                             struct transfer_request* entries, size_t count,
                             notify_msg_t notify_msg) {
  return Guard(engine, kStatusInvalidArgument, [&](TransferEngine& one) {
    if (Malformed(entries, count)) {
      return kStatusInvalidArgument;
    }
    return static_cast<int>(one.submitTransferWithNotify(batch_id, Requests(entries, count),
                                                         {.name = Text(notify_msg.name),
                                                          .notify_msg = Text(notify_msg.msg)})
                                .code());
  });
}

int getTransferStatus(transfer_engine_t engine, batch_id_t batch_id, size_t task_id,
                      struct transfer_status* status) {
  return Guard(engine, kStatusInvalidArgument, [&](TransferEngine& one) {
    if (status == nullptr) {
      return kStatusInvalidArgument;
    }
    mooncake::TransferStatus report{};
    const Status outcome = one.getTransferStatus(batch_id, task_id, report);
    if (outcome.ok()) {
      status->status = report.s;
      status->transferred_bytes = report.transferred_bytes;
    }
    return static_cast<int>(outcome.code());
  });
}

int freeBatchID(transfer_engine_t engine, batch_id_t batch_id) {
  return Guard(engine, kStatusInvalidArgument, [&](TransferEngine& one) {
    return static_cast<int>(one.freeBatchID(batch_id).code());
  });
}

notify_msg_t* getNotifsFromEngine(transfer_engine_t engine, int* size) {
  if (size == nullptr) {
    return nullptr;
  }
  *size = 0;
  return Guard(engine, static_cast<notify_msg_t*>(nullptr),
               [&](TransferEngine& one) -> notify_msg_t* {
                 std::vector<mooncake::TransferMetadata::NotifyDesc> notifies;
                 if (one.getNotifies(notifies) != 0 || notifies.empty()) {
                   return nullptr;
                 }
                 auto* messages =
                     static_cast<notify_msg_t*>(std::calloc(notifies.size(), sizeof(notify_msg_t)));
                 if (messages == nullptr) {
                   return nullptr;
                 }
                 for (const auto& notify : notifies) {
                   messages[*size].name = Duplicate(notify.name);
                   messages[(*size)++].msg = Duplicate(notify.notify_msg);
                 }
                 return messages;
               });
}

int freeNotifsMsgBuf(notify_msg_t* msg, int size) {
  for (int i = 0; msg != nullptr && i < size; ++i) {
    std::free(msg[i].name);
    std::free(msg[i].msg);
  }
  std::free(msg);
  return 0;
}

int genNotifyInEngine(transfer_engine_t engine, uint64_t target_id, notify_msg_t notify_msg) {
  return Guard(engine, kInvalidArgument, [&](TransferEngine& one) {
    return one.sendNotifyByID(target_id,
                              {.name = Text(notify_msg.name), .notify_msg = Text(notify_msg.msg)});
  });
}

int syncSegmentCache(transfer_engine_t engine) {
  return Guard(engine, kInvalidArgument,
               [](TransferEngine& one) { return one.syncSegmentCache(); });
}

int getNicLoadStats(transfer_engine_t engine, nic_load_stat_t* stats, size_t* count) {
  return Guard(engine, kStatusInvalidArgument, [&](TransferEngine& one) {
    if (count == nullptr) {
      return kStatusInvalidArgument;
    }
    std::vector<mooncake::NicLoadStats> nics;
    const Status outcome = one.getNicLoadStats(nics);
    for (size_t i = 0; stats != nullptr && i < std::min(*count, nics.size()); ++i) {
      const size_t length = std::min(nics[i].device_name.size(), sizeof(stats[i].device_name) - 1);
      std::memcpy(stats[i].device_name, nics[i].device_name.data(), length);
      stats[i].device_name[length] = '\0';
      stats[i].inflight_bytes = nics[i].inflight_bytes;
      stats[i].ewma_bandwidth_bps = nics[i].ewma_bandwidth_bps;
    }
    *count = nics.size();
    return static_cast<int>(outcome.code());
  });
}

void enableGracefulShutdown(transfer_engine_t engine) {
  static_cast<void>(Guard(engine, 0, [](TransferEngine& one) {
    one.enableGracefulShutdown();
    return 0;
  }));
}

int showLinks(transfer_engine_t engine, char* buf_out, size_t buf_len, int json) {
  return Guard(engine, kInvalidArgument, [&](TransferEngine& one) {
    return Copy(one.showLinks(json != 0), buf_out, buf_len);
  });
}

}  // extern "C"
