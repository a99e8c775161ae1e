#include "mooncake-transfer-engine/src/metadata/timestamp.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "mooncake-common/src/base/wall_clock.h"

namespace mooncake::transfer {

std::string TimestampNow() {
  const Duration since_epoch = SinceUnixEpoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(since_epoch - seconds).count();
  const std::time_t time = seconds.count();
  std::tm local{};
  localtime_r(&time, &local);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", local.tm_year + 1900,
                     local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                     micros);
}

}  // namespace mooncake::transfer
