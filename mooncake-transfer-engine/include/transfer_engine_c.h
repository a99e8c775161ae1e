/* The C interface of the transfer engine.
 *
 * Thread-safety: every function, from any thread at once; destroyTransferEngine with no other call
 *                on that engine under way.
 * Ownership:     strings and arrays are copied by the callee; memory of requests stays the caller's
 *                to keep until its tasks are terminal.
 * Errors:        submitTransfer, submitTransferWithNotify, getTransferStatus, freeBatchID and
 *                getNicLoadStats return a positive status: 1 invalid argument, 2 too many requests,
 *                3 address not registered, 4 batch busy, 200 metadata ... The other functions that
 *                return int: 0, or -1 invalid argument, -3 address not registered, -7 overlap,
 *                -200 metadata ... The log says why. docs/engine.md lists all numbers.
 */
#ifndef MOONCAKE_TRANSFER_ENGINE_C_H
#define MOONCAKE_TRANSFER_ENGINE_C_H

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): C reads this. */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using): names of the published ABI. */
#define segment_handle_t int32_t
#define segment_id_t int32_t
#define batch_id_t uint64_t
#define LOCAL_SEGMENT 0
#define INVALID_BATCH UINT64_MAX

#define OPCODE_READ 0
#define OPCODE_WRITE 1

#define STATUS_WAITING 0
#define STATUS_PENDING 1
#define STATUS_INVALID 2
#define STATUS_CANCELED 3
#define STATUS_COMPLETED 4
#define STATUS_TIMEOUT 5
#define STATUS_FAILED 6

struct transfer_request {
  int opcode;
  void* source;
  segment_id_t target_id;
  uint64_t target_offset;
  uint64_t length;
};
typedef struct transfer_request transfer_request_t;

struct transfer_status {
  int status;
  uint64_t transferred_bytes;
};
typedef struct transfer_status transfer_status_t;

struct notify_msg {
  char* name;
  char* msg;
};
typedef struct notify_msg notify_msg_t;

struct buffer_entry {
  void* addr;
  size_t length;
};
typedef struct buffer_entry buffer_entry_t;

struct nic_load_stat {
  char device_name[64];
  uint64_t inflight_bytes;
  double ewma_bandwidth_bps;
};
typedef struct nic_load_stat nic_load_stat_t;

struct segment_desc {
  int type;
  union {
    struct {
      void* addr;
      uint64_t size;
      const char* location;
    } rdma;
    struct {
      const char* file_path;
      const char* subsystem_name;
      const char* proto;
      const char* ip;
      uint64_t port;
    } nvmeof;
  } desc_;
};
typedef struct segment_desc segment_desc_t;

typedef void* transfer_engine_t;
typedef void* transport_t;

/* NULL on failure. ip_or_host_name is of no effect, and rpc_port only under
 * MC_LEGACY_RPC_PORT_BINDING, when the name has no port. */
transfer_engine_t createTransferEngine(const char* metadata_conn_string,
                                       const char* local_server_name, const char* ip_or_host_name,
                                       uint64_t rpc_port, int auto_discover);
int discoverTopology(transfer_engine_t engine);
/* Where peers' handshakes reach this engine, "host:port"; -1 when it does not fit. */
int getLocalIpAndPort(transfer_engine_t engine, char* buf_out, size_t buf_len);
/* NULL for what this machine does not offer. */
transport_t installTransport(transfer_engine_t engine, const char* proto, void** args);
int uninstallTransport(transfer_engine_t engine, const char* proto);

/* Negative on failure. */
segment_id_t openSegment(transfer_engine_t engine, const char* segment_name);
segment_id_t openSegmentNoCache(transfer_engine_t engine, const char* segment_name);
int closeSegment(transfer_engine_t engine, segment_id_t segment_id);
int warmupEfaSegment(transfer_engine_t engine, const char* segment_name); /* No EFA: 0. */
int removeLocalSegment(transfer_engine_t engine, const char* segment_name);
void destroyTransferEngine(transfer_engine_t engine);

int registerLocalMemory(transfer_engine_t engine, void* addr, size_t length, const char* location,
                        int remote_accessible);
int unregisterLocalMemory(transfer_engine_t engine, void* addr);
int registerLocalMemoryBatch(transfer_engine_t engine, buffer_entry_t* buffer_list,
                             size_t buffer_len, const char* location);
int unregisterLocalMemoryBatch(transfer_engine_t engine, void** addr_list, size_t addr_len);

/* INVALID_BATCH on failure. */
batch_id_t allocateBatchID(transfer_engine_t engine, size_t batch_size);
int submitTransfer(transfer_engine_t engine, batch_id_t batch_id, struct transfer_request* entries,
                   size_t count);
int submitTransferWithNotify(transfer_engine_t engine, batch_id_t batch_id,
                             struct transfer_request* entries, size_t count,
                             notify_msg_t notify_msg);
int getTransferStatus(transfer_engine_t engine, batch_id_t batch_id, size_t task_id,
                      struct transfer_status* status);
int freeBatchID(transfer_engine_t engine, batch_id_t batch_id);

/* An array of *size messages, to be given back by freeNotifsMsgBuf; NULL when there are none. */
notify_msg_t* getNotifsFromEngine(transfer_engine_t engine, int* size);
int freeNotifsMsgBuf(notify_msg_t* msg, int size);
int genNotifyInEngine(transfer_engine_t engine, uint64_t target_id, notify_msg_t notify_msg);

int syncSegmentCache(transfer_engine_t engine);
/* *count in: room in `stats`; out: how many there are. */
int getNicLoadStats(transfer_engine_t engine, nic_load_stat_t* stats, size_t* count);
void enableGracefulShutdown(transfer_engine_t engine);
/* -1 when the text does not fit. */
int showLinks(transfer_engine_t engine, char* buf_out, size_t buf_len, int json);
/* NOLINTEND(readability-identifier-naming,modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif /* MOONCAKE_TRANSFER_ENGINE_C_H */
