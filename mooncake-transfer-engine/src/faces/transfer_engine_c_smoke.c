/* Compiled as strict C99: that the header is C, and that a C program needs nothing else. */
#include "mooncake-transfer-engine/src/faces/transfer_engine_c_smoke.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mooncake-transfer-engine/include/transfer_engine_c.h"

#define EXPECT(condition) \
  do {                    \
    if (!(condition)) {   \
      return __LINE__;    \
    }                     \
  } while (0)

enum { kBytes = 4096 };

static char source_bytes[kBytes];
static char target_bytes[kBytes];

/* The final state, or -1. */
static int Finish(transfer_engine_t engine, batch_id_t batch, size_t task) {
  struct transfer_status status = {STATUS_WAITING, 0};
  do {
    if (getTransferStatus(engine, batch, task, &status) != 0) {
      return -1;
    }
  } while (status.status == STATUS_WAITING || status.status == STATUS_PENDING);
  return status.status;
}

static int Move(transfer_engine_t engine, transfer_engine_t peer, segment_id_t segment) {
  char name[] = "smoke";
  char text[] = "arrived";
  notify_msg_t notify;
  notify_msg_t* received = NULL;
  int count = 0;
  transfer_request_t requests[2];
  batch_id_t batch = allocateBatchID(engine, 2);
  EXPECT(batch != INVALID_BATCH);

  requests[0].opcode = OPCODE_WRITE;
  requests[0].source = source_bytes;
  requests[0].target_id = segment;
  requests[0].target_offset = (uint64_t)(uintptr_t)target_bytes;
  requests[0].length = kBytes / 2;
  requests[1] = requests[0];
  requests[1].opcode = OPCODE_READ;
  requests[1].source = source_bytes + kBytes / 2;
  requests[1].target_offset = requests[0].target_offset + kBytes / 2;

  notify.name = name;
  notify.msg = text;
  EXPECT(submitTransferWithNotify(engine, batch, requests, 2, notify) == 0);
  EXPECT(Finish(engine, batch, 0) == STATUS_COMPLETED);
  EXPECT(Finish(engine, batch, 1) == STATUS_COMPLETED);
  EXPECT(freeBatchID(engine, batch) == 0);
  EXPECT(memcmp(source_bytes, target_bytes, kBytes) == 0);

  received = getNotifsFromEngine(peer, &count);
  EXPECT(count == 1 && received != NULL);
  EXPECT(strcmp(received[0].name, name) == 0 && strcmp(received[0].msg, text) == 0);
  EXPECT(freeNotifsMsgBuf(received, count) == 0);
  return 0;
}

int RunTransferEngineFromC(void) {
  char address[128];
  segment_id_t segment = -1;
  int line = 0;
  transfer_engine_t engine = createTransferEngine("P2PHANDSHAKE", "127.0.0.1", "", 0, 1);
  transfer_engine_t peer = createTransferEngine("P2PHANDSHAKE", "127.0.0.1", "", 0, 1);
  EXPECT(engine != NULL && peer != NULL);
  memset(source_bytes, 's', kBytes);
  memset(target_bytes, 't', kBytes);
  EXPECT(registerLocalMemory(engine, source_bytes, kBytes, "cpu:0", 0) == 0);
  EXPECT(registerLocalMemory(peer, target_bytes, kBytes, "*", 1) == 0);
  EXPECT(getLocalIpAndPort(peer, address, sizeof(address)) == 0);
  segment = openSegment(engine, address);
  EXPECT(segment > LOCAL_SEGMENT);
  line = Move(engine, peer, segment);
  EXPECT(unregisterLocalMemory(engine, source_bytes) == 0);
  EXPECT(unregisterLocalMemory(peer, target_bytes) == 0);
  destroyTransferEngine(engine);
  destroyTransferEngine(peer);
  return line;
}
