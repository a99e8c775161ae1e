// mooncake.store: the object store for Python. Argument checks and the interpreter lock only; the
// calls are py_store.h's.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/byte_size.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/text.h"
#include "mooncake-integration/engine_holder.h"
#include "mooncake-integration/live_objects.h"
#include "mooncake-integration/py_bytes.h"
#include "mooncake-integration/py_sequence.h"
#include "mooncake-integration/py_store.h"
#include "mooncake-integration/store_calls.h"
#include "mooncake-integration/store_types.h"
#include "mooncake-integration/unlocked.h"
#include "mooncake-store/src/client/failure.h"

namespace py = pybind11;

namespace mooncake::integration {
namespace {

// ---- Set-up ----

store::ClientSettings MakeSettings(std::string local_hostname, std::string metadata_server,
                                   std::uint64_t segment, std::uint64_t buffer,
                                   std::string protocol, std::string devices, std::string master,
                                   std::string tenant) {
  store::ClientSettings settings;
  settings.local_hostname = std::move(local_hostname);
  settings.metadata_server = std::move(metadata_server);
  settings.global_segment_bytes = segment;
  settings.local_buffer_bytes = buffer;
  settings.protocol = std::move(protocol);
  settings.devices = std::move(devices);
  settings.master_address = std::move(master);
  settings.tenant = std::move(tenant);
  return settings;
}

int SetUp(PyStore& store, store::ClientSettings settings, const py::object& engine) {
  if (!engine.is_none()) {
    if (!py::isinstance<InnerTransferEngine>(engine)) {
      throw std::runtime_error("setup(engine=...): give what TransferEngine.get_engine() returns");
    }
    settings.engine = engine.cast<InnerTransferEngine&>().engine();
    if (!settings.engine) {
      return RefuseArguments("set up the store",
                             "the engine given is not initialised in this process; call its "
                             "initialize() first, or leave engine= out");
    }
  }
  const Unlocked unlocked;
  return store.Setup(settings);
}

// Accepted, so that programs that ask for them keep working.
void WarnOfWhatIsNotBuilt(bool ssd_offload, bool client_http_server) {
  if (ssd_offload) {
    MC_LOG_WARNING("enable_ssd_offload changes nothing: this build keeps objects in memory only");
  }
  if (client_http_server) {
    MC_LOG_WARNING(
        "enable_client_http_server changes nothing: clients of this build serve no HTTP");
  }
}

int SetUpFromDict(PyStore& store, const py::dict& config) {
  const auto text = [&](const char* key, const char* fallback) {
    return config.contains(key) ? std::string(py::str(config[key])) : std::string(fallback);
  };
  store::ClientSettings settings;
  for (const auto& [key, field, fallback] :
       {std::tuple{"global_segment_size", &settings.global_segment_bytes, "16777216"},
        std::tuple{"local_buffer_size", &settings.local_buffer_bytes, "16777216"}}) {
    const auto size = ParseByteSize(text(key, fallback));
    if (!size) {
      return RefuseArguments("set up the store", std::string(key) + ": " + size.error().message);
    }
    // Smaller than this is a unit left out rather than a wish.
    if (*size != 0 && *size < 1024) {
      return RefuseArguments("set up the store",
                             std::string(key) + " is " + std::to_string(*size) +
                                 " bytes; give 0 or at least 1024, or a unit such as '16MB'");
    }
    *field = *size;
  }
  for (const char* required : {"local_hostname", "metadata_server"}) {
    if (!config.contains(required)) {
      return RefuseArguments("set up the store",
                             std::string(required) + " is missing in the settings");
    }
  }
  settings.local_hostname = text("local_hostname", "");
  settings.metadata_server = text("metadata_server", "");
  settings.protocol = text("protocol", "tcp");
  settings.devices = text("rdma_devices", "");
  settings.master_address = text("master_server_addr", "127.0.0.1:50051");
  settings.tenant = text("tenant_id", "default");
  WarnOfWhatIsNotBuilt(ParseBool(text("enable_ssd_offload", "false")).value_or(false),
                       ParseBool(text("enable_client_http_server", "false")).value_or(false));
  return SetUp(store, std::move(settings), py::none());
}

// ---- The rest ----

py::dict MountResult(const std::expected<Uuid, int>& mounted, std::uint64_t size) {
  py::dict result;
  result["ret"] = mounted ? 0 : -1;
  result["segment_ids"] = mounted ? std::vector{mounted->ToString()} : std::vector<std::string>{};
  result["allocated_size"] = mounted ? size : 0;
  return result;
}

void DefineLifecycle(StoreType& type) {
  type.def(py::init([] { return PyStore::Create(&DeleteUnlocked<PyStore>); }));
  type.def(
      "setup",
      [](PyStore& store, std::string local_hostname, std::string metadata_server,
         std::uint64_t segment, std::uint64_t buffer, std::string protocol, std::string devices,
         std::string master, const py::object& engine, bool enable_ssd_offload,
         const std::string& /*ssd_offload_path*/, std::string tenant,
         bool enable_client_http_server, int /*client_http_port*/) {
        WarnOfWhatIsNotBuilt(enable_ssd_offload, enable_client_http_server);
        return SetUp(store,
                     MakeSettings(std::move(local_hostname), std::move(metadata_server), segment,
                                  buffer, std::move(protocol), std::move(devices),
                                  std::move(master), std::move(tenant)),
                     engine);
      },
      py::arg("local_hostname"), py::arg("metadata_server"), py::arg("global_segment_size"),
      py::arg("local_buffer_size"), py::arg("protocol"), py::arg("rdma_devices"),
      py::arg("master_server_addr"), py::arg("engine") = py::none(),
      py::arg("enable_ssd_offload") = false, py::arg("ssd_offload_path") = "",
      py::arg("tenant_id") = "default", py::arg("enable_client_http_server") = false,
      py::arg("client_http_port") = 9300,
      "Joins the pool: lends `global_segment_size` bytes and keeps `local_buffer_size` bytes for "
      "copying calls.\n"
      "`engine`: what get_engine() of an initialised TransferEngine gives, to be used instead of a "
      "new one.\n"
      "Returns 0, or a negative code that last_error() explains. A second call closes first.");
  type.def("setup", &SetUpFromDict, py::arg("config"),
           "The same from a dict; sizes may be texts such as \"16MB\". Unknown keys are ignored.");
  type.def("close", &PyStore::Close, py::call_guard<Unlocked>(),
           "Takes back what was lent and ends the client; 0, also when it was closed already.");
  type.def("health_check", &PyStore::HealthCheck, py::call_guard<Unlocked>(),
           "0 healthy, 1 not set up or closed, 2 the master does not answer.");
  type.def("get_hostname", &PyStore::Hostname, py::call_guard<Unlocked>(),
           "\"host:port\", the name of this client's segment.");
  type.def(
      "last_error",
      [](PyStore&) {
        const store::StoreError& error = store::LastError();
        return py::make_tuple(static_cast<int>(error.code), error.text);
      },
      "(code, text) of the last failure on this thread, (0, \"\") when there was none. A put of a "
      "key that existed\n"
      "returns 0 and leaves (-705, text) here.");
  type.def(
      "allocate_and_mount_segment",
      [](PyStore& store, std::uint64_t size, const std::string& /*protocol*/,
         const std::string& /*location*/) {
        std::expected<Uuid, int> mounted;
        {
          const Unlocked unlocked;
          mounted = store.AllocateAndMount(size);
        }
        return MountResult(mounted, size);
      },
      py::arg("size"), py::arg("protocol") = "tcp", py::arg("location") = "",
      "Lends `size` bytes more: {\"ret\": 0 or -1, \"segment_ids\": [...], \"allocated_size\": "
      "bytes}.");
  const auto unmount = [](PyStore& store, const std::vector<std::string>& ids,
                          std::uint64_t grace_seconds) {
    constexpr std::uint64_t kMostSeconds = store::kMaxGraceMs / 1000;
    int first = 0;
    for (const std::string& id : ids) {
      if (store.Unmount(id, std::min(grace_seconds, kMostSeconds) * 1000) != 0 && first == 0) {
        first = -1;
      }
    }
    return first;
  };
  for (const char* name : {"unmount_segment", "unmount_and_free_segment"}) {
    type.def(name, unmount, py::arg("segment_ids"), py::arg("grace_period_seconds") = 0,
             py::call_guard<Unlocked>(),
             "Takes segments back and frees their memory, when their objects could be read for the "
             "grace period; 0, or -1 if any failed.");
  }
}

void DefineKeys(StoreType& type) {
  type.def(
      "is_exist",
      [](PyStore& store, const py::str& key) {
        const std::string_view text = ToText(key.ptr());
        const Unlocked unlocked;
        return store.Exist(std::span(&text, 1)).front();
      },
      "1 or 0, or a negative code. Pins the object for the lease.");
  type.def(
      "batch_is_exist",
      [](PyStore& store, py::handle keys) {
        const TextList texts(keys);
        const Unlocked unlocked;
        return texts.size() == 0 ? std::vector<int>{} : store.Exist(texts.views());
      },
      py::arg("keys"), "1, 0 or a negative code a key. Pins the objects for the lease.");
  type.def(
      "get_size",
      [](PyStore& store, const py::str& key) {
        const std::string_view text = ToText(key.ptr());
        const Unlocked unlocked;
        return store.Size(text);
      },
      "Bytes of the value, or a negative code.");
  type.def(
      "remove",
      [](PyStore& store, const py::str& key, bool force) {
        const std::string_view text = ToText(key.ptr());
        const Unlocked unlocked;
        return store.Remove(std::span(&text, 1), force).front();
      },
      py::arg("key"), py::arg("force") = false,
      "Removes an object; 0, -704 when there is none, -706 while it is leased.");
  type.def(
      "batch_remove",
      [](PyStore& store, py::handle keys, bool force) {
        const TextList texts(keys);
        const Unlocked unlocked;
        return texts.size() == 0 ? std::vector<int>{} : store.Remove(texts.views(), force);
      },
      py::arg("keys"), py::arg("force") = false, "Removes objects; a code a key.");
  type.def("remove_by_regex", &PyStore::RemoveByRegex, py::arg("regex_pattern"),
           py::arg("force") = false, py::call_guard<Unlocked>(),
           "Removes the objects whose key holds a match of an ECMAScript pattern; how many, or a "
           "negative code.");
  type.def("remove_all", &PyStore::RemoveAll, py::arg("force") = false, py::call_guard<Unlocked>(),
           "Removes all objects that are not leased; how many, or a negative code.");
  type.def(
      "get_replica_desc",
      [](PyStore& store, const py::str& key) {
        const std::string_view text = ToText(key.ptr());
        std::vector<std::vector<store::ReplicaInfo>> replicas;
        {
          const Unlocked unlocked;
          replicas = store.Replicas(std::span(&text, 1));
        }
        return ToDescriptors(replicas.front());
      },
      py::arg("key"),
      "Where the object lies: one ReplicaDescriptor a replica, [] when there is none.");
  type.def(
      "batch_get_replica_desc",
      [](PyStore& store, py::handle keys) {
        const TextList texts(keys);
        std::vector<std::vector<store::ReplicaInfo>> replicas;
        if (texts.size() > 0) {
          const Unlocked unlocked;
          replicas = store.Replicas(texts.views());
        }
        py::dict result;
        for (std::size_t i = 0; i < replicas.size(); ++i) {
          if (!replicas[i].empty()) {
            result[py::str(texts[i].data(), texts[i].size())] = ToDescriptors(replicas[i]);
          }
        }
        return result;
      },
      py::arg("keys"), "ReplicaDescriptors by key; keys that have none are left out.");
  type.def(
      "batch_replica_clear",
      [](PyStore& store, py::handle keys, const std::string& segment_name) {
        const TextList texts(keys);
        const Unlocked unlocked;
        return texts.size() == 0 ? std::vector<std::string>{}
                                 : store.ClearReplicas(texts.views(), segment_name);
      },
      py::arg("keys"), py::arg("segment_name") = "",
      "Drops what this client wrote: whole objects, or their replicas on one segment; the keys "
      "that were cleared.");
}

}  // namespace
}  // namespace mooncake::integration

PYBIND11_MODULE(store, module) {
  using mooncake::integration::ObjectBuffer;
  using mooncake::integration::PyStore;

  module.doc() = "Objects in a pool of memory that all clients lend.";
  mooncake::integration::DefineStoreTypes(module);

  py::class_<ObjectBuffer>(module, "BufferHandle", py::buffer_protocol(),
                           "The bytes of one object, writable, one copy.")
      .def_buffer([](ObjectBuffer& buffer) {
        return py::buffer_info(reinterpret_cast<std::int8_t*>(buffer.bytes().data()),
                               static_cast<py::ssize_t>(buffer.bytes().size()));
      })
      .def(
          "ptr",
          [](const ObjectBuffer& buffer) {
            return reinterpret_cast<std::uint64_t>(buffer.bytes().data());
          },
          "Address of the first byte.")
      .def(
          "size", [](const ObjectBuffer& buffer) { return buffer.bytes().size(); },
          "Length in bytes.")
      .def("__len__", [](const ObjectBuffer& buffer) { return buffer.bytes().size(); });

  mooncake::integration::StoreType type(module, "MooncakeDistributedStore",
                                        "A client of the store. All calls may be made from many "
                                        "threads at once and let go of the interpreter lock.");
  mooncake::integration::DefineLifecycle(type);
  mooncake::integration::DefinePuts(type);
  mooncake::integration::DefineGets(type);
  mooncake::integration::DefineKeys(type);
  mooncake::integration::DefineTasks(type);

  // Threads of stores that nobody closed must end before the process takes its libraries down.
  mooncake::integration::Unlocked::EndWith(&mooncake::integration::LiveObjects<PyStore>::CloseAll);
}
