// The value types of mooncake.store: configuration, descriptors, enumerations.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "mooncake-integration/py_store.h"
#include "mooncake-store/include/mooncake/store/client.h"

namespace mooncake::integration {

void DefineStoreTypes(pybind11::module_& module);

// Copy and move tasks are not built: unknown objects and tasks are told as such, the rest is not
// supported.
void DefineTasks(pybind11::class_<PyStore, std::shared_ptr<PyStore>>& type);

[[nodiscard]] pybind11::list ToDescriptors(const std::vector<store::ReplicaInfo>& replicas);

}  // namespace mooncake::integration
