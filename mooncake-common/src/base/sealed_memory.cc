#include "mooncake-common/src/base/sealed_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace mooncake {
namespace {

std::unexpected<Error> SystemFailure(const char* what, std::uint64_t bytes) {
  const int error = errno;
  return Fail(ErrorCode::kExhausted, fmt::format("{} of {} bytes: {}", what, bytes,
                                                 std::generic_category().message(error)));
}

}  // namespace

Result<std::shared_ptr<SealedMemory>> SealedMemory::Create(const char* name,
                                                           std::uint64_t length_bytes) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    return SystemFailure("memfd_create", length_bytes);
  }
  if (::ftruncate(fd, static_cast<off_t>(length_bytes)) != 0 ||
      ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    auto failure = SystemFailure("size and seal a memfd", length_bytes);
    ::close(fd);
    return failure;
  }
  void* address =
      ::mmap(nullptr, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (address == MAP_FAILED) {
    auto failure = SystemFailure("mmap", length_bytes);
    ::close(fd);
    return failure;
  }
  return std::shared_ptr<SealedMemory>(
      new SealedMemory(static_cast<std::byte*>(address), length_bytes, fd));
}

SealedMemory::~SealedMemory() {
  ::munmap(address_, length_bytes_);
  ::close(fd_);
}

}  // namespace mooncake
