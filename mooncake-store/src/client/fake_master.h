// A master in a page, for tests of the client: correct, naive, and ready to misbehave on request.
// Every version gets fresh bytes of a segment and nothing is ever reused, so that only the client's
// own decisions are under test.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-store/src/client/operation.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

class FakeMaster {
 public:
  struct Object {
    std::uint64_t version = 0;
    std::uint64_t size = 0;
    bool from_put = true;
    std::vector<std::vector<Extent>> replicas;
  };
  struct Open {
    Object object;
    Uuid client;
    std::uint64_t chain_id = 0;
  };
  struct MountedSegment {
    SegmentInfo info;
    Uuid owner;
    std::uint64_t incarnation = 0;
    std::uint64_t next_offset = 0;
    std::vector<std::byte> memory;
  };

  // A segment with memory of its own; its number.
  SegmentNumber Mount(const std::string& name, std::uint64_t size, const Uuid& owner,
                      const std::string& host_id = "") {
    auto& segment = segments[next_number];
    segment.memory.resize(size);
    segment.info = SegmentInfo{.id = Uuid{1, next_number},
                               .name = name,
                               .base_address = 0x100000000ULL * (next_number + 1),
                               .size_bytes = size,
                               .te_endpoint = name,
                               .protocol = "tcp",
                               .host_id = host_id};
    segment.owner = owner;
    segment.incarnation = ++next_incarnation;
    return next_number++;
  }

  // Makes `key` exist with a replica on each of `where`, cut into extents of at most
  // `extent_bytes`.
  Object& Make(const std::string& key, std::span<const std::byte> bytes,
               const std::vector<SegmentNumber>& where, std::uint64_t extent_bytes = UINT64_MAX) {
    Object object = Place(bytes.size(), where, extent_bytes);
    for (const auto& replica : object.replicas) {
      std::uint64_t done = 0;
      for (const Extent& extent : replica) {
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(done), extent.length_bytes,
                    segments[extent.segment].memory.begin() +
                        static_cast<std::ptrdiff_t>(extent.offset_bytes));
        done += extent.length_bytes;
      }
    }
    return objects[key] = object;
  }

  std::byte* At(std::uint64_t address) {
    auto& segment = segments.at(static_cast<SegmentNumber>(address / 0x100000000ULL - 1));
    return segment.memory.data() + (address - segment.info.base_address);
  }

  // Carries out the call. Its reply is filled in.
  void Serve(const MasterCall& call) {
    std::visit(
        [this](const auto& exchange) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(exchange)>, std::monostate>) {
            Handle(*exchange.request, *exchange.reply);
          }
        },
        call);
  }

  std::map<SegmentNumber, MountedSegment> segments;
  std::map<std::string, Object, std::less<>> objects;
  std::map<std::string, Open, std::less<>> open;
  std::vector<SegmentIdentity> failed_reads;
  std::vector<SegmentInfo> remounted;
  std::vector<SegmentNumber> place_on;  // Where puts go; empty = the first segment.
  std::uint64_t lease_ttl_ms = 10'000;
  std::uint64_t view = 1;
  ClientStatus status = ClientStatus::kOk;
  std::vector<Uuid> unmounted;
  int full_times = 0;  // So many more starts find no room.
  FullHint full;
  std::uint64_t cache_hits = 0;
  std::uint64_t next_version = 1;
  std::uint64_t next_incarnation = 0;
  SegmentNumber next_number = 0;

 private:
  Object Place(std::uint64_t size, const std::vector<SegmentNumber>& where,
               std::uint64_t extent_bytes = UINT64_MAX) {
    Object object{.version = next_version++, .size = size, .replicas = {}};
    for (const SegmentNumber number : where) {
      auto& segment = segments.at(number);
      auto& replica = object.replicas.emplace_back();
      for (std::uint64_t done = 0; done < size;) {
        const std::uint64_t length = std::min(size - done, extent_bytes);
        replica.push_back(Extent{.segment = number,
                                 .incarnation = segment.incarnation,
                                 .offset_bytes = segment.next_offset,
                                 .length_bytes = length});
        segment.next_offset += length;
        done += length;
      }
    }
    return object;
  }

  static ReplicaRange Append(const Object& object, ReplicaTable& table) {
    const ReplicaRange range{.first = static_cast<std::uint32_t>(table.replicas.size()),
                             .count = static_cast<std::uint32_t>(object.replicas.size())};
    for (const auto& replica : object.replicas) {
      table.replicas.push_back(
          Replica{.first_extent = static_cast<std::uint32_t>(table.extents.size()),
                  .extent_count = static_cast<std::uint32_t>(replica.size())});
      table.extents.insert(table.extents.end(), replica.begin(), replica.end());
    }
    return range;
  }

  void Handle(const PingRequest&, PingReply& reply) {
    reply = {.view_version = view, .status = status, .client_ttl_ms = 10'000};
  }
  void Handle(const MountSegmentRequest&, MountSegmentReply& reply) { reply = {}; }
  void Handle(const ReMountSegmentsRequest& request, ReMountSegmentsReply& reply) {
    remounted = request.segments;
    reply.segments.assign(request.segments.size(), {});
    status = ClientStatus::kOk;
  }
  void Handle(const UnmountSegmentRequest& request, UnmountSegmentReply& reply) {
    unmounted.push_back(request.segment);
    reply = {};
  }
  void Handle(const QuerySegmentsRequest& request, QuerySegmentsReply& reply) {
    reply.segments.clear();
    for (const SegmentNumber number : request.numbers) {
      if (const auto found = segments.find(number); found != segments.end()) {
        reply.segments.push_back(
            QueriedSegment{.identity = {.number = number, .incarnation = found->second.incarnation},
                           .info = found->second.info,
                           .owner = found->second.owner,
                           .status = SegmentStatus::kOk});
      }
    }
  }
  void Handle(const BatchExistRequest& request, BatchExistReply& reply) {
    reply.exists.clear();
    for (const auto key : request.keys) {
      reply.exists.push_back(static_cast<std::uint8_t>(objects.contains(key)));
    }
  }
  void Handle(const BatchGetReplicasRequest& request, BatchGetReplicasReply& reply) {
    reply.Clear();
    reply.code = StoreCode::kOk;
    reply.lease_ttl_ms = lease_ttl_ms;
    cache_hits += request.caller.cache_hits;
    for (const auto key : request.keys) {
      const auto found = objects.find(key);
      if (found == objects.end()) {
        reply.objects.push_back({.code = StoreCode::kObjectNotFound});
        continue;
      }
      reply.objects.push_back({.from_put = found->second.from_put,
                               .size_bytes = found->second.size,
                               .version = found->second.version,
                               .replicas = Append(found->second, reply.table)});
    }
  }
  void Handle(const GetReplicasByRegexRequest&, GetReplicasByRegexReply&) {}
  void Handle(const BatchPutStartRequest& request, BatchPutStartReply& reply) {
    reply.Clear();
    reply.code = StoreCode::kOk;
    const bool no_room = full_times > 0;
    full_times -= static_cast<int>(no_room);
    for (std::size_t i = 0; i < request.keys.size(); ++i) {
      const std::string key(request.keys[i]);
      const auto writing = open.find(key);
      if (writing != open.end() && writing->second.chain_id == request.chain.chain_id) {
        reply.results.push_back({.version = writing->second.object.version,
                                 .replicas = Append(writing->second.object, reply.table)});
      } else if (!request.upsert && (objects.contains(key) || writing != open.end())) {
        reply.results.push_back({.code = StoreCode::kObjectAlreadyExists});
      } else if (no_room) {
        reply.full = full;
        reply.results.push_back({.code = StoreCode::kNoAvailableHandle});
      } else {
        Object object = Place(request.sizes_bytes[i],
                              place_on.empty() ? std::vector<SegmentNumber>{0} : place_on);
        object.from_put = !request.upsert;
        reply.results.push_back(
            {.version = object.version, .replicas = Append(object, reply.table)});
        open[key] = {
            .object = object, .client = request.caller.client, .chain_id = request.chain.chain_id};
      }
    }
  }
  void Handle(const BatchPutEndRequest& request, BatchPutEndReply& reply) {
    reply.Clear();
    reply.code = StoreCode::kOk;
    for (std::size_t i = 0; i < request.keys.size(); ++i) {
      const PutEnding& ending = request.endings[i];
      const auto found = open.find(request.keys[i]);
      const auto done = objects.find(request.keys[i]);
      if (found == open.end() ||
          (ending.version != 0 && found->second.object.version != ending.version)) {
        const bool again =
            ending.success && done != objects.end() && done->second.version == ending.version;
        reply.codes.push_back(again ? StoreCode::kOk : StoreCode::kObjectNotFound);
        continue;
      }
      if (ending.success) {
        objects[found->first] = found->second.object;
      }
      open.erase(found);
      reply.codes.push_back(StoreCode::kOk);
    }
  }
  void Handle(const BatchRemoveRequest& request, BatchRemoveReply& reply) {
    reply.Clear();
    reply.code = StoreCode::kOk;
    for (const auto key : request.keys) {
      const auto found = objects.find(key);
      reply.codes.push_back(found == objects.end() ? StoreCode::kObjectNotFound : StoreCode::kOk);
      if (found != objects.end()) {
        objects.erase(found);
      }
    }
  }
  void Handle(const RemoveByRegexRequest&, RemoveManyReply& reply) { reply = {}; }
  void Handle(const RemoveAllRequest&, RemoveManyReply& reply) {
    reply = {.removed = objects.size()};
    objects.clear();
  }
  void Handle(const BatchReplicaClearRequest&, BatchReplicaClearReply&) {}
  void Handle(const ReportFailedReadsRequest& request, ReportFailedReadsReply& reply) {
    reply = {};
    failed_reads.insert(failed_reads.end(), request.segments.begin(), request.segments.end());
  }
};

}  // namespace mooncake::store
