// Memory that other processes may map: a memfd, and where it is mapped here.
//
// It is sealed against any change of its size, so a peer that has mapped it can never meet a hole.
//
// Thread-safety: const after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "mooncake-common/src/base/result.h"

namespace mooncake {

class SealedMemory {
 public:
  // Whole pages of zeros, made when they are touched. `name` is what tools show.
  //
  // Errors: kExhausted with the step, the size and the system's reason.
  [[nodiscard]] static Result<std::shared_ptr<SealedMemory>> Create(const char* name,
                                                                    std::uint64_t length_bytes);
  ~SealedMemory();
  SealedMemory(const SealedMemory&) = delete;
  SealedMemory& operator=(const SealedMemory&) = delete;

  [[nodiscard]] std::byte* address() const { return address_; }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  SealedMemory(std::byte* address, std::uint64_t length_bytes, int fd)
      : address_(address), length_bytes_(length_bytes), fd_(fd) {}

  std::byte* const address_;
  const std::uint64_t length_bytes_;
  const int fd_;
};

}  // namespace mooncake
