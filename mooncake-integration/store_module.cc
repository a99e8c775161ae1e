// mooncake.store: the object store for Python. Argument checks and the interpreter lock only; the calls are py_store.h's.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/byte_size.h"
#include "mooncake-integration/engine_holder.h"
#include "mooncake-integration/py_bytes.h"
#include "mooncake-integration/py_sequence.h"
#include "mooncake-integration/py_store.h"
#include "mooncake-integration/store_types.h"
#include "mooncake-store/src/client/failure.h"

namespace py = pybind11;

namespace mooncake::integration {
namespace {

using store::Fragment;
using store::PutItem;
using store::RememberError;
using store::ReplicateConfig;
using store::SourcePiece;
using store::StoreCode;

constexpr int kInvalidParams = static_cast<int>(StoreCode::kInvalidParams);

std::byte* ToPointer(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): an address given by Python.
}

int Refuse(std::string_view verb, std::string_view cause) {
  return static_cast<int>(
      RememberError(StoreCode::kInvalidParams, store::FailureText(StoreCode::kInvalidParams, verb, "", cause)));
}

// Lists that should be as long as the keys and are not: an error a key.
std::vector<int> LengthsDiffer(std::size_t keys) {
  return std::vector<int>(keys, Refuse("check arguments", "the lists differ in length; give one entry a key"));
}

int FirstError(const std::vector<int>& codes) {
  const auto wrong = std::ranges::find_if(codes, [](int code) { return code != 0; });
  return wrong == codes.end() ? 0 : *wrong;
}

// ---- Set-up ----

store::ClientSettings MakeSettings(std::string local_hostname, std::string metadata_server, std::uint64_t segment,
                                   std::uint64_t buffer, std::string protocol, std::string devices,
                                   std::string master, std::string tenant) {
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
    settings.engine = engine.cast<InnerTransferEngine&>().engine;
  }
  const py::gil_scoped_release unlocked;
  return store.Setup(settings);
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
      return Refuse("set up the store", std::string(key) + ": " + size.error().message);
    }
    // Smaller than this is a unit left out rather than a wish.
    if (*size != 0 && *size < 1024) {
      return Refuse("set up the store", std::string(key) + " is " + std::to_string(*size) +
                                            " bytes; give 0 or at least 1024, or a unit such as '16MB'");
    }
    *field = *size;
  }
  for (const char* required : {"local_hostname", "metadata_server"}) {
    if (!config.contains(required)) {
      return Refuse("set up the store", std::string(required) + " is missing in the settings");
    }
  }
  settings.local_hostname = text("local_hostname", "");
  settings.metadata_server = text("metadata_server", "");
  settings.protocol = text("protocol", "tcp");
  settings.devices = text("rdma_devices", "");
  settings.master_address = text("master_server_addr", "127.0.0.1:50051");
  settings.tenant = text("tenant_id", "default");
  return SetUp(store, std::move(settings), py::none());
}

// ---- Putting ----

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

int PutOne(PyStore& store, const py::str& key, py::handle value, const ReplicateConfig& config, bool upsert) {
  Values values;
  values.Add(value);
  const PutItem item{.key = ToText(key.ptr()), .pieces = values.pieces()};
  const py::gil_scoped_release unlocked;
  return store.Put(std::span(&item, 1), config, upsert).front();
}

int PutParts(PyStore& store, const py::str& key, const py::args& parts, const ReplicateConfig& config, bool upsert) {
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
  const py::gil_scoped_release unlocked;
  return store.Put(std::span(&item, 1), config, upsert).front();
}

int PutBatch(PyStore& store, py::handle keys, py::handle values, const ReplicateConfig& config, bool upsert) {
  const TextList texts(keys);
  const FastSequence objects(values);
  if (texts.size() != objects.size()) {
    return Refuse("put a batch", "keys and values differ in number");
  }
  Values held;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    held.Add(objects[i]);
  }
  std::vector<PutItem> items(texts.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i] = {.key = texts[i], .pieces = held.pieces().subspan(i, 1)};
  }
  const py::gil_scoped_release unlocked;
  return items.empty() ? 0 : FirstError(store.Put(items, config, upsert));
}

int PutFromOne(PyStore& store, const py::str& key, std::uint64_t address, std::uint64_t size,
               const ReplicateConfig& config, bool upsert) {
  const SourcePiece piece{.memory = ToPointer(address), .length_bytes = size};
  const PutItem item{.key = ToText(key.ptr()), .pieces = std::span(&piece, 1)};
  const py::gil_scoped_release unlocked;
  return store.PutFrom(std::span(&item, 1), config, upsert).front();
}

int PutFromWithMetadata(PyStore& store, const py::str& key, std::uint64_t address, std::uint64_t metadata_address,
                        std::uint64_t size, std::uint64_t metadata_size, const ReplicateConfig& config) {
  // Metadata first, then the data; an empty part has no piece.
  std::vector<SourcePiece> pieces;
  for (const auto& [begin, length] : {std::pair{metadata_address, metadata_size}, std::pair{address, size}}) {
    if (length != 0) {
      pieces.push_back({.memory = ToPointer(begin), .length_bytes = length});
    }
  }
  const PutItem item{.key = ToText(key.ptr()), .pieces = pieces};
  const py::gil_scoped_release unlocked;
  return store.PutFrom(std::span(&item, 1), config, false).front();
}

std::vector<int> PutFromMany(PyStore& store, py::handle keys, py::handle addresses, py::handle sizes,
                             const ReplicateConfig& config, bool upsert) {
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
  const py::gil_scoped_release unlocked;
  return store.PutFrom(items, config, upsert);
}

// Lists of lists of numbers, one inner list a key. Empty outer vector if any pair of inner lists differs in length.
struct NestedPieces {
  std::vector<std::vector<std::uint64_t>> addresses;
  std::vector<std::vector<std::uint64_t>> sizes;
  bool fit = true;

  NestedPieces(std::size_t keys, py::handle all_addresses, py::handle all_sizes) {
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

std::vector<int> PutFromMultiBuffers(PyStore& store, py::handle keys, py::handle all_addresses, py::handle all_sizes,
                                     const ReplicateConfig& config) {
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
        pieces[i].push_back({.memory = ToPointer(nested.addresses[i][j]), .length_bytes = nested.sizes[i][j]});
      }
    }
    items[i] = {.key = texts[i], .pieces = pieces[i]};
  }
  const py::gil_scoped_release unlocked;
  return items.empty() ? std::vector<int>{} : store.PutFrom(items, config, false);
}

// ---- Getting ----

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
    const py::gil_scoped_release unlocked;
    size = store.Get(std::span(&text, 1), provider).front();
  }
  return size >= 0 ? provider.Take(0) : py::bytes();
}

py::list GetBatch(PyStore& store, py::handle keys) {
  const TextList texts(keys);
  BytesProvider provider(texts.size());
  std::vector<std::int64_t> sizes;
  {
    const py::gil_scoped_release unlocked;
    sizes = store.Get(texts.views(), provider);
  }
  py::list values;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    values.append(sizes[i] >= 0 ? provider.Take(i) : py::bytes());
  }
  if (sizes.empty()) {
    values.append(py::bytes());  // What users have always got for nothing.
  }
  return values;
}

std::int64_t GetIntoOne(PyStore& store, const py::str& key, std::uint64_t address, std::uint64_t size) {
  const std::string_view text = ToText(key.ptr());
  const std::vector<Fragment> fragments{{.memory = ToPointer(address), .object_offset = 0, .length_bytes = size}};
  const py::gil_scoped_release unlocked;
  return store.GetInto(std::span(&text, 1), std::span(&fragments, 1)).front();
}

std::vector<std::int64_t> GetIntoMany(PyStore& store, py::handle keys, py::handle addresses, py::handle sizes) {
  const TextList texts(keys);
  const FastSequence pointers(addresses);
  const FastSequence lengths(sizes);
  if (texts.size() != pointers.size() || texts.size() != lengths.size()) {
    const auto codes = LengthsDiffer(texts.size());
    return {codes.begin(), codes.end()};
  }
  std::vector<std::vector<Fragment>> fragments(texts.size());
  for (std::size_t i = 0; i < fragments.size(); ++i) {
    fragments[i].push_back(
        {.memory = ToPointer(ToU64(pointers[i])), .object_offset = 0, .length_bytes = ToU64(lengths[i])});
  }
  const py::gil_scoped_release unlocked;
  return store.GetInto(texts.views(), fragments);
}

std::vector<std::int64_t> GetIntoMultiBuffers(PyStore& store, py::handle keys, py::handle all_addresses,
                                              py::handle all_sizes, bool /*prefer_alloc_in_same_node*/) {
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
        fragments[i].push_back(
            {.memory = ToPointer(nested.addresses[i][j]), .object_offset = 0, .length_bytes = nested.sizes[i][j]});
      }
    }
  }
  const py::gil_scoped_release unlocked;
  return store.GetInto(texts.views(), fragments);
}

// Per buffer, per key: the results of its ranges. Where lists do not match, an error a destination offset.
py::list GetIntoRanges(PyStore& store, py::handle buffers, py::handle all_keys, py::handle all_destinations,
                       py::handle all_sources, py::handle all_sizes) {
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
    const bool outer_fits = b < addresses.size() && b < keys.size() && b < sources.size() && b < sizes.size();
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
    const py::gil_scoped_release unlocked;
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
    const py::gil_scoped_release unlocked;
    buffers = store.GetBuffers(std::span(&text, 1));
  }
  return buffers.front() ? py::cast(std::move(buffers.front())) : py::none();
}

py::list GetBufferBatch(PyStore& store, py::handle keys) {
  const TextList texts(keys);
  std::vector<std::unique_ptr<ObjectBuffer>> buffers;
  {
    const py::gil_scoped_release unlocked;
    buffers = store.GetBuffers(texts.views());
  }
  py::list handles;
  for (auto& buffer : buffers) {
    handles.append(buffer ? py::cast(std::move(buffer)) : py::none());
  }
  return handles;
}

// ---- The rest ----

py::dict MountResult(const std::expected<Uuid, int>& mounted, std::uint64_t size) {
  py::dict result;
  result["ret"] = mounted ? 0 : -1;
  result["segment_ids"] = mounted ? std::vector{mounted->ToString()} : std::vector<std::string>{};
  result["allocated_size"] = mounted ? size : 0;
  return result;
}

template <typename Type>
void DefineLifecycle(Type& type) {
  type.def(py::init<>());
  type.def(
      "setup",
      [](PyStore& store, std::string local_hostname, std::string metadata_server, std::uint64_t segment,
         std::uint64_t buffer, std::string protocol, std::string devices, std::string master, const py::object& engine,
         bool /*enable_ssd_offload*/, const std::string& /*ssd_offload_path*/, std::string tenant,
         bool /*enable_client_http_server*/, int /*client_http_port*/) {
        return SetUp(store,
                     MakeSettings(std::move(local_hostname), std::move(metadata_server), segment, buffer,
                                  std::move(protocol), std::move(devices), std::move(master), std::move(tenant)),
                     engine);
      },
      py::arg("local_hostname"), py::arg("metadata_server"), py::arg("global_segment_size"),
      py::arg("local_buffer_size"), py::arg("protocol"), py::arg("rdma_devices"), py::arg("master_server_addr"),
      py::arg("engine") = py::none(), py::arg("enable_ssd_offload") = false, py::arg("ssd_offload_path") = "",
      py::arg("tenant_id") = "default", py::arg("enable_client_http_server") = false,
      py::arg("client_http_port") = 9300,
      "Joins the pool: lends `global_segment_size` bytes and keeps `local_buffer_size` bytes for copying calls.\n"
      "Returns 0, or a negative code that last_error() explains. A second call closes first.");
  type.def("setup", &SetUpFromDict, py::arg("config"),
           "The same from a dict; sizes may be texts such as \"16MB\". Unknown keys are ignored.");
  type.def("close", &PyStore::Close, py::call_guard<py::gil_scoped_release>(),
           "Takes back what was lent and ends the client; 0, also when it was closed already.");
  type.def("health_check", &PyStore::HealthCheck, py::call_guard<py::gil_scoped_release>(),
           "0 healthy, 1 not set up or closed, 2 the master does not answer.");
  type.def("get_hostname", &PyStore::Hostname, py::call_guard<py::gil_scoped_release>(),
           "\"host:port\", the name of this client's segment.");
  type.def(
      "last_error",
      [](PyStore&) {
        const store::StoreError& error = store::LastError();
        return py::make_tuple(static_cast<int>(error.code), error.text);
      },
      "(code, text) of the last failure on this thread, (0, \"\") when there was none. A put of a key that existed\n"
      "returns 0 and leaves (-705, text) here.");
  type.def(
      "allocate_and_mount_segment",
      [](PyStore& store, std::uint64_t size, const std::string& /*protocol*/, const std::string& /*location*/) {
        std::expected<Uuid, int> mounted;
        {
          const py::gil_scoped_release unlocked;
          mounted = store.AllocateAndMount(size);
        }
        return MountResult(mounted, size);
      },
      py::arg("size"), py::arg("protocol") = "tcp", py::arg("location") = "",
      "Lends `size` bytes more: {\"ret\": 0 or -1, \"segment_ids\": [...], \"allocated_size\": bytes}.");
  const auto unmount = [](PyStore& store, const std::vector<std::string>& ids, std::uint64_t grace_seconds) {
    int first = 0;
    for (const std::string& id : ids) {
      if (store.Unmount(id, grace_seconds * 1000) != 0 && first == 0) {
        first = -1;
      }
    }
    return first;
  };
  for (const char* name : {"unmount_segment", "unmount_and_free_segment"}) {
    type.def(name, unmount, py::arg("segment_ids"), py::arg("grace_period_seconds") = 0,
             py::call_guard<py::gil_scoped_release>(), "Takes segments back; 0, or -1 if any failed.");
  }
}

template <typename Type>
void DefinePuts(Type& type) {
  const ReplicateConfig config;
  for (const auto& [name, upsert] : {std::pair{"put", false}, std::pair{"upsert", true}}) {
    const std::string verb = name;
    const bool replaces = upsert;
    type.def(
        verb.c_str(),
        [replaces](PyStore& store, const py::str& key, py::handle value, const ReplicateConfig& how) {
          return PutOne(store, key, value, how, replaces);
        },
        py::arg("key"), py::arg("value"), py::arg("config") = config,
        replaces ? "Stores a bytes-like value, in place of what the key had; 0 or a negative code."
                 : "Stores a bytes-like value; 0 or a negative code. A key that exists keeps its value, and 0 is returned.");
    type.def(
        (verb + "_parts").c_str(),
        [replaces](PyStore& store, const py::str& key, const py::args& parts, const ReplicateConfig& how) {
          return PutParts(store, key, parts, how, replaces);
        },
        py::arg("key"), py::arg("config") = config, "Stores the parts one after another as one value; 0 or a negative code.");
    type.def(
        (verb + "_batch").c_str(),
        [replaces](PyStore& store, py::handle keys, py::handle values, const ReplicateConfig& how) {
          return PutBatch(store, keys, values, how, replaces);
        },
        py::arg("keys"), py::arg("values"), py::arg("config") = config,
        "Stores one value a key; 0, or the first negative code.");
    type.def(
        (verb + "_from").c_str(),
        [replaces](PyStore& store, const py::str& key, std::uint64_t address, std::uint64_t size,
                   const ReplicateConfig& how) { return PutFromOne(store, key, address, size, how, replaces); },
        py::arg("key"), py::arg("buffer_ptr"), py::arg("size"), py::arg("config") = config,
        "Stores `size` bytes of registered memory without a copy; 0 or a negative code.");
    type.def(
        ("batch_" + verb + "_from").c_str(),
        [replaces](PyStore& store, py::handle keys, py::handle addresses, py::handle sizes,
                   const ReplicateConfig& how) { return PutFromMany(store, keys, addresses, sizes, how, replaces); },
        py::arg("keys"), py::arg("buffer_ptrs"), py::arg("sizes"), py::arg("config") = config,
        "Stores registered memory, one range a key; a code a key.");
  }
  type.def("put_from_with_metadata", &PutFromWithMetadata, py::arg("key"), py::arg("buffer_ptr"),
           py::arg("metadata_buffer_ptr"), py::arg("size"), py::arg("metadata_size"), py::arg("config") = config,
           "Stores metadata bytes followed by data bytes, both in registered memory; 0 or a negative code.");
  type.def("batch_put_from_multi_buffers", &PutFromMultiBuffers, py::arg("keys"), py::arg("all_buffer_ptrs"),
           py::arg("all_sizes"), py::arg("config") = config,
           "Stores for each key its buffers one after another; a code a key.");
}

template <typename Type>
void DefineGets(Type& type) {
  type.def("get", &GetOne, "The value's bytes, b\"\" when there is none or it cannot be read.");
  type.def("get_batch", &GetBatch, "One bytes a key, b\"\" for those that cannot be read.");
  type.def("get_buffer", &GetBuffer, "The value as a BufferHandle without a further copy, None when there is none.");
  type.def("batch_get_buffer", &GetBufferBatch, "One BufferHandle or None a key.");
  type.def("get_into", &GetIntoOne, py::arg("key"), py::arg("buffer_ptr"), py::arg("size"),
           "Reads the value into registered memory; its length in bytes, or a negative code.");
  type.def("batch_get_into", &GetIntoMany, py::arg("keys"), py::arg("buffer_ptrs"), py::arg("sizes"),
           "Reads one value a key into registered memory; lengths in bytes or negative codes.");
  type.def("batch_get_into_multi_buffers", &GetIntoMultiBuffers, py::arg("keys"), py::arg("all_buffer_ptrs"),
           py::arg("all_sizes"), py::arg("prefer_alloc_in_same_node") = false,
           "Reads each value into its buffers one after another; lengths in bytes or negative codes.");
  type.def("get_into_ranges", &GetIntoRanges, py::arg("buffer_ptrs"), py::arg("all_keys"), py::arg("all_dst_offsets"),
           py::arg("all_src_offsets"), py::arg("all_sizes"),
           "Reads parts of values: per buffer, per key, per range the bytes read or a negative code.");
  type.def("register_buffer", &PyStore::RegisterBuffer, py::arg("buffer_ptr"), py::arg("size"),
           py::call_guard<py::gil_scoped_release>(), "Lets calls without a copy use a range of memory; 0 or -600.");
  type.def("unregister_buffer", &PyStore::UnregisterBuffer, py::arg("buffer_ptr"),
           py::call_guard<py::gil_scoped_release>(), "Takes a range back; 0, or -600 when none begins there.");
}

template <typename Type>
void DefineKeys(Type& type) {
  type.def("is_exist",
           [](PyStore& store, const py::str& key) {
             const std::string_view text = ToText(key.ptr());
             const py::gil_scoped_release unlocked;
             return store.Exist(std::span(&text, 1)).front();
           },
           "1 or 0, or a negative code. Pins the object for the lease.");
  type.def(
      "batch_is_exist",
      [](PyStore& store, py::handle keys) {
        const TextList texts(keys);
        const py::gil_scoped_release unlocked;
        return texts.size() == 0 ? std::vector<int>{} : store.Exist(texts.views());
      },
      py::arg("keys"), "1, 0 or a negative code a key. Pins the objects for the lease.");
  type.def("get_size",
           [](PyStore& store, const py::str& key) {
             const std::string_view text = ToText(key.ptr());
             const py::gil_scoped_release unlocked;
             return store.Size(text);
           },
           "Bytes of the value, or a negative code.");
  type.def(
      "remove",
      [](PyStore& store, const py::str& key, bool force) {
        const std::string_view text = ToText(key.ptr());
        const py::gil_scoped_release unlocked;
        return store.Remove(std::span(&text, 1), force).front();
      },
      py::arg("key"), py::arg("force") = false, "Removes an object; 0, -704 when there is none, -706 while it is leased.");
  type.def(
      "batch_remove",
      [](PyStore& store, py::handle keys, bool force) {
        const TextList texts(keys);
        const py::gil_scoped_release unlocked;
        return texts.size() == 0 ? std::vector<int>{} : store.Remove(texts.views(), force);
      },
      py::arg("keys"), py::arg("force") = false, "Removes objects; a code a key.");
  type.def("remove_by_regex", &PyStore::RemoveByRegex, py::arg("regex_pattern"), py::arg("force") = false,
           py::call_guard<py::gil_scoped_release>(),
           "Removes the objects whose key holds a match of an ECMAScript pattern; how many, or a negative code.");
  type.def("remove_all", &PyStore::RemoveAll, py::arg("force") = false, py::call_guard<py::gil_scoped_release>(),
           "Removes all objects that are not leased; how many, or a negative code.");
  type.def(
      "get_replica_desc",
      [](PyStore& store, const py::str& key) {
        const std::string_view text = ToText(key.ptr());
        std::vector<std::vector<store::ReplicaInfo>> replicas;
        {
          const py::gil_scoped_release unlocked;
          replicas = store.Replicas(std::span(&text, 1));
        }
        return ToDescriptors(replicas.front());
      },
      py::arg("key"), "Where the object lies: one ReplicaDescriptor a replica, [] when there is none.");
  type.def(
      "batch_get_replica_desc",
      [](PyStore& store, py::handle keys) {
        const TextList texts(keys);
        std::vector<std::vector<store::ReplicaInfo>> replicas;
        if (texts.size() > 0) {
          const py::gil_scoped_release unlocked;
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
        const py::gil_scoped_release unlocked;
        return texts.size() == 0 ? std::vector<std::string>{} : store.ClearReplicas(texts.views(), segment_name);
      },
      py::arg("keys"), py::arg("segment_name") = "",
      "Drops what this client wrote: whole objects, or their replicas on one segment; the keys that were cleared.");
}

}  // namespace
}  // namespace mooncake::integration

PYBIND11_MODULE(store, module) {
  using mooncake::integration::ObjectBuffer;
  using mooncake::integration::PyStore;

  module.doc() = "Objects in a pool of memory that all clients lend.";
  mooncake::integration::DefineStoreTypes(module);

  py::class_<ObjectBuffer>(module, "BufferHandle", py::buffer_protocol(), "The bytes of one object, writable, one copy.")
      .def_buffer([](ObjectBuffer& buffer) {
        return py::buffer_info(reinterpret_cast<std::int8_t*>(buffer.bytes().data()),
                               static_cast<py::ssize_t>(buffer.bytes().size()));
      })
      .def("ptr", [](const ObjectBuffer& buffer) { return reinterpret_cast<std::uint64_t>(buffer.bytes().data()); },
           "Address of the first byte.")
      .def("size", [](const ObjectBuffer& buffer) { return buffer.bytes().size(); }, "Length in bytes.")
      .def("__len__", [](const ObjectBuffer& buffer) { return buffer.bytes().size(); });

  auto type = py::class_<PyStore, std::shared_ptr<PyStore>>(
      module, "MooncakeDistributedStore",
      "A client of the store. All calls may be made from many threads at once and let go of the interpreter lock.");
  mooncake::integration::DefineLifecycle(type);
  mooncake::integration::DefinePuts(type);
  mooncake::integration::DefineGets(type);
  mooncake::integration::DefineKeys(type);
  mooncake::integration::DefineTasks(type);

  // Threads of stores that nobody closed must end before the process takes its libraries down.
  py::module_::import("atexit").attr("register")(py::cpp_function(&PyStore::CloseAll, py::call_guard<py::gil_scoped_release>()));
}
