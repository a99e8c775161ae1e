// Requests in FlatBuffers: one table for all, of which each message uses the fields that it has.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "mooncake-store/src/protocol/wire_parts.h"

namespace mooncake::store::wire {

inline Offset<Config> WriteConfig(Builder& builder, const ReplicateConfigView& config) {
  const auto preferred = Text(builder, config.preferred_segment);
  const auto list = WriteTexts(builder, config.preferred_segments);
  const auto groups = WriteTexts(builder, config.group_ids);
  const auto host = Text(builder, config.host_id);
  return CreateConfig(builder, config.replica_num, config.nof_replica_num, config.dfs_replica_num,
                      static_cast<std::uint8_t>(config.soft_pin_action),
                      config.soft_pin_ttl_ms.has_value(), config.soft_pin_ttl_ms.value_or(0),
                      config.with_hard_pin, config.prefer_alloc_in_same_node, config.data_type,
                      preferred, list, groups, host);
}
inline Result<void> ReadConfig(const Config* wire, ReplicateConfigView& config) {
  config = {};
  if (wire == nullptr) {
    return {};
  }
  if (wire->soft_pin_action() > static_cast<std::uint8_t>(SoftPinAction::kDisable)) {
    return Malformed("an unknown soft-pin action");
  }
  config.replica_num = wire->replica_num();
  config.nof_replica_num = wire->nof_replica_num();
  config.dfs_replica_num = wire->dfs_replica_num();
  config.soft_pin_action = static_cast<SoftPinAction>(wire->soft_pin_action());
  if (wire->has_soft_pin_ttl()) {
    config.soft_pin_ttl_ms = wire->soft_pin_ttl_ms();
  }
  config.with_hard_pin = wire->with_hard_pin();
  config.prefer_alloc_in_same_node = wire->prefer_alloc_in_same_node();
  config.data_type = wire->data_type();
  config.preferred_segment = View(wire->preferred_segment());
  config.host_id = View(wire->host_id());
  MC_TRY(ReadTexts(wire->preferred_segments(), config.preferred_segments));
  return ReadTexts(wire->group_ids(), config.group_ids);
}

template <typename M>
Offset<Request> WriteRequest(Builder& builder, const M& message) {
  Offset<Texts> keys;
  Offset<flatbuffers::Vector<std::uint64_t>> sizes;
  Offset<flatbuffers::Vector<const PutEnding*>> endings;
  Offset<Config> config;
  Offset<flatbuffers::String> pattern;
  Offset<flatbuffers::Vector<Offset<Segment>>> segments;
  Offset<flatbuffers::Vector<std::uint32_t>> numbers;
  Offset<flatbuffers::Vector<const SegmentIdentity*>> identities;
  Offset<flatbuffers::String> segment_name;
  if constexpr (requires { message.keys; }) {
    keys = WriteTexts(builder, message.keys);
  }
  if constexpr (requires { message.sizes_bytes; }) {
    sizes = Numbers<std::uint64_t>(builder, message.sizes_bytes);
  }
  if constexpr (requires { message.endings; }) {
    endings = Structs<PutEnding>(builder, message.endings, [](const store::PutEnding& ending) {
      return PutEnding(ending.version, ending.success, ending.has_checksum, ending.checksum);
    });
  }
  if constexpr (requires { message.config; }) {
    config = WriteConfig(builder, message.config);
  }
  if constexpr (requires { message.pattern; }) {
    pattern = Text(builder, message.pattern);
  }
  if constexpr (requires {
                  { message.segment } -> std::convertible_to<const SegmentInfo&>;
                }) {
    const auto one = WriteSegment(builder, message.segment);
    segments = builder.CreateVector(&one, 1);
  }
  if constexpr (requires {
                  { message.segments } -> std::convertible_to<const std::vector<SegmentInfo>&>;
                }) {
    std::vector<Offset<Segment>> offsets;
    for (const SegmentInfo& segment : message.segments) {
      offsets.push_back(WriteSegment(builder, segment));
    }
    segments = builder.CreateVector(offsets);
  }
  if constexpr (requires {
                  {
                    message.segments
                  } -> std::convertible_to<const std::vector<store::SegmentIdentity>&>;
                }) {
    identities = Structs<SegmentIdentity>(
        builder, message.segments,
        [](const store::SegmentIdentity& identity) { return ToWire(identity); });
  }
  if constexpr (requires { message.numbers; }) {
    numbers = Numbers<std::uint32_t>(builder, message.numbers);
  }
  if constexpr (requires { message.segment_name; }) {
    segment_name = Text(builder, message.segment_name);
  }
  const auto tenant = Text(builder, message.caller.tenant);
  const Uuid client = ToWire(message.caller.client);
  const auto caller = CreateCaller(builder, &client, tenant, message.caller.cache_hits,
                                   message.caller.cache_hit_bytes);

  RequestBuilder request(builder);
  request.add_caller(caller);
  request.add_keys(keys);
  request.add_sizes_bytes(sizes);
  request.add_endings(endings);
  request.add_config(config);
  request.add_pattern(pattern);
  request.add_segments(segments);
  request.add_numbers(numbers);
  request.add_identities(identities);
  request.add_segment_name(segment_name);
  if constexpr (requires { message.chain; }) {
    const Chain chain(message.chain.chain_id, message.chain.position, message.chain.total);
    request.add_chain(&chain);
  }
  if constexpr (requires {
                  { message.segment } -> std::convertible_to<const mooncake::Uuid&>;
                }) {
    const Uuid id = ToWire(message.segment);
    request.add_segment_id(&id);
  }
  if constexpr (requires { message.use; }) {
    request.add_whole_lease(message.use == LeaseUse::kWhole);
  }
  if constexpr (requires { message.repeated; }) {
    request.add_repeated(message.repeated);
  }
  if constexpr (requires { message.upsert; }) {
    request.add_upsert(message.upsert);
  }
  if constexpr (requires { message.force; }) {
    request.add_force(message.force);
  }
  if constexpr (requires { message.view_version; }) {
    request.add_view_version(message.view_version);
  }
  if constexpr (requires { message.grace_ms; }) {
    request.add_grace_ms(message.grace_ms);
  }
  return request.Finish();
}

template <typename M>
Result<void> ReadRequest(const Request& wire, M& message) {
  if (wire.caller() == nullptr) {
    return Malformed("a request without its caller");
  }
  message.caller = {.client = FromWire(wire.caller()->client()),
                    .tenant = View(wire.caller()->tenant()),
                    .cache_hits = wire.caller()->cache_hits(),
                    .cache_hit_bytes = wire.caller()->cache_hit_bytes()};
  if constexpr (requires { message.chain; }) {
    message.chain = {};
    if (const Chain* chain = wire.chain()) {
      message.chain = {
          .chain_id = chain->chain_id(), .position = chain->position(), .total = chain->total()};
    }
  }
  if constexpr (requires { message.use; }) {
    message.use = wire.whole_lease() ? LeaseUse::kWhole : LeaseUse::kRead;
  }
  if constexpr (requires { message.repeated; }) {
    message.repeated = wire.repeated();
  }
  if constexpr (requires { message.keys; }) {
    MC_TRY(ReadTexts(wire.keys(), message.keys));
  }
  if constexpr (requires { message.sizes_bytes; }) {
    message.sizes_bytes.clear();
    if (wire.sizes_bytes() != nullptr) {
      message.sizes_bytes.assign(wire.sizes_bytes()->begin(), wire.sizes_bytes()->end());
    }
  }
  if constexpr (requires { message.endings; }) {
    message.endings.clear();
    if (wire.endings() != nullptr) {
      for (const PutEnding* ending : *wire.endings()) {
        message.endings.push_back({.version = ending->version(),
                                   .success = ending->success(),
                                   .has_checksum = ending->has_checksum(),
                                   .checksum = ending->checksum()});
      }
    }
  }
  if constexpr (requires { message.config; }) {
    MC_TRY(ReadConfig(wire.config(), message.config));
  }
  if constexpr (requires { message.pattern; }) {
    message.pattern = View(wire.pattern());
    if (message.pattern.size() > kMaxKeyBytes) {
      return Malformed("a pattern is longer than keys may be");
    }
  }
  if constexpr (requires {
                  { message.segment } -> std::convertible_to<const SegmentInfo&>;
                }) {
    if (wire.segments() == nullptr || wire.segments()->size() != 1) {
      return Malformed("not one segment");
    }
    MC_TRY(ReadSegment(wire.segments()->Get(0), message.segment));
  }
  if constexpr (requires {
                  { message.segments } -> std::convertible_to<const std::vector<SegmentInfo>&>;
                }) {
    message.segments.clear();
    const flatbuffers::uoffset_t count = wire.segments() == nullptr ? 0 : wire.segments()->size();
    if (count > kMaxKeysPerBatch) {
      return Malformed("more segments than a message may have");
    }
    for (flatbuffers::uoffset_t i = 0; i < count; ++i) {
      MC_TRY(ReadSegment(wire.segments()->Get(i), message.segments.emplace_back()));
    }
  }
  if constexpr (requires {
                  {
                    message.segments
                  } -> std::convertible_to<const std::vector<store::SegmentIdentity>&>;
                }) {
    message.segments.clear();
    if (wire.identities() != nullptr) {
      if (wire.identities()->size() > kMaxKeysPerBatch) {
        return Malformed("more segments than a message may have");
      }
      for (const SegmentIdentity* identity : *wire.identities()) {
        message.segments.push_back(FromWire(identity));
      }
    }
  }
  if constexpr (requires {
                  { message.segment } -> std::convertible_to<const mooncake::Uuid&>;
                }) {
    message.segment = FromWire(wire.segment_id());
  }
  if constexpr (requires { message.numbers; }) {
    message.numbers.clear();
    if (wire.numbers() != nullptr) {
      message.numbers.assign(wire.numbers()->begin(), wire.numbers()->end());
    }
  }
  if constexpr (requires { message.segment_name; }) {
    message.segment_name = View(wire.segment_name());
  }
  if constexpr (requires { message.upsert; }) {
    message.upsert = wire.upsert();
  }
  if constexpr (requires { message.force; }) {
    message.force = wire.force();
  }
  if constexpr (requires { message.view_version; }) {
    message.view_version = wire.view_version();
  }
  if constexpr (requires { message.grace_ms; }) {
    message.grace_ms = wire.grace_ms();
  }
  return {};
}

}  // namespace mooncake::store::wire
