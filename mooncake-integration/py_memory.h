// Copies between Python's bytes and the memory of this process at any address. Copies of gigabytes
// are in use, so the interpreter lock is not held meanwhile.
//
// Thread-safety: called under the interpreter lock; two that meet in memory are the callers' race.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <cstring>

#include "mooncake-common/src/base/mapped_memory.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-integration/py_sequence.h"
#include "mooncake-integration/unlocked.h"

namespace mooncake::integration {

// Copies the first `length_bytes` of `data`, which has as many, to `address`.
//
// Errors: kInvalidArgument where nothing is mapped for writing.
[[nodiscard]] inline Result<void> CopyToMemory(const pybind11::bytes& data, std::uint64_t address,
                                               std::uint64_t length_bytes) {
  const char* const source = PyBytes_AS_STRING(data.ptr());
  const Unlocked unlocked;
  if (length_bytes > 0) {
    MC_TRY(CheckMapped(ToPointer(address), length_bytes, MemoryAccess::kWrite));
    std::memcpy(ToPointer(address), source, length_bytes);
  }
  return {};
}

// The bytes at `address`. MemoryError when Python has no room for them.
//
// Errors: kInvalidArgument where nothing is mapped.
[[nodiscard]] inline Result<pybind11::bytes> CopyOfMemory(std::uint64_t address,
                                                          std::uint64_t length_bytes) {
  if (length_bytes > 0) {
    MC_TRY(CheckMapped(ToPointer(address), length_bytes, MemoryAccess::kRead));
  }
  auto copy = pybind11::reinterpret_steal<pybind11::bytes>(
      PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(length_bytes)));
  if (!copy) {
    throw pybind11::error_already_set();
  }
  if (length_bytes > 0) {
    char* const sink = PyBytes_AS_STRING(copy.ptr());
    const Unlocked unlocked;
    std::memcpy(sink, ToPointer(address), length_bytes);
  }
  return copy;
}

}  // namespace mooncake::integration
