// Log lines: MC_LOG_INFO("mounted {} ({} bytes)", name, size). Level and folder come from
// MC_LOG_LEVEL and MC_LOG_DIR.
//
// Thread-safety: any thread. The back end (spdlog) stays inside log.cc.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string_view>

namespace mooncake {

enum class LogLevel : std::uint8_t { kTrace, kInfo, kWarning, kError, kOff };

// Lines below `level` are dropped.
void SetLogLevel(LogLevel level);
[[nodiscard]] bool LogEnabled(LogLevel level);
void LogLine(LogLevel level, std::string_view text);

}  // namespace mooncake

#define MC_LOG(level, ...)                                    \
  do {                                                        \
    if (::mooncake::LogEnabled(level)) {                      \
      ::mooncake::LogLine(level, ::fmt::format(__VA_ARGS__)); \
    }                                                         \
  } while (false)
#define MC_LOG_TRACE(...) MC_LOG(::mooncake::LogLevel::kTrace, __VA_ARGS__)
#define MC_LOG_INFO(...) MC_LOG(::mooncake::LogLevel::kInfo, __VA_ARGS__)
#define MC_LOG_WARNING(...) MC_LOG(::mooncake::LogLevel::kWarning, __VA_ARGS__)
#define MC_LOG_ERROR(...) MC_LOG(::mooncake::LogLevel::kError, __VA_ARGS__)
