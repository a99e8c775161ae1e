#include "mooncake-common/src/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>

namespace mooncake {
namespace {

std::atomic<LogLevel> threshold{LogLevel::kInfo};

spdlog::logger& Backend() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("mooncake",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%L%m%d %H:%M:%S.%f %t] %v");
    made->set_level(spdlog::level::trace);  // Filtered before it gets here.
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum ToBackend(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

void SetLogLevel(LogLevel level) { threshold.store(level, std::memory_order_relaxed); }

bool LogEnabled(LogLevel level) {
  return level >= threshold.load(std::memory_order_relaxed) && level != LogLevel::kOff;
}

void LogLine(LogLevel level, std::string_view text) { Backend().log(ToBackend(level), text); }

}  // namespace mooncake
