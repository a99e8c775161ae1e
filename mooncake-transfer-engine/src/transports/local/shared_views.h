// The peer's memfd-backed buffers, mapped into this process, so that a transfer is one memcpy.
//
// The peer announces a buffer's file as a descriptor number of its own process. That number is
// opened through /proc/<pid>/fd and believed only after three checks: the file is sealed against
// shrinking (then no access to the mapping can raise SIGBUS, whatever the peer does and whether it
// lives: the mapping keeps the pages), it is long enough, and /proc/<pid>/maps shows this very file
// at the buffer's address and offset (a number may have been closed and used again). A buffer that
// fails a check is moved by process_vm instead, with one log line.
//
// Thread-safety: Find() from any thread; a file is opened when it is first needed. Mappings last
// until destruction, so who copies through one must keep the SharedViews alive.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/metadata/segment_descriptor.h"

namespace mooncake::transfer {

class SharedViews {
 public:
  SharedViews(pid_t pid, const std::vector<BufferDescriptor>& buffers);
  ~SharedViews();
  SharedViews(const SharedViews&) = delete;
  SharedViews& operator=(const SharedViews&) = delete;

  // Where [remote_address, +length_bytes) lies in this process, or nullptr when it is not (wholly
  // within one buffer of) shared memory.
  [[nodiscard]] std::byte* Find(std::uint64_t remote_address, std::uint64_t length_bytes);

 private:
  struct View {
    std::uint64_t address;
    std::uint64_t length_bytes;
    SharedMemory source;
    std::atomic<std::byte*> here = nullptr;
    std::atomic<bool> tried = false;
  };
  struct File {
    std::byte* base = nullptr;
    std::uint64_t length_bytes = 0;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
  };

  [[nodiscard]] Result<std::byte*> Import(const View& view) MC_REQUIRES(mutex_);
  [[nodiscard]] Result<File> MapFile(std::int32_t fd) const;

  const pid_t pid_;
  std::vector<View> views_;  // In address order; which ones there are is fixed at construction.
  Mutex mutex_;
  std::map<std::int32_t, File> files_ MC_GUARDED_BY(mutex_);  // By the peer's descriptor number.
};

}  // namespace mooncake::transfer
