// mooncake.engine: the transfer engine for Python. Results are the integer codes that users know;
// what a failure was, in words, is what last_error() returns.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/env.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-integration/engine_holder.h"
#include "mooncake-integration/live_objects.h"
#include "mooncake-integration/py_engine.h"
#include "mooncake-integration/py_memory.h"
#include "mooncake-integration/py_sequence.h"
#include "mooncake-integration/unlocked.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"

namespace py = pybind11;

namespace mooncake::integration {
namespace {

using transfer::Notify;
using transfer::Opcode;
using transfer::TransferRequest;

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
      "last_error", [](PyEngine&) { return mooncake::integration::LastFailure(); },
      "(code, text) of this thread's last failure; (0, \"\") when there was none.");

  // Threads of engines that nobody let go of must end before the process takes its libraries down.
  mooncake::integration::Unlocked::EndWith(
      &mooncake::integration::LiveObjects<InnerTransferEngine>::CloseAll);
}
