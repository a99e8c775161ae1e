#include "mooncake-transfer-engine/src/transports/local/shared_views.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/net/socket.h"
#include "mooncake-transfer-engine/src/transports/local/memory_map.h"

namespace mooncake::transfer {

SharedViews::SharedViews(pid_t pid, const std::vector<BufferDescriptor>& buffers)
    : pid_(pid),
      views_(static_cast<std::size_t>(std::ranges::count_if(
          buffers, [](const auto& buffer) { return buffer.shared.has_value(); }))) {
  std::vector<const BufferDescriptor*> shared;
  for (const BufferDescriptor& buffer : buffers) {
    if (buffer.shared) {
      shared.push_back(&buffer);
    }
  }
  std::ranges::sort(shared, {}, [](const BufferDescriptor* buffer) { return buffer->address; });
  for (std::size_t i = 0; i < shared.size(); ++i) {
    views_[i].address = shared[i]->address;
    views_[i].length_bytes = shared[i]->length_bytes;
    views_[i].source = *shared[i]->shared;
  }
}

SharedViews::~SharedViews() {
  for (const auto& [fd, file] : files_) {
    if (file.base != nullptr) {
      ::munmap(file.base, file.length_bytes);
    }
  }
}

std::byte* SharedViews::Find(std::uint64_t remote_address, std::uint64_t length_bytes) {
  auto next = std::ranges::upper_bound(views_, remote_address, {}, &View::address);
  if (next == views_.begin()) {
    return nullptr;
  }
  View& view = *std::prev(next);
  const std::uint64_t offset = remote_address - view.address;
  if (offset > view.length_bytes || length_bytes > view.length_bytes - offset) {
    return nullptr;
  }
  if (!view.tried.load(std::memory_order_acquire)) {
    const MutexLock lock(mutex_);
    if (!view.tried.load(std::memory_order_relaxed)) {
      Result<std::byte*> here = Import(view);
      if (here) {
        view.here.store(*here, std::memory_order_relaxed);
      } else {
        MC_LOG_WARNING("shared memory of process {} at {:#x} is not used: {}", pid_, view.address,
                       here.error().message);
      }
      view.tried.store(true, std::memory_order_release);
    }
  }
  std::byte* const here = view.here.load(std::memory_order_relaxed);
  return here == nullptr ? nullptr : here + offset;
}

Result<std::byte*> SharedViews::Import(const View& view) {
  auto known = files_.find(view.source.fd);
  if (known == files_.end()) {
    MC_TRY_ASSIGN(const File opened, MapFile(view.source.fd));
    known = files_.emplace(view.source.fd, opened).first;
  }
  const File& file = known->second;
  if (view.source.offset_bytes > file.length_bytes ||
      view.length_bytes > file.length_bytes - view.source.offset_bytes) {
    return Fail(ErrorCode::kRejected,
                fmt::format("its file of {} bytes ends before the buffer does", file.length_bytes));
  }
  std::ifstream stream(fmt::format("/proc/{}/maps", pid_));
  const std::string maps(std::istreambuf_iterator<char>(stream), {});
  const FileBacking announced{.device_major = major(file.device),
                              .device_minor = minor(file.device),
                              .inode = file.inode,
                              .offset_bytes = view.source.offset_bytes};
  if (FindBacking(maps, view.address, view.length_bytes) != announced) {
    return Fail(ErrorCode::kRejected, "another file, or none, is mapped at that address");
  }
  return file.base + view.source.offset_bytes;
}

Result<SharedViews::File> SharedViews::MapFile(std::int32_t fd) const {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid_, fd);
  const UniqueFd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened) {
    return Fail(ErrorCode::kUnavailable, fmt::format("open {}: {}", path, std::strerror(errno)));
  }
  const int seals = ::fcntl(opened.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Fail(ErrorCode::kRejected, fmt::format("{} is no memfd sealed against shrinking", path));
  }
  struct stat status{};
  if (::fstat(opened.get(), &status) != 0 || status.st_size <= 0) {
    return Fail(ErrorCode::kRejected, fmt::format("{} is empty", path));
  }
  File file{.length_bytes = static_cast<std::uint64_t>(status.st_size),
            .device = status.st_dev,
            .inode = status.st_ino};
  void* const base = ::mmap(nullptr, file.length_bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, opened.get(), 0);
  if (base == MAP_FAILED) {
    return Fail(ErrorCode::kExhausted, fmt::format("mmap {} bytes of {}: {}", file.length_bytes,
                                                   path, std::strerror(errno)));
  }
  file.base = static_cast<std::byte*>(base);
  return file;
}

}  // namespace mooncake::transfer
