#include "mooncake-common/src/base/descriptor_limit.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include "mooncake-common/src/base/log.h"

namespace mooncake {
namespace {

constexpr std::uint64_t kForTheRest = 128;  // Listeners, epoll, log files, libraries.

}  // namespace

Result<std::uint64_t> RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) {
      return limit.rlim_cur;
    }
  }
  return Fail(ErrorCode::kIo, fmt::format("raise the limit of open descriptors to {}: {}",
                                          limit.rlim_max, std::system_category().message(errno)));
}

void PrepareDescriptorsFor(std::uint64_t connections) {
  const Result<std::uint64_t> limit = RaiseDescriptorLimit();
  const std::uint64_t needed =
      std::min(connections, std::numeric_limits<std::uint64_t>::max() - kForTheRest) + kForTheRest;
  if (!limit) {
    MC_LOG_WARNING("{}", limit.error().message);
  } else if (*limit < needed) {
    MC_LOG_WARNING(
        "this process may open {} descriptors, and {} connections need {}: those beyond wait; "
        "raise the hard limit (ulimit -Hn, LimitNOFILE= of systemd)",
        *limit, connections, needed);
  }
}

}  // namespace mooncake
