#include "mooncake-integration/py_engine.h"

#include <algorithm>
#include <optional>

#include "mooncake-common/src/base/log.h"
#include "mooncake-integration/live_objects.h"
#include "mooncake-integration/py_sequence.h"
#include "mooncake-integration/unlocked.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/factory.h"
#include "mooncake-transfer-engine/src/faces/error_numbers.h"

namespace mooncake::integration {

using transfer::BatchId;
using transfer::Engine;
using transfer::Notify;
using transfer::TransferRequest;
using transfer::TransferState;

namespace {

thread_local Error last_error_of_thread{ErrorCode::kInternal, ""};
thread_local int last_code_of_thread = 0;

Error NotInitialised() {
  return {ErrorCode::kInvalidArgument,
          "the engine is not initialised in this process; call initialize() first"};
}

// What `call` answers, an int, for the engine and without the interpreter's lock; -1 without one.
template <typename Call>
int CodeFrom(InnerTransferEngine& inner, const Call& call) {
  const Unlocked unlocked;
  const auto engine = inner.engine();
  return engine ? call(*engine) : Remember(-1, NotInitialised());
}

// The same for a `call` whose answer is a Result of an address or id. A failure is remembered; 0.
template <typename Call>
std::uint64_t NumberFrom(InnerTransferEngine& inner, const Call& call) {
  const Unlocked unlocked;
  const auto engine = inner.engine();
  Result<std::uint64_t> number = engine ? call(*engine) : std::unexpected(NotInitialised());
  if (!number) {
    Remember(-1, std::move(number).error());
    return 0;
  }
  return *number;
}

int Code(const Result<void>& result) {
  return result ? 0 : Remember(transfer::ErrorNumber(result.error().code), result.error());
}

// Fills in the target.
Result<void> Address(Engine& engine, const std::string& target,
                     std::vector<TransferRequest>& requests) {
  MC_TRY_ASSIGN(const transfer::SegmentId segment, engine.OpenSegment(target));
  for (TransferRequest& request : requests) {
    request.segment = segment;
  }
  return {};
}

Error ReasonOf(Engine& engine, BatchId batch) {
  for (std::size_t task = 0;; ++task) {
    auto status = engine.TaskStatus(batch, task);
    if (!status) {
      return status.error();
    }
    if (auto reason = engine.TaskError(batch, task)) {
      return *std::move(reason);
    }
  }
}

}  // namespace

int Remember(int code, Error error) {
  last_error_of_thread = std::move(error);
  last_code_of_thread = code;
  return code;
}

std::pair<int, std::string> LastFailure() {
  return {last_code_of_thread,
          last_code_of_thread == 0 ? std::string() : last_error_of_thread.ToString()};
}

int PyEngine::Initialize(const std::string& local_hostname, const std::string& metadata_server,
                         const std::string& protocol, const std::string& device_name) {
  const Unlocked unlocked;
  return initialising_.With([&](auto& /*one at a time*/) {
    if (inner_->engine()) {
      return 0;
    }
    transfer::EngineSettings settings;
    settings.local_name = local_hostname;
    settings.metadata = metadata_server;
    settings.protocol = protocol;
    settings.devices = device_name;
    auto created = transfer::CreateEngine(settings);
    if (!created) {
      MC_LOG_ERROR("initialize engine: {}", created.error().ToString());
      return Remember(-1, std::move(created).error());
    }
    inner_->Set(*std::move(created));
    LiveObjects<InnerTransferEngine>::Add(inner_);
    return 0;
  });
}

int PyEngine::InitializeExt(const std::string& local_hostname, const std::string& metadata_server,
                            const std::string& protocol, const std::string& device_name,
                            const std::string& metadata_type) {
  const bool bare =
      metadata_server != "P2PHANDSHAKE" && metadata_server.find("://") == std::string::npos;
  return Initialize(local_hostname,
                    bare ? metadata_type + "://" + metadata_server : metadata_server, protocol,
                    device_name);
}

int PyEngine::RpcPort() const {
  const auto engine = inner_->engine();
  return engine ? engine->rpc_port() : 0;
}

std::uint64_t PyEngine::AllocateManaged(std::uint64_t length) {
  return NumberFrom(*inner_, [&](Engine& engine) -> Result<std::uint64_t> {
    MC_TRY_ASSIGN(void* const memory, engine.AllocateManaged(length));
    return reinterpret_cast<std::uint64_t>(memory);
  });
}

int PyEngine::FreeManaged(std::uint64_t address, std::uint64_t /*length*/) {
  return CodeFrom(*inner_,
                  [&](Engine& engine) { return Code(engine.FreeManaged(ToPointer(address))); });
}

int PyEngine::Move(const std::string& target, std::vector<TransferRequest>& requests,
                   const Notify* notify) {
  // Python may change it while the lock is given up.
  const std::optional<Notify> told = notify == nullptr ? std::nullopt : std::optional(*notify);
  return CodeFrom(*inner_, [&](Engine& engine) {
    auto moved = Address(engine, target, requests);
    if (moved) {
      moved = engine.Transfer(requests);
    }
    if (moved && told) {
      moved = engine.SendNotify(target, *told);
    }
    return moved ? 0 : Remember(-1, std::move(moved).error());
  });
}

std::uint64_t PyEngine::Start(const std::string& target, std::vector<TransferRequest>& requests) {
  return NumberFrom(*inner_, [&](Engine& engine) -> Result<std::uint64_t> {
    MC_TRY(Address(engine, target, requests));
    MC_TRY_ASSIGN(const BatchId batch,
                  engine.AllocateBatch(std::max<std::size_t>(requests.size(), 1)));
    if (auto submitted = engine.Submit(batch, requests); !submitted) {
      static_cast<void>(engine.FreeBatch(batch));
      return std::unexpected(std::move(submitted).error());
    }
    return batch;
  });
}

int PyEngine::WaitAll(const std::vector<std::uint64_t>& batches) {
  return CodeFrom(*inner_, [&](Engine& engine) {
    int code = 0;
    for (const BatchId batch : batches) {
      if (auto done = engine.Wait(batch); !done) {
        code = Remember(-1, std::move(done).error());
      }
      static_cast<void>(engine.FreeBatch(batch));
    }
    return code;
  });
}

int PyEngine::Check(BatchId batch) {
  return CodeFrom(*inner_, [batch](Engine& engine) {
    auto status = engine.BatchStatus(batch);
    if (!status) {
      return Remember(-1, std::move(status).error());
    }
    switch (status->state) {
      case TransferState::kWaiting:
      case TransferState::kPending:
        return 0;
      case TransferState::kCompleted:
        static_cast<void>(engine.FreeBatch(batch));
        return 1;
      case TransferState::kTimeout:
        return Remember(-2, ReasonOf(engine, batch));
      case TransferState::kInvalid:
      case TransferState::kCanceled:
      case TransferState::kFailed:
        break;
    }
    Error reason = ReasonOf(engine, batch);
    // Others of the batch may still be in flight: end them, so that the id can be freed.
    static_cast<void>(engine.Cancel(batch));
    static_cast<void>(engine.FreeBatch(batch));
    return Remember(-1, std::move(reason));
  });
}

int PyEngine::Register(const std::vector<std::uint64_t>& addresses,
                       const std::vector<std::uint64_t>& lengths, const std::string& location) {
  return CodeFrom(*inner_, [&](Engine& engine) {
    if (addresses.size() != lengths.size()) {
      return Remember(
          -1, Error{ErrorCode::kInvalidArgument,
                    "register memory: " + std::to_string(addresses.size()) + " addresses and " +
                        std::to_string(lengths.size()) + " lengths; give one length an address"});
    }
    std::vector<transfer::MemoryRegistration> memory(addresses.size());
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i] = {.address = ToPointer(addresses[i]),
                   .length_bytes = lengths[i],
                   .location = location,
                   .shared = {}};
    }
    return Code(engine.RegisterMemory(memory));
  });
}

int PyEngine::Unregister(const std::vector<std::uint64_t>& addresses) {
  return CodeFrom(*inner_, [&](Engine& engine) {
    std::vector<void*> pointers;
    pointers.reserve(addresses.size());
    for (const std::uint64_t address : addresses) {
      pointers.push_back(ToPointer(address));
    }
    return Code(engine.UnregisterMemory(pointers));
  });
}

std::uint64_t PyEngine::FirstBuffer(const std::string& name) {
  return NumberFrom(*inner_, [&](Engine& engine) -> Result<std::uint64_t> {
    MC_TRY_ASSIGN(const transfer::SegmentId segment, engine.OpenSegment(name));
    // Buffers come and go: what was fetched when the segment was opened may be old.
    static_cast<void>(engine.RefreshSegment(segment));
    const auto descriptor = engine.Descriptor(segment);
    if (!descriptor || (*descriptor)->buffers.empty()) {
      return 0;
    }
    return (*descriptor)->buffers.front().address;
  });
}

int PyEngine::Probe(const std::string& name) {
  return CodeFrom(*inner_, [&](Engine& engine) { return Code(engine.ProbePeer(name)); });
}

std::vector<Notify> PyEngine::TakeNotifies() {
  const Unlocked unlocked;
  const auto engine = inner_->engine();
  return engine ? engine->TakeNotifies() : std::vector<Notify>{};
}

std::shared_ptr<InnerTransferEngine> PyEngine::Inner() const { return inner_; }

std::uint64_t PyEngine::Pointer() const {
  return reinterpret_cast<std::uint64_t>(inner_->engine().get());
}

}  // namespace mooncake::integration
