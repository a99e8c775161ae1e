#include "mooncake-store/include/mooncake/store/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <ranges>
#include <utility>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/env.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/mapped_memory.h"
#include "mooncake-common/src/base/random.h"
#include "mooncake-store/src/client/client_parts.h"
#include "mooncake-store/src/client/failure.h"
#include "mooncake-store/src/client/key_operations.h"
#include "mooncake-store/src/client/key_window.h"
#include "mooncake-store/src/client/locate_operation.h"
#include "mooncake-store/src/client/lookup.h"
#include "mooncake-store/src/client/registered_buffers.h"
#include "mooncake-store/src/client/stock.h"

namespace mooncake::store {
namespace {

using Registrar = RegisteredBuffers::Registrar;

constexpr std::array<std::string_view, 2> kProtocols = {"tcp", "rdma"};

// The config's texts as views, as long as the config lives.
ReplicateConfigView ViewOf(const ReplicateConfig& config, std::string_view host_id) {
  ReplicateConfigView view;
  view.replica_num = config.replica_num;
  view.nof_replica_num = config.nof_replica_num;
  view.dfs_replica_num = config.dfs_replica_num;
  view.soft_pin_action = config.soft_pin_action;
  view.soft_pin_ttl_ms = config.soft_pin_ttl_ms;
  view.with_hard_pin = config.with_hard_pin;
  view.prefer_alloc_in_same_node = config.prefer_alloc_in_same_node;
  view.data_type = config.data_type;
  view.preferred_segment = config.preferred_segment;
  view.preferred_segments.assign(config.preferred_segments.begin(),
                                 config.preferred_segments.end());
  if (config.group_ids) {
    view.group_ids.assign(config.group_ids->begin(), config.group_ids->end());
  }
  view.host_id = host_id;
  return view;
}

// How the host is named to the master; empty = unknown, so that two hosts called localhost are not
// taken for one.
std::string HostIdOf(const std::string& host) {
  if (std::string named = EnvText("MC_STORE_HOST_ID"); !named.empty()) {
    return named;
  }
  return host.empty() || IsLoopbackHost(host) || IsWildcardHost(host) ? std::string{} : host;
}

Result<ClientOptions> OptionsOf(const ClientSettings& settings, const std::string& host, Rng& rng) {
  ClientOptions options;
  options.client = GenerateUuid(rng);
  options.tenant = settings.tenant;
  options.host_id = HostIdOf(host);
  MC_TRY_ASSIGN(options.descriptor_cache, EnvFlag("MC_STORE_DESCRIPTOR_CACHE"));
  MC_TRY_ASSIGN(options.put_wait, EnvDuration("MC_STORE_PUT_WAIT_MS"));
  MC_TRY_ASSIGN(const auto rpc_timeout, EnvTimeout("MC_RPC_TIMEOUT_MS"));
  options.rpc_timeout = rpc_timeout.value_or(std::chrono::hours(24));
  return options;
}

Result<StoreName> NameOf(const ClientSettings& settings, Rng& rng) {
  if (settings.engine) {
    return StoreName::OnEngine(settings.local_hostname, settings.engine->rpc_port());
  }
  MC_TRY_ASSIGN(const std::int64_t min, EnvInteger("MC_STORE_CLIENT_MIN_PORT"));
  MC_TRY_ASSIGN(const std::int64_t max, EnvInteger("MC_STORE_CLIENT_MAX_PORT"));
  return StoreName::Claim(settings.local_hostname,
                          {.min = static_cast<std::uint16_t>(min),
                           .max = static_cast<std::uint16_t>(max),
                           .set_by = "MC_STORE_CLIENT_MIN_PORT and MC_STORE_CLIENT_MAX_PORT"},
                          rng);
}

std::unexpected<StoreError> Refuse(std::string_view cause) {
  return std::unexpected(StoreError{
      .code = StoreCode::kInvalidParams,
      .text = FailureText(StoreCode::kInvalidParams, "set up the store client", "", cause)});
}

// Of an exchange that is over: what the master answered, or that it did not. A failure is
// remembered.
template <typename CallOperation>
std::expected<void, StoreError> Outcome(const CallOperation& operation, std::string_view verb,
                                        std::string_view what) {
  const StoreCode code =
      operation.code() != StoreCode::kOk ? operation.code() : operation.reply().code;
  if (code == StoreCode::kOk) {
    return {};
  }
  StoreError error{.code = code, .text = FailureText(code, verb, what, operation.cause())};
  RememberError(error.code, error.text);
  return std::unexpected(std::move(error));
}

// A removal of many: the count, or the code of what went wrong.
template <typename CallOperation>
std::int64_t CountOf(const CallOperation& operation, std::string_view verb, std::string_view what) {
  const auto outcome = Outcome(operation, verb, what);
  return outcome ? static_cast<std::int64_t>(operation.reply().removed)
                 : static_cast<std::int64_t>(outcome.error().code);
}

std::vector<ReplicaInfo> InfosOf(const Location& location) {
  std::vector<ReplicaInfo> infos;
  for (const LocatedReplica& replica : location.replicas) {
    const auto extents = location.Extents(replica);
    infos.push_back({.size_bytes = location.size_bytes,
                     .address = extents.front().address,
                     .endpoint = extents.front().segment->info.te_endpoint,
                     .extents = {extents.begin(), extents.end()}});
  }
  return infos;
}

}  // namespace

class Client::Impl {
 public:
  Impl(ClientOptions options, StoreName name)
      : parts(std::move(options), std::move(name)),
        puts(parts.core()),
        gets(parts.core()),
        exists(parts.core()),
        removes(parts.core()),
        locates(parts.core()) {}

  ~Impl() {
    // An engine that goes on must forget memory that its owner believes free.
    if (const auto buffers = registered.TakeAll(); !buffers.empty()) {
      static_cast<void>(parts.engine().UnregisterMemory(buffers, false));
    }
  }

  // Runs an operation that was started, and remembers what failed.
  template <typename T>
  void Run(T& operation) {
    parts.Run(operation);
    if (operation.failures().count() > 0) {
      RememberError(operation.failures().code(), operation.failures().Summary());
    }
  }

  ClientParts parts;
  RegisteredBuffers registered;
  Stock<PutOperation> puts;
  Stock<GetOperation> gets;
  Stock<ExistOperation> exists;
  Stock<RemoveOperation> removes;
  Stock<LocateOperation> locates;
};

std::expected<std::unique_ptr<Client>, StoreError> Client::Create(const ClientSettings& settings) {
  if (settings.local_hostname.empty()) {
    return Refuse("local_hostname is empty; give this host's name or address");
  }
  if (std::ranges::find(kProtocols, settings.protocol) == kProtocols.end()) {
    return Refuse(fmt::format("protocol '{}' is not known; use tcp", settings.protocol));
  }
  if (const auto logging = InitLoggingFromEnv(); !logging) {
    return Refuse(logging.error().message);
  }
  Rng rng = Rng::FromOs();
  auto name = NameOf(settings, rng);
  if (!name) {
    return Refuse(name.error().message);
  }
  auto options = OptionsOf(settings, name->host, rng);
  if (!options) {
    return Refuse(options.error().message);
  }
  auto impl = std::make_unique<Impl>(*std::move(options), *std::move(name));
  if (auto opened = impl->parts.Open(settings); !opened) {
    return std::unexpected(opened.error());
  }
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

void Client::Close() { impl_->parts.Close(); }

const Uuid& Client::id() const { return impl_->parts.core().options().client; }

const std::string& Client::hostname() const { return impl_->parts.name().text; }

Health Client::health() const {
  return impl_->parts.core().membership().master_reachable() ? Health::kHealthy
                                                             : Health::kMasterUnreachable;
}

std::vector<StoreCode> Client::Put(std::span<const PutItem> items, const ReplicateConfig& config,
                                   bool upsert) {
  auto put = impl_->puts.Take();
  put->Start(items, ViewOf(config, impl_->parts.core().options().host_id), upsert);
  impl_->Run(*put);
  return {put->results().begin(), put->results().end()};
}

std::vector<GetOperation::Result> Client::Get(std::span<const GetItem> items,
                                              DestinationProvider* provider) {
  auto get = impl_->gets.Take();
  get->Start(items, provider);
  impl_->Run(*get);
  return {get->results().begin(), get->results().end()};
}

GetOperation::Result Client::GetOne(const GetItem& item, DestinationProvider* provider) {
  auto get = impl_->gets.Take();
  get->Start(std::span(&item, 1), provider);
  impl_->Run(*get);
  return get->results().front();
}

std::vector<std::int32_t> Client::Exist(std::span<const std::string_view> keys) {
  auto exist = impl_->exists.Take();
  exist->Start(keys);
  impl_->Run(*exist);
  return {exist->results().begin(), exist->results().end()};
}

std::vector<StoreCode> Client::Remove(std::span<const std::string_view> keys, bool force) {
  auto remove = impl_->removes.Take();
  remove->Start(keys, force);
  impl_->Run(*remove);
  return {remove->results().begin(), remove->results().end()};
}

std::int64_t Client::RemoveByRegex(std::string_view pattern, bool force) {
  // What matches is not known here: no cached descriptor is safe.
  ClientCore& core = impl_->parts.core();
  core.cache().Clear();
  RemoveByRegexOperation remove(core);
  remove.Start({.caller = {}, .force = force, .pattern = pattern}, core.options().master_patience);
  impl_->parts.Run(remove);
  core.cache().Clear();
  return CountOf(remove, "remove keys that match", pattern);
}

std::int64_t Client::RemoveAll(bool force) {
  ClientCore& core = impl_->parts.core();
  core.cache().Clear();
  RemoveAllOperation remove(core);
  remove.Start({.caller = {}, .force = force}, core.options().master_patience);
  impl_->parts.Run(remove);
  core.cache().Clear();
  return CountOf(remove, "remove all keys", "");
}

std::vector<std::string> Client::ClearReplicas(std::span<const std::string_view> keys,
                                               std::string_view segment_name) {
  ClientCore& core = impl_->parts.core();
  std::vector<std::string> cleared;
  for (std::size_t first = 0; first < keys.size(); first += core.options().window_keys) {
    const auto window =
        keys.subspan(first, std::min<std::size_t>(core.options().window_keys, keys.size() - first));
    ReplicaClearOperation clear(core);
    const auto sent = std::views::transform(window, KeyToSend);
    clear.Start({.caller = {}, .segment_name = segment_name, .keys = {sent.begin(), sent.end()}},
                core.options().master_patience);
    impl_->parts.Run(clear);
    if (!Outcome(clear, "clear replicas of", window.front())) {
      break;
    }
    for (std::size_t i = 0; i < clear.reply().cleared.size() && i < window.size(); ++i) {
      if (clear.reply().cleared[i] != 0) {
        cleared.emplace_back(window[i]);
      }
    }
  }
  core.cache().Clear();
  return cleared;
}

std::vector<std::vector<ReplicaInfo>> Client::Replicas(std::span<const std::string_view> keys) {
  auto locate = impl_->locates.Take();
  locate->Start(keys);
  impl_->Run(*locate);
  std::vector<std::vector<ReplicaInfo>> all(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto& location = locate->results()[i].location;
    if (location) {
      all[i] = InfosOf(*location);
    }
  }
  return all;
}

std::expected<std::map<std::string, std::vector<ReplicaInfo>>, StoreError> Client::ReplicasByRegex(
    std::string_view pattern) {
  constexpr std::string_view kVerb = "locate keys that match";
  ClientCore& core = impl_->parts.core();
  GetReplicasByRegexOperation query(core);
  query.Start({.caller = {}, .pattern = pattern}, core.options().master_patience);
  impl_->parts.Run(query);
  if (auto outcome = Outcome(query, kVerb, pattern); !outcome) {
    return std::unexpected(std::move(outcome.error()));
  }
  const GetReplicasByRegexReply& found = query.reply();
  std::map<std::string, std::vector<ReplicaInfo>> all;
  std::vector<SegmentNumber> missing;
  const auto resolve = [&] {
    missing.clear();
    for (std::size_t i = 0; i < std::min(found.keys.size(), found.objects.size()); ++i) {
      all[found.keys[i]] = InfosOf(*Resolve(core, found.table, found.objects[i].replicas,
                                            found.objects[i].size_bytes, missing)
                                        .location);
    }
  };
  resolve();
  if (!missing.empty()) {
    QuerySegmentsOperation segments(core);
    segments.Start({.caller = {}, .numbers = missing}, core.options().master_patience);
    impl_->parts.Run(segments);
    if (auto outcome = Outcome(segments, kVerb, pattern); !outcome) {
      return std::unexpected(std::move(outcome.error()));
    }
    for (const QueriedSegment& segment : segments.reply().segments) {
      core.segments().Learn(segment);
    }
    resolve();
  }
  // What has left meanwhile is there no more.
  std::erase_if(all, [](const auto& one) { return one.second.empty(); });
  return all;
}

std::expected<std::vector<std::vector<std::string>>, StoreError> Client::HostsOf(
    std::span<const Uuid> clients) {
  ClientCore& core = impl_->parts.core();
  QuerySegmentsOperation segments(core);
  segments.Start({.caller = {}, .numbers = {}}, core.options().master_patience);
  impl_->parts.Run(segments);
  if (auto outcome = Outcome(segments, "ask for the hosts of clients", ""); !outcome) {
    return std::unexpected(std::move(outcome.error()));
  }
  std::map<Uuid, std::vector<std::string>> by_client;
  for (const QueriedSegment& segment : segments.reply().segments) {
    std::vector<std::string>& hosts = by_client[segment.owner];
    if (const auto endpoint = ParseHostPort(segment.info.te_endpoint);
        endpoint && std::ranges::find(hosts, endpoint->host) == hosts.end()) {
      hosts.push_back(endpoint->host);
    }
  }
  std::vector<std::vector<std::string>> all;
  for (const Uuid& client : clients) {
    const auto known = by_client.find(client);
    all.push_back(known == by_client.end() ? std::vector<std::string>() : known->second);
  }
  return all;
}

std::int64_t Client::Size(std::string_view key) {
  auto locate = impl_->locates.Take();
  locate->Start(std::span(&key, 1));
  impl_->Run(*locate);
  const auto& result = locate->results().front();
  return result.location ? static_cast<std::int64_t>(result.location->size_bytes)
                         : static_cast<std::int64_t>(result.code);
}

StoreCode Client::RegisterBuffer(void* address, std::uint64_t length_bytes) {
  const auto refuse = [&](std::string_view cause) {
    return RememberError(StoreCode::kInvalidParams,
                         FailureText(StoreCode::kInvalidParams, "register buffer",
                                     fmt::format("{} of {} bytes", address, length_bytes), cause));
  };
  MemoryAccess access = MemoryAccess::kWrite;
  auto mapped = CheckMapped(address, length_bytes, access);
  if (!mapped) {
    access = MemoryAccess::kRead;
    mapped = CheckMapped(address, length_bytes, access);
  }
  if (!mapped) {
    return refuse(mapped.error().message);
  }
  const bool by_user = impl_->parts.UserRegistered(address, length_bytes);
  if (!impl_->registered.Add(address, length_bytes, access,
                             by_user ? Registrar::kUser : Registrar::kStore)) {
    return refuse("it overlaps a buffer that is registered");
  }
  if (by_user) {
    return StoreCode::kOk;
  }
  const transfer::MemoryRegistration memory{
      .address = address, .length_bytes = length_bytes, .remote_accessible = false, .shared = {}};
  if (const auto registered = impl_->parts.engine().RegisterMemory(std::span(&memory, 1), false);
      !registered) {
    impl_->registered.Remove(address);
    return refuse(registered.error().message);
  }
  return StoreCode::kOk;
}

StoreCode Client::UnregisterBuffer(void* address) {
  const auto registrar = impl_->registered.Remove(address);
  if (!registrar) {
    return RememberError(
        StoreCode::kInvalidParams,
        FailureText(StoreCode::kInvalidParams, "unregister buffer", fmt::format("{}", address),
                    "no registered buffer begins there"));
  }
  if (*registrar == Registrar::kStore) {
    static_cast<void>(impl_->parts.engine().UnregisterMemory(std::span(&address, 1), false));
  }
  return StoreCode::kOk;
}

bool Client::IsRegistered(const void* address, std::uint64_t length_bytes,
                          MemoryAccess access) const {
  const LocalBuffer* const local = impl_->parts.local_buffer().get();
  return impl_->registered.Contains(address, length_bytes, access) ||
         (local != nullptr &&
          local->Contains(static_cast<const std::byte*>(address), length_bytes)) ||
         impl_->parts.UserRegistered(address, length_bytes);
}

const std::shared_ptr<LocalBuffer>& Client::local_buffer() const {
  return impl_->parts.local_buffer();
}

std::expected<Uuid, StoreError> Client::AllocateAndMount(std::uint64_t length_bytes) {
  auto mounted = impl_->parts.Mount(length_bytes);
  if (!mounted) {
    RememberError(mounted.error().code, mounted.error().text);
  }
  return mounted;
}

StoreCode Client::Unmount(const Uuid& segment, std::uint64_t grace_ms) {
  const StoreCode code =
      impl_->parts.Unmount(segment, grace_ms, impl_->parts.core().options().master_patience);
  if (code != StoreCode::kOk) {
    RememberError(code, FailureText(code, "unmount segment", segment.ToString(), ""));
  }
  return code;
}

}  // namespace mooncake::store
