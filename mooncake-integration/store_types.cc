#include "mooncake-integration/store_types.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <string>
#include <utility>

#include "mooncake-integration/py_bytes.h"
#include "mooncake-integration/unlocked.h"
#include "mooncake-store/src/client/failure.h"

namespace py = pybind11;

namespace mooncake::integration {
namespace {

using store::ReplicateConfig;
using store::SoftPinAction;
using store::StoreCode;

enum class ObjectDataType : std::uint8_t {
  kUnknown,
  kKvcache,
  kTensor,
  kWeight,
  kSample,
  kActivation,
  kGradient,
  kOptimizerState,
  kMetadata,
  kGeneral
};
enum class ReplicaStatus : std::uint8_t {
  kUndefined,
  kInitialized,
  kProcessing,
  kComplete,
  kRemoved,
  kFailed
};
enum class TaskType : std::uint8_t { kReplicaCopy, kReplicaMove };
enum class TaskStatus : std::uint8_t { kPending, kProcessing, kFailed, kSuccess };

// Names as users have always seen them.
struct Descriptor {
  std::uint64_t size = 0;
  std::uint64_t buffer_address = 0;
  std::string transport_endpoint;
  std::vector<py::dict> extents;
};
struct MemoryDescriptor {
  Descriptor buffer_descriptor;
};
struct DiskDescriptor {
  std::string file_path;
  std::uint64_t object_size = 0;
};
struct ReplicaDescriptor {
  ReplicaStatus status = ReplicaStatus::kComplete;
  MemoryDescriptor memory;
};
// Only ever absent: no tasks are built.
struct QueryTaskResponse {};

void DefineEnums(py::module_& module) {
  py::enum_<SoftPinAction>(module, "SoftPinAction",
                           "What a put or upsert does to an object's soft pin.")
      .value("PRESERVE", SoftPinAction::kPreserve)
      .value("ENABLE", SoftPinAction::kEnable)
      .value("DISABLE", SoftPinAction::kDisable);
  py::enum_<ObjectDataType>(module, "ObjectDataType", "What an object holds; for information.")
      .value("UNKNOWN", ObjectDataType::kUnknown)
      .value("KVCACHE", ObjectDataType::kKvcache)
      .value("TENSOR", ObjectDataType::kTensor)
      .value("WEIGHT", ObjectDataType::kWeight)
      .value("SAMPLE", ObjectDataType::kSample)
      .value("ACTIVATION", ObjectDataType::kActivation)
      .value("GRADIENT", ObjectDataType::kGradient)
      .value("OPTIMIZER_STATE", ObjectDataType::kOptimizerState)
      .value("METADATA", ObjectDataType::kMetadata)
      .value("GENERAL", ObjectDataType::kGeneral)
      .export_values();
  py::enum_<ReplicaStatus>(module, "ReplicaStatus", "State of one replica.")
      .value("UNDEFINED", ReplicaStatus::kUndefined)
      .value("INITIALIZED", ReplicaStatus::kInitialized)
      .value("PROCESSING", ReplicaStatus::kProcessing)
      .value("COMPLETE", ReplicaStatus::kComplete)
      .value("REMOVED", ReplicaStatus::kRemoved)
      .value("FAILED", ReplicaStatus::kFailed)
      .export_values();
  py::enum_<TaskType>(module, "TaskType", "Kind of a task.")
      .value("REPLICA_COPY", TaskType::kReplicaCopy)
      .value("REPLICA_MOVE", TaskType::kReplicaMove)
      .export_values();
  py::enum_<TaskStatus>(module, "TaskStatus", "State of a task.")
      .value("PENDING", TaskStatus::kPending)
      .value("PROCESSING", TaskStatus::kProcessing)
      .value("FAILED", TaskStatus::kFailed)
      .value("SUCCESS", TaskStatus::kSuccess);
}

void DefineConfig(py::module_& module) {
  py::class_<ReplicateConfig>(module, "ReplicateConfig",
                              "How many replicas an object gets, where, and how it is pinned.")
      .def(py::init<>())
      .def_readwrite("replica_num", &ReplicateConfig::replica_num)
      .def_readwrite("nof_replica_num", &ReplicateConfig::nof_replica_num)
      .def_readwrite("dfs_replica_num", &ReplicateConfig::dfs_replica_num)
      .def_readwrite("soft_pin_action", &ReplicateConfig::soft_pin_action)
      .def_readwrite("soft_pin_ttl_ms", &ReplicateConfig::soft_pin_ttl_ms)
      .def_readwrite("with_hard_pin", &ReplicateConfig::with_hard_pin)
      .def_readwrite("preferred_segments", &ReplicateConfig::preferred_segments)
      .def_readwrite("preferred_nof_segments", &ReplicateConfig::preferred_nof_segments)
      .def_readwrite("preferred_segment", &ReplicateConfig::preferred_segment)
      .def_readwrite("prefer_alloc_in_same_node", &ReplicateConfig::prefer_alloc_in_same_node)
      .def_property(
          "data_type",
          [](const ReplicateConfig& config) {
            return static_cast<ObjectDataType>(config.data_type);
          },
          [](ReplicateConfig& config, ObjectDataType type) {
            config.data_type = static_cast<std::uint8_t>(type);
          })
      .def_readwrite("group_ids", &ReplicateConfig::group_ids)
      .def("__str__", &ReplicateConfig::ToString);
}

void DefineDescriptors(py::module_& module) {
  py::class_<Descriptor>(module, "Descriptor",
                         "Where a replica's bytes lie; the first extent, and the total size.")
      .def_readonly("size", &Descriptor::size)
      .def_readonly("buffer_address", &Descriptor::buffer_address)
      .def_readonly("transport_endpoint", &Descriptor::transport_endpoint)
      .def_readonly("extents", &Descriptor::extents)
      .def("__repr__", [](const Descriptor& descriptor) {
        return fmt::format("<Descriptor size={} buffer_address={} transport_endpoint={}>",
                           descriptor.size, descriptor.buffer_address,
                           descriptor.transport_endpoint);
      });
  py::class_<MemoryDescriptor>(module, "MemoryDescriptor")
      .def_readonly("buffer_descriptor", &MemoryDescriptor::buffer_descriptor);
  py::class_<DiskDescriptor>(module, "DiskDescriptor")
      .def_readonly("file_path", &DiskDescriptor::file_path)
      .def_readonly("object_size", &DiskDescriptor::object_size);
  py::class_<ReplicaDescriptor>(module, "ReplicaDescriptor", "One replica of an object.")
      .def_readonly("status", &ReplicaDescriptor::status)
      .def("is_memory_replica", [](const ReplicaDescriptor&) { return true; })
      .def("is_disk_replica", [](const ReplicaDescriptor&) { return false; })
      .def("is_local_disk_replica", [](const ReplicaDescriptor&) { return false; })
      .def("get_memory_descriptor", [](const ReplicaDescriptor& replica) { return replica.memory; })
      .def("get_disk_descriptor", [](const ReplicaDescriptor&) -> DiskDescriptor {
        throw std::runtime_error("this replica is in memory; ask is_disk_replica() first");
      });
  py::class_<QueryTaskResponse>(module, "QueryTaskResponse", "State of a copy or move task.");
}

}  // namespace

void DefineStoreTypes(py::module_& module) {
  DefineEnums(module);
  DefineConfig(module);
  DefineDescriptors(module);
}

void DefineTasks(py::class_<PyStore, std::shared_ptr<PyStore>>& type) {
  using Id = std::pair<std::uint64_t, std::uint64_t>;
  const auto create = [](PyStore& store, std::string_view key) {
    const Unlocked unlocked;
    const std::int64_t size = store.Size(key);
    const auto code = size < 0 ? static_cast<StoreCode>(size) : StoreCode::kNotSupported;
    if (size >= 0) {
      store::RememberError(code, store::FailureText(code, "copy or move", key,
                                                    "tasks are not built in this version"));
    }
    return std::pair(Id{0, 0}, static_cast<int>(code));
  };
  type.def(
      "create_copy_task",
      [create](PyStore& store, const py::str& key, const std::vector<std::string>& targets) {
        if (targets.empty()) {
          return std::pair(Id{0, 0}, static_cast<int>(StoreCode::kInvalidParams));
        }
        return create(store, ToText(key.ptr()));
      },
      py::arg("key"), py::arg("targets"),
      "(task id, code): asks for copies on the named segments.");
  type.def(
      "create_move_task",
      [create](PyStore& store, const py::str& key, const std::string& source,
               const std::string& target) {
        if (source == target) {
          return std::pair(Id{0, 0}, static_cast<int>(StoreCode::kInvalidParams));
        }
        return create(store, ToText(key.ptr()));
      },
      py::arg("key"), py::arg("source"), py::arg("target"),
      "(task id, code): asks for a move between two segments.");
  type.def(
      "query_task",
      [](PyStore&, const Id&) {
        return py::make_tuple(py::none(), static_cast<int>(StoreCode::kTaskNotFound));
      },
      py::arg("task_id"), "(state, code) of a task; (None, -1400) when it is not known.");
}

py::list ToDescriptors(const std::vector<store::ReplicaInfo>& replicas) {
  py::list list;
  for (const store::ReplicaInfo& replica : replicas) {
    ReplicaDescriptor descriptor;
    Descriptor& buffer = descriptor.memory.buffer_descriptor;
    buffer.size = replica.size_bytes;
    buffer.buffer_address = replica.address;
    buffer.transport_endpoint = replica.endpoint;
    for (const store::LocatedExtent& extent : replica.extents) {
      py::dict one;
      one["transport_endpoint"] = extent.segment->info.te_endpoint;
      one["buffer_address"] = extent.address;
      one["size"] = extent.length_bytes;
      buffer.extents.push_back(std::move(one));
    }
    list.append(std::move(descriptor));
  }
  return list;
}

}  // namespace mooncake::integration
