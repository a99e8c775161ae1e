// What was written and read in a simulated run, and whether the reads can be explained by the
// writes.
//
// Every write has a number and its value is made from it, so that a value tells whose it is and
// whether it is whole. Checked at each successful read:
//   - the bytes are those of exactly one write, of that key and size;
//   - that write was not yet history: no removal or replacement of the key was asked for after it
//   had
//     been acknowledged, and answered before the read began (plus, for what other clients did, the
//     lease time that a cached descriptor may live).
// A read that misses a key of the kind that is only ever put is checked too: see Missed().
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/clock.h"

namespace mooncake::store {

using WriteNumber = std::uint64_t;
inline constexpr std::uint64_t kMinValueBytes = 16;

// The value of a write: its number, its size, and bytes that follow from both.
[[nodiscard]] std::vector<std::byte> ValueOf(WriteNumber write, std::uint64_t size_bytes);

class Ledger {
 public:
  // `cache_slack`: how long another client's removal or upsert may stay unseen.
  explicit Ledger(Duration cache_slack) : cache_slack_(cache_slack) {}

  [[nodiscard]] WriteNumber WriteBegins(std::string_view key, std::uint64_t size, bool upsert,
                                        std::uint32_t client, Instant now);
  // Acknowledged: the caller was told that its bytes are stored (not that the key existed).
  void WriteAcknowledged(WriteNumber write, Instant now);

  // A removal that may have happened between `asked` and `now`; `sure` when it was acknowledged.
  void Removed(std::string_view key, std::uint32_t client, Instant asked, bool sure, Instant now);

  // The write that a read of `key` returned, or what is wrong with its bytes.
  struct Reading {
    WriteNumber write = 0;
    std::string broken;  // Empty = explained.
  };
  [[nodiscard]] Reading Read(std::string_view key, std::span<const std::byte> bytes,
                             std::uint32_t client, Instant asked, Instant now) const;

  // An acknowledged write of the key, ended before `asked`, if any; the newest.
  [[nodiscard]] std::optional<WriteNumber> AcknowledgedBefore(std::string_view key,
                                                              Instant asked) const;
  [[nodiscard]] Instant BegunAt(WriteNumber write) const { return writes_.at(write).begun; }

  [[nodiscard]] std::uint64_t reads() const { return reads_; }

 private:
  struct Write {
    std::string key;
    std::uint64_t size = 0;
    bool upsert = false;
    std::uint32_t client = 0;
    Instant begun{};
    Instant acked = Instant::max();
  };
  // Something that ends every earlier write of the key: an acknowledged removal or upsert.
  struct End {
    Instant asked{};
    Instant answered{};
    std::uint32_t client = 0;
    WriteNumber write = 0;  // The upsert itself; 0 = a removal.
  };

  const Duration cache_slack_;
  std::map<WriteNumber, Write> writes_;
  std::map<std::string, std::vector<End>, std::less<>> ends_;
  std::map<std::string, std::vector<WriteNumber>, std::less<>> by_key_;
  WriteNumber next_write_ = 1;
  mutable std::uint64_t reads_ = 0;
};

}  // namespace mooncake::store
