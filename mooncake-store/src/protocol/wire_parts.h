// How the parts that several messages share stand in FlatBuffers. Only codec.cc includes this and
// its siblings: the schema's generated code stays in one translation unit.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/protocol/messages.h"
#include "mooncake-store/src/protocol/store_generated.h"

namespace mooncake::store::wire {

using Builder = flatbuffers::FlatBufferBuilder;
template <typename T>
using Offset = flatbuffers::Offset<T>;

inline std::unexpected<Error> Malformed(const char* what) {
  return Fail(ErrorCode::kMalformed, std::string("decode a store message: ") + what);
}

inline Uuid ToWire(const mooncake::Uuid& uuid) { return {uuid.first, uuid.second}; }
inline mooncake::Uuid FromWire(const Uuid* uuid) {
  return uuid == nullptr ? mooncake::Uuid{} : mooncake::Uuid{uuid->first(), uuid->second()};
}
inline SegmentIdentity ToWire(const store::SegmentIdentity& identity) {
  return {identity.number, identity.incarnation};
}
inline store::SegmentIdentity FromWire(const SegmentIdentity* identity) {
  return identity == nullptr ? store::SegmentIdentity{}
                             : store::SegmentIdentity{identity->number(), identity->incarnation()};
}

inline std::string_view View(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view{} : std::string_view(text->c_str(), text->size());
}
// Absent when empty.
inline Offset<flatbuffers::String> Text(Builder& builder, std::string_view text) {
  return text.empty() ? Offset<flatbuffers::String>{}
                      : builder.CreateString(text.data(), text.size());
}

// A vector of structs as `Wire` of the schema; absent when empty.
template <typename Wire, typename Range, typename Convert>
Offset<flatbuffers::Vector<const Wire*>> Structs(Builder& builder, const Range& values,
                                                 Convert convert) {
  if (values.empty()) {
    return {};
  }
  Wire* places = nullptr;
  const auto offset = builder.CreateUninitializedVectorOfStructs<Wire>(values.size(), &places);
  for (std::size_t i = 0; i < values.size(); ++i) {
    places[i] = convert(values[i]);
  }
  return offset;
}
// A vector of numbers; absent when empty.
template <typename Number, typename Range>
Offset<flatbuffers::Vector<Number>> Numbers(Builder& builder, const Range& values) {
  if (values.empty()) {
    return {};
  }
  Number* places = nullptr;
  const auto offset = builder.CreateUninitializedVector(values.size(), &places);
  for (std::size_t i = 0; i < values.size(); ++i) {
    places[i] = static_cast<Number>(values[i]);
  }
  return offset;
}

template <typename Text>  // std::string or std::string_view
Offset<Texts> WriteTexts(Builder& builder, const std::vector<Text>& texts) {
  if (texts.empty()) {
    return {};
  }
  std::size_t total = 0;
  for (const Text& text : texts) {
    total += text.size();
  }
  std::uint8_t* bytes = nullptr;
  const auto all = builder.CreateUninitializedVector(total, &bytes);
  for (const Text& text : texts) {
    std::copy_n(text.data(), text.size(), reinterpret_cast<char*>(bytes));
    bytes += text.size();
  }
  std::uint32_t* lengths = nullptr;
  const auto cuts = builder.CreateUninitializedVector(texts.size(), &lengths);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    lengths[i] = static_cast<std::uint32_t>(texts[i].size());
  }
  return CreateTexts(builder, all, cuts);
}
template <typename Text>
Result<void> ReadTexts(const Texts* wire, std::vector<Text>& texts) {
  texts.clear();
  if (wire == nullptr || wire->lengths() == nullptr) {
    return {};
  }
  const auto& lengths = *wire->lengths();
  if (lengths.size() > kMaxKeysPerBatch) {
    return Malformed("more keys than a batch may have");
  }
  const std::size_t available = wire->bytes() == nullptr ? 0 : wire->bytes()->size();
  const char* const bytes =
      available == 0 ? "" : reinterpret_cast<const char*>(wire->bytes()->data());
  std::size_t position = 0;
  texts.reserve(lengths.size());
  for (const std::uint32_t length : lengths) {
    if (length > kMaxKeyBytes || length > available - position) {
      return Malformed("a key is longer than keys may be or than what was sent");
    }
    texts.emplace_back(bytes + position, length);
    position += length;
  }
  return position == available ? Result<void>{} : Malformed("bytes that belong to no key");
}

inline Offset<Segment> WriteSegment(Builder& builder, const SegmentInfo& info) {
  const auto name = Text(builder, info.name);
  const auto endpoint = Text(builder, info.te_endpoint);
  const auto protocol = Text(builder, info.protocol);
  const auto host = Text(builder, info.host_id);
  const Uuid id = ToWire(info.id);
  return CreateSegment(builder, &id, name, info.base_address, info.size_bytes, endpoint, protocol,
                       host);
}
inline Result<void> ReadSegment(const Segment* wire, SegmentInfo& info) {
  if (wire == nullptr) {
    return Malformed("a segment is missing");
  }
  for (const auto* text : {wire->name(), wire->te_endpoint(), wire->protocol(), wire->host_id()}) {
    if (View(text).size() > kMaxKeyBytes) {
      return Malformed("a segment's text is too long");
    }
  }
  info = {.id = FromWire(wire->id()),
          .name = std::string(View(wire->name())),
          .base_address = wire->base_address(),
          .size_bytes = wire->size_bytes(),
          .te_endpoint = std::string(View(wire->te_endpoint())),
          .protocol = std::string(View(wire->protocol())),
          .host_id = std::string(View(wire->host_id()))};
  return {};
}

}  // namespace mooncake::store::wire
