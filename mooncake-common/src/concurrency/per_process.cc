#include "mooncake-common/src/concurrency/per_process.h"

#include <pthread.h>

namespace mooncake {
namespace {

std::atomic<std::uint64_t> g_forks{0};

}  // namespace

std::uint64_t ForkCount() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1); });
  static_cast<void>(registered);
  return g_forks.load();
}

}  // namespace mooncake
