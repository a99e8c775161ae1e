// mooncake.engine: the transfer engine for Python. Results are the integer codes that users know;
// what a failure was, in words, is what last_error() returns.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mooncake-common/src/base/env.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/per_process.h"
#include "mooncake-integration/engine_holder.h"
#include "mooncake-integration/live_objects.h"
#include "mooncake-integration/py_memory.h"
#include "mooncake-integration/py_sequence.h"
#include "mooncake-integration/unlocked.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/factory.h"
#include "mooncake-transfer-engine/src/faces/error_numbers.h"

namespace py = pybind11;

namespace mooncake::integration {
namespace {

using transfer::BatchId;
using transfer::Engine;
using transfer::Notify;
using transfer::Opcode;
using transfer::TransferRequest;
using transfer::TransferState;

// The last failure of each thread, for last_error().
thread_local Error last_error_of_thread{ErrorCode::kInternal, ""};
thread_local int last_code_of_thread = 0;

int Remember(int code, Error error) {
  last_error_of_thread = std::move(error);
  last_code_of_thread = code;
  return code;
}

int NotInitialised() {
  return Remember(-1,
                  Error{ErrorCode::kInvalidArgument,
                        "the engine is not initialised in this process; call initialize() first"});
}

// One engine as Python sees it. Thread-safety: that of Engine.
class PyEngine {
 public:
  int Initialize(const std::string& local_hostname, const std::string& metadata_server,
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

  int InitializeExt(const std::string& local_hostname, const std::string& metadata_server,
                    const std::string& protocol, const std::string& device_name,
                    const std::string& metadata_type) {
    const bool bare =
        metadata_server != "P2PHANDSHAKE" && metadata_server.find("://") == std::string::npos;
    return Initialize(local_hostname,
                      bare ? metadata_type + "://" + metadata_server : metadata_server, protocol,
                      device_name);
  }

  [[nodiscard]] int RpcPort() const {
    const auto engine = inner_->engine();
    return engine ? engine->rpc_port() : 0;
  }

  std::uint64_t AllocateManaged(std::uint64_t length) {
    const Unlocked unlocked;
    const auto engine = inner_->engine();
    if (!engine) {
      NotInitialised();
      return 0;
    }
    auto memory = engine->AllocateManaged(length);
    if (!memory) {
      Remember(-1, std::move(memory).error());
      return 0;
    }
    return reinterpret_cast<std::uint64_t>(*memory);
  }

  int FreeManaged(std::uint64_t address, std::uint64_t /*length*/) {
    const Unlocked unlocked;
    const auto engine = inner_->engine();
    return engine ? Code(engine->FreeManaged(ToPointer(address))) : NotInitialised();
  }

  int Move(const std::string& target, std::vector<TransferRequest>& requests,
           const Notify* notify) {
    const Unlocked unlocked;
    const auto engine = inner_->engine();
    if (!engine) {
      return NotInitialised();
    }
    auto moved = Address(*engine, target, requests);
    if (moved) {
      moved = engine->Transfer(requests);
    }
    if (moved && notify != nullptr) {
      moved = engine->SendNotify(target, *notify);
    }
    return moved ? 0 : Remember(-1, std::move(moved).error());
  }

  std::uint64_t Start(const std::string& target, std::vector<TransferRequest>& requests) {
    const Unlocked unlocked;
    const auto engine = inner_->engine();
    if (!engine) {
      NotInitialised();
      return 0;
    }
    auto addressed = Address(*engine, target, requests);
    if (!addressed) {
      Remember(-1, std::move(addressed).error());
      return 0;
    }
    auto batch = engine->AllocateBatch(std::max<std::size_t>(requests.size(), 1));
    if (!batch) {
      Remember(-1, std::move(batch).error());
      return 0;
    }
    if (auto submitted = engine->Submit(*batch, requests); !submitted) {
      Remember(-1, std::move(submitted).error());
      static_cast<void>(engine->FreeBatch(*batch));
      return 0;
    }
    return *batch;
  }

  int WaitAll(const std::vector<std::uint64_t>& batches) {
    const Unlocked unlocked;
    const auto engine = inner_->engine();
    if (!engine) {
      return NotInitialised();
    }
    int code = 0;
    for (const BatchId batch : batches) {
      if (auto done = engine->Wait(batch); !done) {
        code = Remember(-1, std::move(done).error());
      }
      static_cast<void>(engine->FreeBatch(batch));
    }
    return code;
  }

  int Check(BatchId batch) {
    const Unlocked unlocked;
    const auto engine = inner_->engine();
    if (!engine) {
      return NotInitialised();
    }
    auto status = engine->BatchStatus(batch);
    if (!status) {
      return Remember(-1, std::move(status).error());
    }
    switch (status->state) {
      case TransferState::kWaiting:
      case TransferState::kPending:
        return 0;
      case TransferState::kCompleted:
        static_cast<void>(engine->FreeBatch(batch));
        return 1;
      case TransferState::kTimeout:
        return Remember(-2, ReasonOf(*engine, batch));
      case TransferState::kInvalid:
      case TransferState::kCanceled:
      case TransferState::kFailed:
        break;
    }
    Error reason = ReasonOf(*engine, batch);
    // Others of the batch may still be in flight: end them, so that the id can be freed.
    static_cast<void>(engine->Cancel(batch));
    static_cast<void>(engine->FreeBatch(batch));
    return Remember(-1, std::move(reason));
  }

  int Register(const std::vector<std::uint64_t>& addresses,
               const std::vector<std::uint64_t>& lengths, const std::string& location) {
    const Unlocked unlocked;
    const auto engine = inner_->engine();
    if (!engine) {
      return NotInitialised();
    }
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
    return Code(engine->RegisterMemory(memory));
  }

  int Unregister(const std::vector<std::uint64_t>& addresses) {
    const Unlocked unlocked;
    const auto engine = inner_->engine();
    if (!engine) {
      return NotInitialised();
    }
    std::vector<void*> pointers;
    pointers.reserve(addresses.size());
    for (const std::uint64_t address : addresses) {
      pointers.push_back(ToPointer(address));
    }
    return Code(engine->UnregisterMemory(pointers));
  }

  std::uint64_t FirstBuffer(const std::string& name) {
    const Unlocked unlocked;
    const auto engine = inner_->engine();
    if (!engine) {
      NotInitialised();
      return 0;
    }
    auto segment = engine->OpenSegment(name);
    if (!segment) {
      Remember(-1, std::move(segment).error());
      return 0;
    }
    // Buffers come and go: what was fetched when the segment was opened may be old.
    static_cast<void>(engine->RefreshSegment(*segment));
    auto descriptor = engine->Descriptor(*segment);
    if (!descriptor || (*descriptor)->buffers.empty()) {
      return 0;
    }
    return (*descriptor)->buffers.front().address;
  }

  int Probe(const std::string& name) {
    const Unlocked unlocked;
    const auto engine = inner_->engine();
    return engine ? Code(engine->ProbePeer(name)) : NotInitialised();
  }

  std::vector<Notify> TakeNotifies() {
    const Unlocked unlocked;
    const auto engine = inner_->engine();
    return engine ? engine->TakeNotifies() : std::vector<Notify>{};
  }

  [[nodiscard]] std::shared_ptr<InnerTransferEngine> Inner() const { return inner_; }
  [[nodiscard]] std::uint64_t Pointer() const {
    return reinterpret_cast<std::uint64_t>(inner_->engine().get());
  }

 private:
  static int Code(const Result<void>& result) {
    return result ? 0 : Remember(transfer::ErrorNumber(result.error().code), result.error());
  }

  // Fills in the target.
  static Result<void> Address(Engine& engine, const std::string& target,
                              std::vector<TransferRequest>& requests) {
    MC_TRY_ASSIGN(const transfer::SegmentId segment, engine.OpenSegment(target));
    for (TransferRequest& request : requests) {
      request.segment = segment;
    }
    return {};
  }

  static Error ReasonOf(Engine& engine, BatchId batch) {
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

  PerProcess<std::monostate> initialising_;  // Two threads at once make one engine.
  const std::shared_ptr<InnerTransferEngine> inner_ = std::make_shared<InnerTransferEngine>();
};

TransferRequest OneRequest(Opcode opcode, std::uint64_t local, std::uint64_t remote,
                           std::uint64_t length) {
  return {.opcode = opcode,
          .local = reinterpret_cast<std::byte*>(local),  // NOLINT(performance-no-int-to-ptr)
          .segment = 0,
          .remote_address = remote,
          .length_bytes = length};
}

// Empty, with the failure remembered, when the lists differ in length.
bool ManyRequests(Opcode opcode, py::handle locals, py::handle remotes, py::handle lengths,
                  std::vector<TransferRequest>& requests) {
  const FastSequence local(locals);
  const FastSequence remote(remotes);
  const FastSequence length(lengths);
  if (local.size() != remote.size() || local.size() != length.size()) {
    Remember(-1, Error{ErrorCode::kInvalidArgument,
                       "batch transfer: " + std::to_string(local.size()) + " buffers, " +
                           std::to_string(remote.size()) + " peer addresses and " +
                           std::to_string(length.size()) + " lengths; give as many of each"});
    return false;
  }
  requests.resize(local.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i] = OneRequest(opcode, ToU64(local[i]), ToU64(remote[i]), ToU64(length[i]));
  }
  return true;
}

int MoveOne(PyEngine& engine, const std::string& target, std::uint64_t local, std::uint64_t remote,
            std::uint64_t length, Opcode opcode, const Notify* notify) {
  std::vector<TransferRequest> requests{OneRequest(opcode, local, remote, length)};
  return engine.Move(target, requests, notify);
}

int MoveMany(PyEngine& engine, const std::string& target, py::handle locals, py::handle remotes,
             py::handle lengths, Opcode opcode, const Notify* notify) {
  std::vector<TransferRequest> requests;
  return ManyRequests(opcode, locals, remotes, lengths, requests)
             ? engine.Move(target, requests, notify)
             : -1;
}

std::uint64_t StartMany(PyEngine& engine, const std::string& target, py::handle locals,
                        py::handle remotes, py::handle lengths, Opcode opcode) {
  std::vector<TransferRequest> requests;
  return ManyRequests(opcode, locals, remotes, lengths, requests) ? engine.Start(target, requests)
                                                                  : 0;
}

void DefineMoves(py::class_<PyEngine, std::shared_ptr<PyEngine>>& type) {
  using Text = const std::string&;
  for (const auto& [suffix, opcode] :
       {std::pair{"write", Opcode::kWrite}, std::pair{"read", Opcode::kRead}}) {
    const std::string name = suffix;
    type.def(("transfer_sync_" + name).c_str(),
             [opcode](PyEngine& engine, Text target, std::uint64_t local, std::uint64_t remote,
                      std::uint64_t length, Text /*hint*/) {
               return MoveOne(engine, target, local, remote, length, opcode, nullptr);
             },
             py::arg("target_hostname"), py::arg("buffer"), py::arg("peer_buffer_address"),
             py::arg("length"), py::arg("transport_hint") = "",
             "Moves `length` bytes; 0 when they are in place, -1 on any failure.");
    type.def(("batch_transfer_sync_" + name).c_str(),
             [opcode](PyEngine& engine, Text target, py::handle locals, py::handle remotes,
                      py::handle lengths, Text /*hint*/) {
               return MoveMany(engine, target, locals, remotes, lengths, opcode, nullptr);
             },
             py::arg("target_hostname"), py::arg("buffers"), py::arg("peer_buffer_addresses"),
             py::arg("lengths"), py::arg("transport_hint") = "",
             "Moves one range an index; 0 when all are in place, -1 on any failure.");
    type.def(("batch_transfer_async_" + name).c_str(),
             [opcode](PyEngine& engine, Text target, py::handle locals, py::handle remotes,
                      py::handle lengths, Text /*hint*/) {
               return StartMany(engine, target, locals, remotes, lengths, opcode);
             },
             py::arg("target_hostname"), py::arg("buffers"), py::arg("peer_buffer_addresses"),
             py::arg("lengths"), py::arg("transport_hint") = "",
             "Starts the transfers and returns a batch id, 0 on failure.");
  }
  type.def(
      "transfer_sync",
      [](PyEngine& engine, Text target, std::uint64_t local, std::uint64_t remote,
         std::uint64_t length, Opcode opcode, const Notify* notify,
         Text /*hint*/) { return MoveOne(engine, target, local, remote, length, opcode, notify); },
      py::arg("target_hostname"), py::arg("buffer"), py::arg("peer_buffer_address"),
      py::arg("length"), py::arg("opcode"), py::arg("notify") = nullptr,
      py::arg("transport_hint") = "",
      "Moves `length` bytes, then delivers `notify` to the peer; 0 or -1.");
  type.def(
      "batch_transfer_sync",
      [](PyEngine& engine, Text target, py::handle locals, py::handle remotes, py::handle lengths,
         Opcode opcode, const Notify* notify, Text /*hint*/) {
        return MoveMany(engine, target, locals, remotes, lengths, opcode, notify);
      },
      py::arg("target_hostname"), py::arg("buffers"), py::arg("peer_buffer_addresses"),
      py::arg("lengths"), py::arg("opcode"), py::arg("notify") = nullptr,
      py::arg("transport_hint") = "",
      "Moves one range an index, then delivers `notify` to the peer; 0 or -1.");
  type.def(
      "batch_transfer_async",
      [](PyEngine& engine, Text target, py::handle locals, py::handle remotes, py::handle lengths,
         Opcode opcode,
         Text /*hint*/) { return StartMany(engine, target, locals, remotes, lengths, opcode); },
      py::arg("target_hostname"), py::arg("buffers"), py::arg("peer_buffer_addresses"),
      py::arg("lengths"), py::arg("opcode"), py::arg("transport_hint") = "",
      "Starts the transfers and returns a batch id, 0 on failure.");
  type.def(
      "transfer_submit_write",
      [](PyEngine& engine, Text target, std::uint64_t local, std::uint64_t remote,
         std::uint64_t length, Text /*hint*/) {
        std::vector<TransferRequest> requests{OneRequest(Opcode::kWrite, local, remote, length)};
        return engine.Start(target, requests);
      },
      py::arg("target_hostname"), py::arg("buffer"), py::arg("peer_buffer_address"),
      py::arg("length"), py::arg("transport_hint") = "",
      "Starts a write and returns a batch id for transfer_check_status(), 0 on failure.");
  type.def("transfer_check_status", &PyEngine::Check,
           "1: done, the id is freed; 0: under way; -1: failed, the id is freed; -2: timed out, "
           "the id stays.");
  type.def(
      "get_batch_transfer_status",
      [](PyEngine& engine, py::handle batches) { return engine.WaitAll(ToU64Vector(batches)); },
      "Waits for all the batches and frees their ids; 0 when all are done, -1 when any failed.");
}

void DefineMemory(py::class_<PyEngine, std::shared_ptr<PyEngine>>& type) {
  type.def("allocate_managed_buffer", &PyEngine::AllocateManaged,
           "Registered memory of `length` bytes that peers on this host map; its address, 0 on "
           "failure.");
  type.def("free_managed_buffer", &PyEngine::FreeManaged,
           "Gives memory of allocate_managed_buffer() back; 0 or negative.");
  type.def(
      "write_bytes_to_buffer",
      [](PyEngine&, std::uint64_t address, const py::bytes& data, std::uint64_t length) {
        if (length > py::len(data)) {
          return Remember(
              -1, Error{ErrorCode::kInvalidArgument,
                        "write_bytes_to_buffer: " + std::to_string(length) + " bytes asked for, " +
                            std::to_string(py::len(data)) + " given"});
        }
        auto copied = CopyToMemory(data, address, length);
        return copied ? 0 : Remember(-1, std::move(copied).error());
      },
      py::arg("dest_addr"), py::arg("data"), py::arg("length"),
      "Copies `length` bytes of `data` to an address; 0, or -1 where nothing is mapped for "
      "writing.");
  type.def(
      "read_bytes_from_buffer",
      [](PyEngine&, std::uint64_t address, std::uint64_t length) {
        auto copy = CopyOfMemory(address, length);
        if (!copy) {
          throw py::value_error(copy.error().message);
        }
        return *std::move(copy);
      },
      py::arg("addr"), py::arg("length"),
      "The `length` bytes at an address of this process; ValueError where nothing is mapped.");
  type.def(
      "register_memory",
      [](PyEngine& engine, std::uint64_t address, std::uint64_t length,
         const std::string& location) { return engine.Register({address}, {length}, location); },
      py::arg("buffer_addr"), py::arg("capacity"), py::arg("location") = "*",
      "Lets peers read and write a range; 0, -1 (length 0) or -7 (overlaps another).");
  type.def(
      "unregister_memory",
      [](PyEngine& engine, std::uint64_t address) { return engine.Unregister({address}); },
      "Takes a range back; 0, or -3 when none begins there.");
  type.def(
      "batch_register_memory",
      [](PyEngine& engine, py::handle addresses, py::handle lengths, const std::string& location) {
        return engine.Register(ToU64Vector(addresses), ToU64Vector(lengths), location);
      },
      py::arg("buffer_addresses"), py::arg("capacities"), py::arg("location") = "*",
      "Lets peers read and write several ranges, all or none; 0 or negative.");
  type.def(
      "batch_unregister_memory",
      [](PyEngine& engine, py::handle addresses) {
        return engine.Unregister(ToU64Vector(addresses));
      },
      "Takes several ranges back; 0 or negative.");
  type.def("get_first_buffer_address", &PyEngine::FirstBuffer,
           "Address of the first range that a segment offers, 0 when it offers none or cannot be "
           "reached.");
}

}  // namespace
}  // namespace mooncake::integration

PYBIND11_MODULE(engine, module) {
  using mooncake::integration::InnerTransferEngine;
  using mooncake::integration::PyEngine;
  using mooncake::transfer::Notify;
  using mooncake::transfer::Opcode;

  module.doc() = "One-sided reads and writes of memory of other processes and hosts.";
  for (const char* name : {"EFA", "HIP", "MNNVL", "MUSA", "INTRA_NVLINK", "CUDA"}) {
    module.attr((std::string("SUPPORT_") + name).c_str()) = false;
  }

  auto opcode =
      py::enum_<Opcode>(module, "TransferOpcode", py::arithmetic(), "Direction of a transfer.")
          .value("Read", Opcode::kRead, "From the peer to here.")
          .value("Write", Opcode::kWrite, "From here to the peer.")
          .value("READ", Opcode::kRead)
          .value("WRITE", Opcode::kWrite)
          .export_values();

  py::class_<Notify>(module, "TransferNotify",
                     "A small message that follows the data of a transfer.")
      .def(py::init<>())
      .def(py::init([](std::string name, std::string message) {
             return Notify{std::move(name), std::move(message)};
           }),
           py::arg("name"), py::arg("msg"))
      .def_readwrite("name", &Notify::name)
      .def_readwrite("msg", &Notify::message);

  // NOLINTNEXTLINE(bugprone-unused-raii): the module keeps it.
  py::class_<InnerTransferEngine, std::shared_ptr<InnerTransferEngine>>(
      module, "InnerTransferEngine", "An engine, to be handed to the store's setup().");

  module.def("environment_reference", &mooncake::DumpEnvReference,
             "All environment variables that are read, as a table in Markdown.");

  auto type = py::class_<PyEngine, std::shared_ptr<PyEngine>>(
      module, "TransferEngine",
      "Registers memory, reaches peers by name, moves bytes. Safe for use from many threads.");
  type.def(py::init<>());
  type.attr("TransferOpcode") = opcode;
  type.def("initialize", &PyEngine::Initialize, py::arg("local_hostname"),
           py::arg("metadata_server"), py::arg("protocol"), py::arg("device_name"),
           "Starts the engine; 0, or -1 with the reason in last_error(). `metadata_server`: "
           "\"P2PHANDSHAKE\" or the URL of "
           "a metadata server. A second call changes nothing.");
  type.def("initialize_ext", &PyEngine::InitializeExt, py::arg("local_hostname"),
           py::arg("metadata_server"), py::arg("protocol"), py::arg("device_name"),
           py::arg("metadata_type"),
           "As initialize(); `metadata_type` is the scheme of a `metadata_server` that has none.");
  type.def("get_rpc_port", &PyEngine::RpcPort,
           "The port under which peers reach this engine, 0 before initialize().");
  mooncake::integration::DefineMemory(type);
  mooncake::integration::DefineMoves(type);
  type.def(
      "get_local_topology",
      [](PyEngine&, const py::object& /*device_name*/) { return std::string("{}\n"); },
      py::arg("device_name") = py::none(),
      "The NICs near each memory, as JSON; empty without NICs for RDMA.");
  type.def(
      "warmup_efa_segment", [](PyEngine&, const std::string& /*segment_name*/) { return 0; },
      py::arg("segment_name"),
      "Connects ahead of use where that matters (EFA); elsewhere nothing. 0.");
  type.def("get_notifies", &PyEngine::TakeNotifies,
           "The messages that arrived since the last call, oldest first.");
  type.def("send_probe", &PyEngine::Probe, py::arg("peer_server_name"),
           "0 when the peer's process answers.");
  type.def("get_engine", &PyEngine::Inner, "The engine itself, for the store's setup(engine=...).");
  type.def("get_engine_ptr", &PyEngine::Pointer,
           "The engine's address as an integer, 0 before initialize().");
  type.def(
      "last_error",
      [](PyEngine&) {
        using namespace mooncake::integration;  // NOLINT(google-build-using-namespace)
        return py::make_tuple(last_code_of_thread, last_code_of_thread == 0
                                                       ? std::string()
                                                       : last_error_of_thread.ToString());
      },
      "(code, text) of this thread's last failure; (0, \"\") when there was none.");

  // Threads of engines that nobody let go of must end before the process takes its libraries down.
  mooncake::integration::Unlocked::EndWith(
      &mooncake::integration::LiveObjects<InnerTransferEngine>::CloseAll);
}
