// Values in places that are used over and over, named by handles that go stale.
//
// A handle is generation << 32 | index. Each use of a place has the next generation, so a handle
// whose value was taken finds nothing instead of somebody else's value, until the place was used
// 2^31 times more. A handle is never 0, and its highest bit is never set: both are free for others
// to mean something by them. There are as many places as there were values at once.
//
// Thread-safety: none; it lies behind its owner's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace mooncake {

template <typename T>
class Slab {
 public:
  using Handle = std::uint64_t;

  Handle Insert(T value) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(places_.size()));
      places_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Place& place = places_[index];
    place.generation = place.generation == kLastGeneration ? 1 : place.generation + 1;
    place.value = std::move(value);
    return (Handle{place.generation} << 32) | index;
  }

  // Good until the next Insert(); null if the handle is stale or was never given out.
  [[nodiscard]] T* Find(Handle handle) {
    const auto index = static_cast<std::uint32_t>(handle);
    if (index >= places_.size() || places_[index].generation != handle >> 32 ||
        !places_[index].value) {
      return nullptr;
    }
    return &*places_[index].value;
  }

  // Removes and returns the value, from where its handle is stale; none if it is so already.
  std::optional<T> Take(Handle handle) {
    if (Find(handle) == nullptr) {
      return std::nullopt;
    }
    const auto index = static_cast<std::uint32_t>(handle);
    free_.push_back(index);
    return std::exchange(places_[index].value, std::nullopt);
  }

  // All values, in no particular order.
  [[nodiscard]] std::vector<T> TakeAll() {
    std::vector<T> all;
    for (std::uint32_t index = 0; index < places_.size(); ++index) {
      if (auto& value = places_[index].value) {
        all.push_back(*std::exchange(value, std::nullopt));
        free_.push_back(index);
      }
    }
    return all;
  }

 private:
  static constexpr std::uint32_t kLastGeneration = 0x7fffffff;

  struct Place {
    std::uint32_t generation = 0;  // Of the value that is or was here last.
    std::optional<T> value;
  };

  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;  // The place that was left last is used next: it is warm.
};

}  // namespace mooncake
