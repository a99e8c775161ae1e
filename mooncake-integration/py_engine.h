// An engine as Python sees it: integer codes instead of errors, and calls that are errors instead
// of crashes before initialize() and in a forked child.
//
// Thread-safety: any thread. Every call lets go of the interpreter lock, which its caller holds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/per_process.h"
#include "mooncake-integration/engine_holder.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"

namespace mooncake::integration {

// Keeps why a call of this thread failed, for LastFailure(); returns `code`.
int Remember(int code, Error error);
// Code and text of this thread's last failure; 0 and "" when there was none.
[[nodiscard]] std::pair<int, std::string> LastFailure();

class PyEngine {
 public:
  // 0 or -1. A second call changes nothing.
  int Initialize(const std::string& local_hostname, const std::string& metadata_server,
                 const std::string& protocol, const std::string& device_name);
  // The same; `metadata_type` is the scheme of a `metadata_server` that has none.
  int InitializeExt(const std::string& local_hostname, const std::string& metadata_server,
                    const std::string& protocol, const std::string& device_name,
                    const std::string& metadata_type);
  [[nodiscard]] int RpcPort() const;  // 0 before Initialize().

  // Addresses; 0 on failure.
  std::uint64_t AllocateManaged(std::uint64_t length);
  std::uint64_t FirstBuffer(const std::string& name);
  // 0 or negative.
  int FreeManaged(std::uint64_t address, std::uint64_t length);
  int Register(const std::vector<std::uint64_t>& addresses,
               const std::vector<std::uint64_t>& lengths, const std::string& location);
  int Unregister(const std::vector<std::uint64_t>& addresses);

  // Start to end: 0 or -1. The segment of each request is filled in; `notify`, if there is one,
  // follows the data.
  int Move(const std::string& target, std::vector<transfer::TransferRequest>& requests,
           const transfer::Notify* notify);
  // A batch id, 0 on failure.
  std::uint64_t Start(const std::string& target, std::vector<transfer::TransferRequest>& requests);
  // Waits for all and frees their ids; 0, or -1 when any failed.
  int WaitAll(const std::vector<std::uint64_t>& batches);
  // 1 done and freed, 0 under way, -1 failed and freed, -2 timed out and not freed.
  int Check(transfer::BatchId batch);

  int Probe(const std::string& name);  // 0 when the peer answers.
  std::vector<transfer::Notify> TakeNotifies();

  [[nodiscard]] std::shared_ptr<InnerTransferEngine> Inner() const;
  [[nodiscard]] std::uint64_t Pointer() const;  // 0 before Initialize().

 private:
  PerProcess<std::monostate> initialising_;  // Two threads at once make one engine.
  const std::shared_ptr<InnerTransferEngine> inner_ = std::make_shared<InnerTransferEngine>();
};

}  // namespace mooncake::integration
