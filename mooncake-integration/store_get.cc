// get and its kin of mooncake.store, and the registration of memory.
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

using store::Fragment;

// Gives each object a bytes object of its size to be read into; asked without the interpreter lock.
class BytesProvider final : public store::DestinationProvider {
 public:
  explicit BytesProvider(std::size_t count) : objects_(count) {}
  std::byte* Provide(std::uint32_t item, std::uint64_t size_bytes) override {
    const py::gil_scoped_acquire locked;
    objects_[item] = py::reinterpret_steal<py::object>(
        PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size_bytes)));
    if (!objects_[item]) {
      PyErr_Clear();  // No memory: the key fails, the process goes on.
      return nullptr;
    }
    return reinterpret_cast<std::byte*>(PyBytes_AS_STRING(objects_[item].ptr()));
  }
  [[nodiscard]] py::object Take(std::size_t item) { return std::move(objects_[item]); }

 private:
  std::vector<py::object> objects_;
};

py::object GetOne(PyStore& store, const py::str& key) {
  const std::string_view text = ToText(key.ptr());
  BytesProvider provider(1);
  std::int64_t size = 0;
  {
    const Unlocked unlocked;
    size = store.Get(std::span(&text, 1), provider).front();
  }
  return size >= 0 ? provider.Take(0) : py::bytes();
}

py::list GetBatch(PyStore& store, py::handle keys) {
  const TextList texts(keys);
  BytesProvider provider(texts.size());
  std::vector<std::int64_t> sizes;
  {
    const Unlocked unlocked;
    if (store.IsSetUp()) {
      sizes = store.Get(texts.views(), provider);
    }
  }
  py::list values;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    values.append(sizes[i] >= 0 ? provider.Take(i) : py::bytes());
  }
  if (sizes.empty()) {
    values.append(py::bytes());  // What users have always got for nothing, and without a set-up.
  }
  return values;
}

std::int64_t GetIntoOne(PyStore& store, const py::str& key, std::uint64_t address,
                        std::uint64_t size) {
  const std::string_view text = ToText(key.ptr());
  const std::vector<Fragment> fragments{
      {.memory = ToPointer(address), .object_offset = 0, .length_bytes = size}};
  const Unlocked unlocked;
  return store.GetInto(std::span(&text, 1), std::span(&fragments, 1)).front();
}

std::vector<std::int64_t> GetIntoMany(PyStore& store, py::handle keys, py::handle addresses,
                                      py::handle sizes) {
  const TextList texts(keys);
  const FastSequence pointers(addresses);
  const FastSequence lengths(sizes);
  if (texts.size() != pointers.size() || texts.size() != lengths.size()) {
    const auto codes = LengthsDiffer(texts.size());
    return {codes.begin(), codes.end()};
  }
  std::vector<std::vector<Fragment>> fragments(texts.size());
  for (std::size_t i = 0; i < fragments.size(); ++i) {
    fragments[i].push_back({.memory = ToPointer(ToU64(pointers[i])),
                            .object_offset = 0,
                            .length_bytes = ToU64(lengths[i])});
  }
  const Unlocked unlocked;
  return store.GetInto(texts.views(), fragments);
}

std::vector<std::int64_t> GetIntoMultiBuffers(PyStore& store, py::handle keys,
                                              py::handle all_addresses, py::handle all_sizes,
                                              bool /*prefer_alloc_in_same_node*/) {
  const TextList texts(keys);
  const NestedPieces nested(texts.size(), all_addresses, all_sizes);
  if (!nested.fit) {
    const auto codes = LengthsDiffer(texts.size());
    return {codes.begin(), codes.end()};
  }
  std::vector<std::vector<Fragment>> fragments(texts.size());
  for (std::size_t i = 0; i < fragments.size(); ++i) {
    for (std::size_t j = 0; j < nested.sizes[i].size(); ++j) {
      if (nested.sizes[i][j] != 0) {
        fragments[i].push_back({.memory = ToPointer(nested.addresses[i][j]),
                                .object_offset = 0,
                                .length_bytes = nested.sizes[i][j]});
      }
    }
  }
  const Unlocked unlocked;
  return store.GetInto(texts.views(), fragments);
}

// Per buffer, per key: the results of its ranges. Where lists do not match, an error a destination
// offset.
py::list GetIntoRanges(PyStore& store, py::handle buffers, py::handle all_keys,
                       py::handle all_destinations, py::handle all_sources, py::handle all_sizes) {
  const std::vector<std::uint64_t> addresses = ToU64Vector(buffers);
  const FastSequence keys(all_keys);
  const FastSequence destinations(all_destinations);
  const FastSequence sources(all_sources);
  const FastSequence sizes(all_sizes);
  std::vector<RangesRequest> requests;
  std::vector<TextList> texts;
  std::vector<std::size_t> counts(destinations.size());
  for (std::size_t b = 0; b < destinations.size(); ++b) {
    const FastSequence inner_destinations(destinations[b]);
    counts[b] = inner_destinations.size();
    const bool outer_fits =
        b < addresses.size() && b < keys.size() && b < sources.size() && b < sizes.size();
    const TextList* names = outer_fits ? &texts.emplace_back(keys[b]) : nullptr;
    for (std::size_t k = 0; k < inner_destinations.size(); ++k) {
      RangesRequest& request = requests.emplace_back();
      request.destinations = ToU64Vector(inner_destinations[k]);
      if (names == nullptr || k >= names->size()) {
        continue;
      }
      const FastSequence inner_sources(sources[b]);
      const FastSequence inner_sizes(sizes[b]);
      if (k >= inner_sources.size() || k >= inner_sizes.size()) {
        continue;
      }
      request.buffer = addresses[b];
      request.key = (*names)[k];
      request.sources = ToU64Vector(inner_sources[k]);
      request.sizes = ToU64Vector(inner_sizes[k]);
    }
  }
  {
    const Unlocked unlocked;
    store.GetRanges(requests);
  }
  py::list result;
  std::size_t next = 0;
  for (const std::size_t count : counts) {
    py::list of_buffer;
    for (std::size_t k = 0; k < count; ++k) {
      of_buffer.append(py::cast(requests[next++].results));
    }
    result.append(of_buffer);
  }
  return result;
}

py::object GetBuffer(PyStore& store, const py::str& key) {
  const std::string_view text = ToText(key.ptr());
  std::vector<std::unique_ptr<ObjectBuffer>> buffers;
  {
    const Unlocked unlocked;
    buffers = store.GetBuffers(std::span(&text, 1));
  }
  return buffers.front() ? py::cast(std::move(buffers.front())) : py::none();
}

py::list GetBufferBatch(PyStore& store, py::handle keys) {
  const TextList texts(keys);
  std::vector<std::unique_ptr<ObjectBuffer>> buffers;
  {
    const Unlocked unlocked;
    buffers = store.GetBuffers(texts.views());
  }
  py::list handles;
  for (auto& buffer : buffers) {
    handles.append(buffer ? py::cast(std::move(buffer)) : py::none());
  }
  return handles;
}

}  // namespace

void DefineGets(StoreType& type) {
  type.def("get", &GetOne, "The value's bytes, b\"\" when there is none or it cannot be read.");
  type.def("get_batch", &GetBatch, "One bytes a key, b\"\" for those that cannot be read.");
  type.def("get_buffer", &GetBuffer,
           "The value as a BufferHandle without a further copy, None when there is none.");
  type.def("batch_get_buffer", &GetBufferBatch, "One BufferHandle or None a key.");
  type.def("get_into", &GetIntoOne, py::arg("key"), py::arg("buffer_ptr"), py::arg("size"),
           "Reads the value into registered memory; its length in bytes, or a negative code.");
  type.def("batch_get_into", &GetIntoMany, py::arg("keys"), py::arg("buffer_ptrs"),
           py::arg("sizes"),
           "Reads one value a key into registered memory; lengths in bytes or negative codes.");
  type.def(
      "batch_get_into_multi_buffers", &GetIntoMultiBuffers, py::arg("keys"),
      py::arg("all_buffer_ptrs"), py::arg("all_sizes"),
      py::arg("prefer_alloc_in_same_node") = false,
      "Reads each value into its buffers one after another; lengths in bytes or negative codes.");
  type.def(
      "get_into_ranges", &GetIntoRanges, py::arg("buffer_ptrs"), py::arg("all_keys"),
      py::arg("all_dst_offsets"), py::arg("all_src_offsets"), py::arg("all_sizes"),
      "Reads parts of values: per buffer, per key, per range the bytes read or a negative code.");
  type.def("register_buffer", &PyStore::RegisterBuffer, py::arg("buffer_ptr"), py::arg("size"),
           py::call_guard<Unlocked>(),
           "Lets calls without a copy use a range of memory; 0 or -600.");
  type.def("unregister_buffer", &PyStore::UnregisterBuffer, py::arg("buffer_ptr"),
           py::call_guard<Unlocked>(), "Takes a range back; 0, or -600 when none begins there.");
}

}  // namespace mooncake::integration
