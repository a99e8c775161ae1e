// Admin routes that look at objects, or remove them.
#include <map>
#include <optional>

#include "mooncake-store/src/server/admin_http.h"
#include "mooncake-store/src/server/admin_reply.h"

namespace mooncake::store {

namespace {

using SegmentsByNumber = std::map<SegmentNumber, QueriedSegment>;

SegmentsByNumber QueryAll(Master& master, Instant now) {
  QuerySegmentsReply reply;
  master.Handle(QuerySegmentsRequest{}, now, reply);
  SegmentsByNumber segments;
  for (QueriedSegment& segment : reply.segments) {
    const SegmentNumber number = segment.identity.number;
    segments.emplace(number, std::move(segment));
  }
  return segments;
}

Json RangeJson(const SegmentInfo& segment, const Extent& extent, std::uint64_t size_bytes) {
  return {{"size_", size_bytes},
          {"buffer_address_", segment.base_address + extent.offset_bytes},
          {"protocol_", segment.protocol},
          {"transport_endpoint_", segment.te_endpoint}};
}

// Nothing when a segment of it was unmounted meanwhile.
std::optional<Json> ReplicaJson(const SegmentsByNumber& segments, std::span<const Extent> extents,
                                std::uint64_t size_bytes) {
  Json ranges = Json::array();
  std::optional<Json> replica;
  for (const Extent& extent : extents) {
    const auto found = segments.find(extent.segment);
    if (found == segments.end() || found->second.identity.incarnation != extent.incarnation) {
      return std::nullopt;
    }
    const SegmentInfo& info = found->second.info;
    if (!replica) {
      replica = RangeJson(info, extent, size_bytes);
    }
    ranges.push_back(RangeJson(info, extent, extent.length_bytes));
  }
  if (replica && extents.size() > 1) {
    (*replica)["extents"] = std::move(ranges);
  }
  return replica;
}

Json ReplicasJson(const SegmentsByNumber& segments, const ObjectLocation& location,
                  const ReplicaTable& table) {
  Json replicas = Json::array();
  for (const Replica& replica : table.Replicas(location.replicas)) {
    if (replica.type != ReplicaType::kMemory) {
      continue;
    }
    if (auto json = ReplicaJson(segments, table.Extents(replica), location.size_bytes)) {
      replicas.push_back(std::move(*json));
    }
  }
  return replicas;
}

}  // namespace

HttpResponse AdminHttp::QueryKey(const HttpRequest& request) {
  const std::string_view key = request.Query("key").value_or("");
  if (key.empty()) {
    return ErrorReply(404, StoreCode::kObjectNotFound);
  }
  BatchGetReplicasRequest lookup;
  lookup.chain.total = 1;
  lookup.use = LeaseUse::kWhole;
  lookup.keys.push_back(key);
  BatchGetReplicasReply reply;
  const Instant now = clock_.Now();
  master_.Handle(lookup, now, reply);
  const StoreCode code = reply.code != StoreCode::kOk ? reply.code : reply.objects.front().code;
  if (code != StoreCode::kOk) {
    return ErrorReply(404, code);
  }
  return JsonReply(
      {{"success", true},
       {"data", ReplicasJson(QueryAll(master_, now), reply.objects.front(), reply.table)}});
}

HttpResponse AdminHttp::BatchQueryKeys(const HttpRequest& request) {
  BatchGetReplicasRequest lookup;
  std::string_view rest = request.Query("keys").value_or("");
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (comma != 0) {
      lookup.keys.push_back(rest.substr(0, comma));
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (lookup.keys.empty()) {
    return JsonReply({{"success", false}, {"error", "No keys provided. Use ?keys=key1,key2,..."}},
                     400);
  }
  BatchGetReplicasReply reply;
  const Instant now = clock_.Now();
  master_.Peek(lookup, now, reply);
  if (reply.code != StoreCode::kOk) {
    return ErrorReply(400, reply.code);
  }
  const SegmentsByNumber segments = QueryAll(master_, now);
  Json data = Json::object();
  for (std::size_t index = 0; index < lookup.keys.size(); ++index) {
    const ObjectLocation& location = reply.objects[index];
    const bool ok = location.code == StoreCode::kOk;
    data[std::string(lookup.keys[index])] = {
        {"ok", ok},
        {"error", ok ? Json() : Json(StoreCodeName(location.code))},
        {"values", ok ? ReplicasJson(segments, location, reply.table) : Json()},
        {"disk_values", nullptr},
        {"local_disk_values", nullptr},
        {"nof_values", nullptr}};
  }
  return JsonReply({{"success", true}, {"data", std::move(data)}});
}

HttpAnswer AdminHttp::GetAllKeys(const HttpRequest&) {
  return [this, sweep = ObjectSweep(), keys = std::vector<std::string>(),
          text = std::string()]() mutable -> std::optional<HttpResponse> {
    keys.clear();
    const bool done = master_.StepList(sweep, keys);
    for (const std::string& key : keys) {
      text += key;
      text += '\n';
    }
    return done ? std::optional(ListReply(std::move(text))) : std::nullopt;
  };
}

HttpAnswer AdminHttp::RemoveAll(const HttpRequest& request) {
  const std::string_view force = request.Query("force").value_or("");
  const RemoveAllRequest removal{.force = force == "true" || force == "1"};
  ObjectSweep sweep;
  const StoreCode code = Master::Begin(removal, sweep);
  return [this, removal, code, sweep = std::move(sweep)]() mutable -> std::optional<HttpResponse> {
    if (!master_.StepRemove(sweep, clock_.Now())) {
      return std::nullopt;
    }
    metrics_.Count(removal, RemoveManyReply{.code = code, .removed = sweep.removed});
    return JsonReply({{"success", true}, {"removed_count", sweep.removed}});
  };
}

}  // namespace mooncake::store
