// Log lines: MC_LOG_INFO("mounted {} ({} bytes)", name, size). They go to standard error unless
// InitLoggingFromEnv(), which programs, engines and stores call at their start, finds otherwise.
//
// Thread-safety: any thread. The back end (spdlog) stays inside log.cc.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/env_source.h"
#include "mooncake-common/src/base/result.h"

namespace mooncake {

enum class LogLevel : std::uint8_t { kTrace, kInfo, kWarning, kError, kOff };

// Lines below `level` are dropped.
void SetLogLevel(LogLevel level);
[[nodiscard]] bool LogEnabled(LogLevel level);
void LogLine(LogLevel level, std::string_view text);

// Writes all lines to a file in `folder`, which is made if need be, and only warnings and errors to
// standard error. The file is mooncake.<pid>.log; that of a `program`
// <program>.INFO.<date>-<time>.<pid>, to which the symbolic link <program>.INFO leads from then on.
// At 64 MiB the file is renamed; four old ones are kept.
//
// Errors: kIo if the folder or the file cannot be made; everything stays as it was then.
[[nodiscard]] Result<void> LogToFolder(const std::string& folder, std::string_view program = {});

// Lines below `level` do not go to standard error, whether or not there is a file.
void SetStandardErrorLevel(LogLevel level);

// Level and folder from MC_LOG_LEVEL and MC_LOG_DIR. What an earlier call of this process found
// there is not set again: what a program has set since then, say from its flags, stays.
//
// Errors: those of the variables and of LogToFolder.
[[nodiscard]] Result<void> InitLoggingFromEnv(const EnvSource& env = ProcessEnv::Get());

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
