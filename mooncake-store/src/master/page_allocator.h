// An allocator for large arrays that come and go: straight from the operating system, and back to
// it when freed. (malloc's threshold for doing so rises with use, and the heap then keeps the
// peak.)
//
// Thread-safety: as malloc.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace mooncake::store {

template <typename T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <typename U>
  PageAllocator(const PageAllocator<U>&) {
  }  // NOLINT(google-explicit-constructor): as any allocator.

  T* allocate(std::size_t count) {
    if (!Large(count)) {
      return static_cast<T*>(::operator new(count * sizeof(T)));
    }
    void* at = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);
    if (at == MAP_FAILED) {
      throw std::bad_alloc();
    }
    return static_cast<T*>(at);
  }
  void deallocate(T* at, std::size_t count) {
    if (Large(count)) {
      munmap(at, count * sizeof(T));
    } else {
      ::operator delete(at);
    }
  }
  friend bool operator==(const PageAllocator&, const PageAllocator&) { return true; }

 private:
  static bool Large(std::size_t count) { return count * sizeof(T) >= 32768; }
};

}  // namespace mooncake::store
