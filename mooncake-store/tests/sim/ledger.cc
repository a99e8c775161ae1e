#include "mooncake-store/tests/sim/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace mooncake::store {

std::vector<std::byte> ValueOf(WriteNumber write, std::uint64_t size_bytes) {
  std::vector<std::byte> value(size_bytes);
  std::memcpy(value.data(), &write, sizeof write);
  std::memcpy(value.data() + sizeof write, &size_bytes, sizeof size_bytes);
  for (std::uint64_t i = kMinValueBytes; i < size_bytes; ++i) {
    value[i] = static_cast<std::byte>((write * 0x9e3779b1U + i * 13 + (i >> 8)) & 0xff);
  }
  return value;
}

WriteNumber Ledger::WriteBegins(std::string_view key, std::uint64_t size, bool upsert,
                                std::uint32_t client, Instant now) {
  const WriteNumber write = next_write_++;
  writes_[write] = Write{
      .key = std::string(key), .size = size, .upsert = upsert, .client = client, .begun = now};
  by_key_[std::string(key)].push_back(write);
  return write;
}

void Ledger::WriteAcknowledged(WriteNumber write, Instant now) {
  Write& known = writes_.at(write);
  known.acked = now;
  if (known.upsert) {
    ends_[known.key].push_back(
        End{.asked = known.begun, .answered = now, .client = known.client, .write = write});
  }
}

void Ledger::Removed(std::string_view key, std::uint32_t client, Instant asked, bool sure,
                     Instant now) {
  if (sure) {
    ends_[std::string(key)].push_back(End{.asked = asked, .answered = now, .client = client});
  }
}

Ledger::Reading Ledger::Read(std::string_view key, std::span<const std::byte> bytes,
                             std::uint32_t client, Instant asked, Instant /*now*/) const {
  ++reads_;
  Reading reading;
  if (bytes.size() < kMinValueBytes) {
    reading.broken = fmt::format("{} has only {} bytes", key, bytes.size());
    return reading;
  }
  std::memcpy(&reading.write, bytes.data(), sizeof reading.write);
  const auto found = writes_.find(reading.write);
  if (found == writes_.end()) {
    reading.broken = fmt::format("{} begins with bytes that nobody wrote", key);
    return reading;
  }
  const Write& write = found->second;
  if (write.key != key || write.size != bytes.size()) {
    reading.broken = fmt::format("{} ({} bytes) holds write {}, which is {} ({} bytes)", key,
                                 bytes.size(), reading.write, write.key, write.size);
    return reading;
  }
  const auto wanted = ValueOf(reading.write, write.size);
  if (const auto [at, other] = std::ranges::mismatch(bytes, wanted); at != bytes.end()) {
    reading.broken = fmt::format("{} is torn: write {} up to byte {} of {}", key, reading.write,
                                 at - bytes.begin(), bytes.size());
    return reading;
  }
  const auto ends = ends_.find(key);
  if (ends == ends_.end()) {
    return reading;
  }
  for (const End& end : ends->second) {
    const Duration slack = end.client == client ? Duration(0) : cache_slack_;
    if (end.write != reading.write && write.acked < end.asked && end.answered + slack < asked) {
      reading.broken = fmt::format(
          "{} still holds write {} though {} by client {} was acknowledged before the read", key,
          reading.write, end.write == 0 ? "a removal" : fmt::format("upsert {}", end.write),
          end.client);
      return reading;
    }
  }
  return reading;
}

std::optional<WriteNumber> Ledger::AcknowledgedBefore(std::string_view key, Instant asked) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    return std::nullopt;
  }
  for (auto write = found->second.rbegin(); write != found->second.rend(); ++write) {
    if (writes_.at(*write).acked < asked) {
      return *write;
    }
  }
  return std::nullopt;
}

}  // namespace mooncake::store
