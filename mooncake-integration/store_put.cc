// put, upsert and their kin of mooncake.store.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-integration/py_bytes.h"
#include "mooncake-integration/py_sequence.h"
#include "mooncake-integration/store_calls.h"
#include "mooncake-integration/unlocked.h"

namespace py = pybind11;

namespace mooncake::integration {
namespace {

using store::PutItem;
using store::ReplicateConfig;
using store::SourcePiece;

int FirstError(const std::vector<int>& codes) {
  const auto wrong = std::ranges::find_if(codes, [](int code) { return code != 0; });
  return wrong == codes.end() ? 0 : *wrong;
}

// The values of put calls, held while C++ reads them.
class Values {
 public:
  void Add(py::handle value) {
    const BytesView& view = views_.emplace_back(value);
    pieces_.push_back({.memory = view.data(), .length_bytes = view.size()});
  }
  [[nodiscard]] std::span<const SourcePiece> pieces() const { return pieces_; }
  [[nodiscard]] const BytesView& last() const { return views_.back(); }

 private:
  std::deque<BytesView> views_;
  std::vector<SourcePiece> pieces_;
};

int PutOne(PyStore& store, const py::str& key, py::handle value, const ReplicateConfig& config,
           bool upsert) {
  Values values;
  values.Add(value);
  const PutItem item{.key = ToText(key.ptr()), .pieces = values.pieces()};
  const Unlocked unlocked;
  return store.Put(std::span(&item, 1), config, upsert).front();
}

int PutParts(PyStore& store, const py::str& key, const py::args& parts,
             const ReplicateConfig& config, bool upsert) {
  Values values;
  std::uint64_t total = 0;
  for (const py::handle part : parts) {
    values.Add(part);
    if (!values.last().is_plain()) {
      throw std::runtime_error("parts must be 1-D bytes-like");
    }
    total += values.last().size();
  }
  if (total == 0) {
    return 0;
  }
  const PutItem item{.key = ToText(key.ptr()), .pieces = values.pieces()};
  const Unlocked unlocked;
  return store.Put(std::span(&item, 1), config, upsert).front();
}

int PutBatch(PyStore& store, py::handle keys, py::handle values, const ReplicateConfig& config,
             bool upsert) {
  const TextList texts(keys);
  const FastSequence objects(values);
  if (texts.size() != objects.size()) {
    return RefuseArguments("put a batch", "keys and values differ in number");
  }
  Values held;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    held.Add(objects[i]);
  }
  std::vector<PutItem> items(texts.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i] = {.key = texts[i], .pieces = held.pieces().subspan(i, 1)};
  }
  const Unlocked unlocked;
  return items.empty() ? 0 : FirstError(store.Put(items, config, upsert));
}

int PutFromOne(PyStore& store, const py::str& key, std::uint64_t address, std::uint64_t size,
               const ReplicateConfig& config, bool upsert) {
  const SourcePiece piece{.memory = ToPointer(address), .length_bytes = size};
  const PutItem item{.key = ToText(key.ptr()), .pieces = std::span(&piece, 1)};
  const Unlocked unlocked;
  return store.PutFrom(std::span(&item, 1), config, upsert).front();
}

int PutFromWithMetadata(PyStore& store, const py::str& key, std::uint64_t address,
                        std::uint64_t metadata_address, std::uint64_t size,
                        std::uint64_t metadata_size, const ReplicateConfig& config) {
  // Metadata first, then the data; an empty part has no piece.
  std::vector<SourcePiece> pieces;
  for (const auto& [begin, length] :
       {std::pair{metadata_address, metadata_size}, std::pair{address, size}}) {
    if (length != 0) {
      pieces.push_back({.memory = ToPointer(begin), .length_bytes = length});
    }
  }
  const PutItem item{.key = ToText(key.ptr()), .pieces = pieces};
  const Unlocked unlocked;
  return store.PutFrom(std::span(&item, 1), config, false).front();
}

std::vector<int> PutFromMany(PyStore& store, py::handle keys, py::handle addresses,
                             py::handle sizes, const ReplicateConfig& config, bool upsert) {
  const TextList texts(keys);
  const FastSequence pointers(addresses);
  const FastSequence lengths(sizes);
  if (texts.size() != pointers.size() || texts.size() != lengths.size()) {
    return LengthsDiffer(texts.size());
  }
  std::vector<SourcePiece> pieces(texts.size());
  std::vector<PutItem> items(texts.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    pieces[i] = {.memory = ToPointer(ToU64(pointers[i])), .length_bytes = ToU64(lengths[i])};
    items[i] = {.key = texts[i], .pieces = std::span(pieces).subspan(i, 1)};
  }
  const Unlocked unlocked;
  return store.PutFrom(items, config, upsert);
}

std::vector<int> PutFromMultiBuffers(PyStore& store, py::handle keys, py::handle all_addresses,
                                     py::handle all_sizes, const ReplicateConfig& config) {
  const TextList texts(keys);
  const NestedPieces nested(texts.size(), all_addresses, all_sizes);
  if (!nested.fit) {
    return LengthsDiffer(texts.size());
  }
  std::vector<std::vector<SourcePiece>> pieces(texts.size());
  std::vector<PutItem> items(texts.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (std::size_t j = 0; j < nested.sizes[i].size(); ++j) {
      if (nested.sizes[i][j] != 0) {
        pieces[i].push_back(
            {.memory = ToPointer(nested.addresses[i][j]), .length_bytes = nested.sizes[i][j]});
      }
    }
    items[i] = {.key = texts[i], .pieces = pieces[i]};
  }
  const Unlocked unlocked;
  // Without a set-up nothing, where other calls give a code a key: so it has always been.
  return items.empty() || !store.IsSetUp() ? std::vector<int>{}
                                           : store.PutFrom(items, config, false);
}

}  // namespace

void DefinePuts(StoreType& type) {
  const ReplicateConfig config;
  for (const auto& [name, upsert] : {std::pair{"put", false}, std::pair{"upsert", true}}) {
    const std::string verb = name;
    const bool replaces = upsert;
    type.def(
        verb.c_str(),
        [replaces](PyStore& store, const py::str& key, py::handle value,
                   const ReplicateConfig& how) { return PutOne(store, key, value, how, replaces); },
        py::arg("key"), py::arg("value"), py::arg("config") = config,
        replaces ? "Stores a bytes-like value, in place of what the key had; 0 or a negative code."
                 : "Stores a bytes-like value; 0 or a negative code. A key that exists keeps its "
                   "value, and 0 is returned.");
    type.def((verb + "_parts").c_str(),
             [replaces](PyStore& store, const py::str& key, const py::args& parts,
                        const ReplicateConfig& how) {
               return PutParts(store, key, parts, how, replaces);
             },
             py::arg("key"), py::arg("config") = config,
             "Stores the parts one after another as one value; 0 or a negative code.");
    type.def(
        (verb + "_batch").c_str(),
        [replaces](PyStore& store, py::handle keys, py::handle values, const ReplicateConfig& how) {
          return PutBatch(store, keys, values, how, replaces);
        },
        py::arg("keys"), py::arg("values"), py::arg("config") = config,
        "Stores one value a key; 0, or the first negative code.");
    type.def((verb + "_from").c_str(),
             [replaces](PyStore& store, const py::str& key, std::uint64_t address,
                        std::uint64_t size, const ReplicateConfig& how) {
               return PutFromOne(store, key, address, size, how, replaces);
             },
             py::arg("key"), py::arg("buffer_ptr"), py::arg("size"), py::arg("config") = config,
             "Stores `size` bytes of registered memory without a copy; 0 or a negative code.");
    type.def(("batch_" + verb + "_from").c_str(),
             [replaces](PyStore& store, py::handle keys, py::handle addresses, py::handle sizes,
                        const ReplicateConfig& how) {
               return PutFromMany(store, keys, addresses, sizes, how, replaces);
             },
             py::arg("keys"), py::arg("buffer_ptrs"), py::arg("sizes"), py::arg("config") = config,
             "Stores registered memory, one range a key; a code a key.");
  }
  type.def("put_from_with_metadata", &PutFromWithMetadata, py::arg("key"), py::arg("buffer_ptr"),
           py::arg("metadata_buffer_ptr"), py::arg("size"), py::arg("metadata_size"),
           py::arg("config") = config,
           "Stores metadata bytes followed by data bytes, both in registered memory; 0 or a "
           "negative code.");
  type.def("batch_put_from_multi_buffers", &PutFromMultiBuffers, py::arg("keys"),
           py::arg("all_buffer_ptrs"), py::arg("all_sizes"), py::arg("config") = config,
           "Stores for each key its buffers one after another; a code a key.");
}

}  // namespace mooncake::integration
