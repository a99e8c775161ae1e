// What the parts of mooncake.store's bindings share: argument checks, and who defines which calls.
//
// Thread-safety: needs the interpreter lock.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "mooncake-integration/py_sequence.h"
#include "mooncake-integration/py_store.h"
#include "mooncake-store/src/client/failure.h"

namespace mooncake::integration {

using StoreType = pybind11::class_<PyStore, std::shared_ptr<PyStore>>;

// put, upsert and their kin.
void DefinePuts(StoreType& type);
// get and its kin, and the registration of memory.
void DefineGets(StoreType& type);

// Remembers why arguments were refused; -600.
inline int RefuseArguments(std::string_view verb, std::string_view cause) {
  using store::StoreCode;
  return static_cast<int>(store::RememberError(
      StoreCode::kInvalidParams, store::FailureText(StoreCode::kInvalidParams, verb, "", cause)));
}

// Lists that should be as long as the keys and are not: an error a key.
inline std::vector<int> LengthsDiffer(std::size_t keys) {
  return std::vector<int>(
      keys, RefuseArguments("check arguments", "the lists differ in length; give one entry a key"));
}

// Lists of lists of numbers, one inner list a key. Empty outer vector if any pair of inner lists
// differs in length.
struct NestedPieces {
  std::vector<std::vector<std::uint64_t>> addresses;
  std::vector<std::vector<std::uint64_t>> sizes;
  bool fit = true;

  NestedPieces(std::size_t keys, pybind11::handle all_addresses, pybind11::handle all_sizes) {
    const FastSequence outer_addresses(all_addresses);
    const FastSequence outer_sizes(all_sizes);
    fit = outer_addresses.size() == keys && outer_sizes.size() == keys;
    for (std::size_t i = 0; fit && i < keys; ++i) {
      addresses.push_back(ToU64Vector(outer_addresses[i]));
      sizes.push_back(ToU64Vector(outer_sizes[i]));
      fit = addresses.back().size() == sizes.back().size();
    }
  }
};

}  // namespace mooncake::integration
