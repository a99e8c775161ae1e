// Replies in FlatBuffers: one table for all, of which each message uses the fields that it has.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "mooncake-store/src/protocol/wire_parts.h"

namespace mooncake::store::wire {

inline Offset<ReplicaTable> WriteTable(Builder& builder, const store::ReplicaTable& table) {
  if (table.replicas.empty()) {
    return {};
  }
  const auto replicas =
      Structs<Replica>(builder, table.replicas, [](const store::Replica& replica) {
        return Replica(replica.first_extent, replica.extent_count,
                       static_cast<std::uint8_t>(replica.type));
      });
  const auto extents = Structs<Extent>(builder, table.extents, [](const store::Extent& extent) {
    return Extent(extent.segment, extent.incarnation, extent.offset_bytes, extent.length_bytes);
  });
  return CreateReplicaTable(builder, replicas, extents);
}
inline Result<void> ReadTable(const ReplicaTable* wire, store::ReplicaTable& table) {
  table.Clear();
  if (wire == nullptr) {
    return {};
  }
  if (wire->extents() != nullptr) {
    table.extents.reserve(wire->extents()->size());
    for (const Extent* extent : *wire->extents()) {
      table.extents.push_back({.segment = extent->segment(),
                               .incarnation = extent->incarnation(),
                               .offset_bytes = extent->offset_bytes(),
                               .length_bytes = extent->length_bytes()});
    }
  }
  if (wire->replicas() != nullptr) {
    table.replicas.reserve(wire->replicas()->size());
    for (const Replica* replica : *wire->replicas()) {
      if (replica->type() > static_cast<std::uint8_t>(ReplicaType::kNofSsd)) {
        return Malformed("a replica of an unknown type");
      }
      table.replicas.push_back({.first_extent = replica->first_extent(),
                                .extent_count = replica->extent_count(),
                                .type = static_cast<ReplicaType>(replica->type())});
    }
  }
  return {};
}

inline ObjectLocation ToWire(const store::ObjectLocation& object) {
  return {static_cast<std::int32_t>(object.code),
          object.data_type,
          object.from_put,
          object.has_checksum,
          object.size_bytes,
          object.version,
          object.checksum,
          object.replicas.first,
          object.replicas.count};
}

template <typename M>
Offset<Reply> WriteReply(Builder& builder, const M& message) {
  Offset<flatbuffers::Vector<std::int32_t>> codes;
  Offset<flatbuffers::Vector<std::uint8_t>> flags;
  Offset<flatbuffers::Vector<const ObjectLocation*>> objects;
  Offset<flatbuffers::Vector<const PutStartResult*>> results;
  Offset<ReplicaTable> table;
  Offset<Texts> keys;
  Offset<flatbuffers::String> version;
  Offset<flatbuffers::Vector<Offset<MountResult>>> mounts;
  Offset<flatbuffers::Vector<Offset<QueriedSegment>>> segments;
  if constexpr (requires { message.codes; }) {
    codes = Numbers<std::int32_t>(builder, message.codes);
  }
  if constexpr (requires { message.exists; }) {
    flags = Numbers<std::uint8_t>(builder, message.exists);
  }
  if constexpr (requires { message.cleared; }) {
    flags = Numbers<std::uint8_t>(builder, message.cleared);
  }
  if constexpr (requires { message.objects; }) {
    objects =
        Structs<ObjectLocation>(builder, message.objects,
                                [](const store::ObjectLocation& object) { return ToWire(object); });
  }
  if constexpr (requires { message.results; }) {
    results =
        Structs<PutStartResult>(builder, message.results, [](const store::PutStartResult& result) {
          return PutStartResult(static_cast<std::int32_t>(result.code), result.version,
                                result.replicas.first, result.replicas.count);
        });
  }
  if constexpr (requires { message.table; }) {
    table = WriteTable(builder, message.table);
  }
  if constexpr (requires { message.keys; }) {
    keys = WriteTexts(builder, message.keys);
  }
  if constexpr (requires {
                  { message.version } -> std::convertible_to<const std::string&>;
                }) {
    version = Text(builder, message.version);
  }
  if constexpr (requires { message.identity; }) {
    const SegmentIdentity identity = ToWire(message.identity);
    const auto one = CreateMountResult(builder, static_cast<std::int32_t>(message.code), &identity);
    mounts = builder.CreateVector(&one, 1);
  }
  if constexpr (requires {
                  {
                    message.segments
                  } -> std::convertible_to<const std::vector<MountSegmentReply>&>;
                }) {
    std::vector<Offset<MountResult>> offsets;
    for (const MountSegmentReply& mount : message.segments) {
      const SegmentIdentity identity = ToWire(mount.identity);
      offsets.push_back(
          CreateMountResult(builder, static_cast<std::int32_t>(mount.code), &identity));
    }
    mounts = builder.CreateVector(offsets);
  }
  if constexpr (requires {
                  {
                    message.segments
                  } -> std::convertible_to<const std::vector<store::QueriedSegment>&>;
                }) {
    std::vector<Offset<QueriedSegment>> offsets;
    for (const store::QueriedSegment& segment : message.segments) {
      const auto info = WriteSegment(builder, segment.info);
      const SegmentIdentity identity = ToWire(segment.identity);
      const Uuid owner = ToWire(segment.owner);
      offsets.push_back(CreateQueriedSegment(builder, &identity, info, &owner,
                                             static_cast<std::uint8_t>(segment.status)));
    }
    segments = builder.CreateVector(offsets);
  }

  ReplyBuilder reply(builder);
  reply.add_code(static_cast<std::int32_t>(message.code));
  reply.add_codes(codes);
  reply.add_flags(flags);
  reply.add_objects(objects);
  reply.add_results(results);
  reply.add_table(table);
  reply.add_keys(keys);
  reply.add_version(version);
  reply.add_mounts(mounts);
  reply.add_segments(segments);
  if constexpr (requires { message.lease_ttl_ms; }) {
    reply.add_lease_ttl_ms(message.lease_ttl_ms);
  }
  if constexpr (requires { message.full; }) {
    const FullHint full(message.full.retry_after_ms, message.full.leased_bytes,
                        message.full.pinned_bytes, message.full.in_flight_bytes);
    reply.add_full(&full);
  }
  if constexpr (requires { message.removed; }) {
    reply.add_removed(message.removed);
  }
  if constexpr (requires { message.client_ttl_ms; }) {
    reply.add_view_version(message.view_version);
    reply.add_client_status(static_cast<std::uint8_t>(message.status));
    reply.add_client_ttl_ms(message.client_ttl_ms);
  }
  return reply.Finish();
}

template <typename Wire, typename T, typename Convert>
void ReadStructs(const flatbuffers::Vector<const Wire*>* wire, std::vector<T>& values,
                 Convert convert) {
  values.clear();
  if (wire == nullptr) {
    return;
  }
  values.reserve(wire->size());
  for (const Wire* value : *wire) {
    values.push_back(convert(*value));
  }
}
inline void ReadFlags(const flatbuffers::Vector<std::uint8_t>* wire,
                      std::vector<std::uint8_t>& flags) {
  flags.clear();
  if (wire != nullptr) {
    flags.assign(wire->begin(), wire->end());
  }
}

inline store::ObjectLocation FromWire(const ObjectLocation& object) {
  return {.code = static_cast<StoreCode>(object.code()),
          .data_type = object.data_type(),
          .from_put = object.from_put(),
          .has_checksum = object.has_checksum(),
          .size_bytes = object.size_bytes(),
          .version = object.version(),
          .checksum = object.checksum(),
          .replicas = {.first = object.first_replica(), .count = object.replica_count()}};
}

template <typename M>
Result<void> ReadReply(const Reply& wire, M& message) {
  message.code = static_cast<StoreCode>(wire.code());
  if constexpr (requires { message.codes; }) {
    message.codes.clear();
    if (wire.codes() != nullptr) {
      for (const std::int32_t code : *wire.codes()) {
        message.codes.push_back(static_cast<StoreCode>(code));
      }
    }
  }
  if constexpr (requires { message.exists; }) {
    ReadFlags(wire.flags(), message.exists);
  }
  if constexpr (requires { message.cleared; }) {
    ReadFlags(wire.flags(), message.cleared);
  }
  if constexpr (requires { message.table; }) {
    MC_TRY(ReadTable(wire.table(), message.table));
  }
  if constexpr (requires { message.objects; }) {
    ReadStructs(wire.objects(), message.objects,
                [](const ObjectLocation& object) { return FromWire(object); });
  }
  if constexpr (requires { message.results; }) {
    ReadStructs(wire.results(), message.results, [](const PutStartResult& result) {
      return store::PutStartResult{
          .code = static_cast<StoreCode>(result.code()),
          .version = result.version(),
          .replicas = {.first = result.first_replica(), .count = result.replica_count()}};
    });
  }
  if constexpr (requires { message.full; }) {
    message.full = {};
    if (const FullHint* full = wire.full()) {
      message.full = {.retry_after_ms = full->retry_after_ms(),
                      .leased_bytes = full->leased_bytes(),
                      .pinned_bytes = full->pinned_bytes(),
                      .in_flight_bytes = full->in_flight_bytes()};
    }
  }
  if constexpr (requires { message.keys; }) {
    MC_TRY(ReadTexts(wire.keys(), message.keys));
  }
  if constexpr (requires {
                  { message.version } -> std::convertible_to<const std::string&>;
                }) {
    message.version = View(wire.version());
  }
  if constexpr (requires { message.identity; }) {
    if (wire.mounts() == nullptr || wire.mounts()->size() != 1) {
      return Malformed("not one mounted segment");
    }
    message.identity = FromWire(wire.mounts()->Get(0)->identity());
  }
  if constexpr (requires {
                  {
                    message.segments
                  } -> std::convertible_to<const std::vector<MountSegmentReply>&>;
                }) {
    message.segments.clear();
    if (wire.mounts() != nullptr) {
      for (const MountResult* mount : *wire.mounts()) {
        message.segments.push_back({.code = static_cast<StoreCode>(mount->code()),
                                    .identity = FromWire(mount->identity())});
      }
    }
  }
  if constexpr (requires {
                  {
                    message.segments
                  } -> std::convertible_to<const std::vector<store::QueriedSegment>&>;
                }) {
    message.segments.clear();
    const flatbuffers::uoffset_t count = wire.segments() == nullptr ? 0 : wire.segments()->size();
    for (flatbuffers::uoffset_t i = 0; i < count; ++i) {
      const QueriedSegment& queried = *wire.segments()->Get(i);
      if (queried.status() > static_cast<std::uint8_t>(SegmentStatus::kUnmounting)) {
        return Malformed("an unknown segment status");
      }
      store::QueriedSegment& segment = message.segments.emplace_back();
      segment.identity = FromWire(queried.identity());
      segment.owner = FromWire(queried.owner());
      segment.status = static_cast<SegmentStatus>(queried.status());
      MC_TRY(ReadSegment(queried.info(), segment.info));
    }
  }
  if constexpr (requires { message.lease_ttl_ms; }) {
    message.lease_ttl_ms = wire.lease_ttl_ms();
  }
  if constexpr (requires { message.removed; }) {
    message.removed = wire.removed();
  }
  if constexpr (requires { message.client_ttl_ms; }) {
    if (wire.client_status() > static_cast<std::uint8_t>(ClientStatus::kNeedRemount)) {
      return Malformed("an unknown client status");
    }
    message.view_version = wire.view_version();
    message.status = static_cast<ClientStatus>(wire.client_status());
    message.client_ttl_ms = wire.client_ttl_ms();
  }
  return {};
}

}  // namespace mooncake::store::wire
