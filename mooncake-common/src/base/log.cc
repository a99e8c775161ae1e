#include "mooncake-common/src/base/log.h"

#include <fmt/chrono.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <exception>
#include <filesystem>
#include <memory>

#include "mooncake-common/src/base/env.h"
#include "mooncake-common/src/base/wall_clock.h"
#include "mooncake-common/src/concurrency/mutex.h"

namespace mooncake {
namespace {

std::atomic<LogLevel> threshold{LogLevel::kInfo};

constexpr const char* kPattern = "%L%m%d %H:%M:%S.%f %t] %v";
constexpr std::size_t kFileMaxBytes = std::size_t{64} << 20;
constexpr std::size_t kOldFiles = 4;

// One for the process, and never destroyed: threads may still log while it ends.
struct Backend {
  std::shared_ptr<spdlog::sinks::stderr_sink_mt> standard_error =
      std::make_shared<spdlog::sinks::stderr_sink_mt>();
  std::shared_ptr<spdlog::sinks::dist_sink_mt> sinks =
      std::make_shared<spdlog::sinks::dist_sink_mt>();
  spdlog::logger logger{"mooncake", sinks};

  Backend() {
    sinks->add_sink(standard_error);
    logger.set_pattern(kPattern);
    logger.set_level(spdlog::level::trace);  // Filtered before it gets here.
    logger.flush_on(spdlog::level::trace);
  }
};

Backend& TheBackend() {
  static Backend* const backend = new Backend;
  return *backend;
}

// What InitLoggingFromEnv() has set.
struct FromEnv {
  Mutex mutex;
  LogLevel level MC_GUARDED_BY(mutex) = LogLevel::kInfo;
  std::string folder MC_GUARDED_BY(mutex);
  pid_t process MC_GUARDED_BY(mutex) = 0;  // Whose file is in the folder.
};

FromEnv& TheFromEnv() {
  static FromEnv* const from_env = new FromEnv;
  return *from_env;
}

LogLevel LevelOf(std::string_view name) {
  return name == "TRACE"     ? LogLevel::kTrace
         : name == "WARNING" ? LogLevel::kWarning
         : name == "ERROR"   ? LogLevel::kError
                             : LogLevel::kInfo;
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

std::string FileName(std::string_view program) {
  if (program.empty()) {
    return fmt::format("mooncake.{}.log", getpid());
  }
  const std::time_t now = std::chrono::floor<std::chrono::seconds>(SinceUnixEpoch()).count();
  std::tm local{};
  localtime_r(&now, &local);
  return fmt::format("{}.INFO.{:%Y%m%d-%H%M%S}.{}", program, local, getpid());
}

// Makes `link` lead to `target`, a name in the same folder. At each moment there is an old link or
// the new one, for those who follow it; of several programs that start at once one wins.
void PointTo(const std::filesystem::path& target, const std::filesystem::path& link) {
  const std::filesystem::path made = link.string() + fmt::format(".{}.new", getpid());
  std::filesystem::remove(made);
  std::filesystem::create_symlink(target, made);
  std::filesystem::rename(made, link);
}

}  // namespace

void SetLogLevel(LogLevel level) { threshold.store(level, std::memory_order_relaxed); }

bool LogEnabled(LogLevel level) {
  return level >= threshold.load(std::memory_order_relaxed) && level != LogLevel::kOff;
}

void LogLine(LogLevel level, std::string_view text) {
  TheBackend().logger.log(ToBackend(level), text);
}

void SetStandardErrorLevel(LogLevel level) {
  TheBackend().standard_error->set_level(ToBackend(level));
}

Result<void> LogToFolder(const std::string& folder, std::string_view program) {
  const auto file = std::filesystem::path(folder) / FileName(program);
  try {
    std::filesystem::create_directories(folder);
    auto sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(file.string(), kFileMaxBytes,
                                                                       kOldFiles);
    sink->set_pattern(kPattern);
    if (!program.empty()) {
      PointTo(file.filename(), std::filesystem::path(folder) / fmt::format("{}.INFO", program));
    }
    Backend& backend = TheBackend();
    backend.standard_error->set_level(spdlog::level::warn);
    backend.sinks->set_sinks({backend.standard_error, std::move(sink)});
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kIo, fmt::format("log to {}: {}; see MC_LOG_DIR and --log_dir",
                                            file.string(), error.what()));
  }
  return {};
}

Result<void> InitLoggingFromEnv(const EnvSource& env) {
  MC_TRY_ASSIGN(const std::string name, EnvChoice("MC_LOG_LEVEL", env));
  const LogLevel level = LevelOf(name);
  const std::string folder = EnvText("MC_LOG_DIR", env);
  FromEnv& set = TheFromEnv();
  const MutexLock lock(set.mutex);
  if (!folder.empty() && (folder != set.folder || set.process != getpid())) {
    MC_TRY(LogToFolder(folder));
  }
  set.folder = folder;
  set.process = getpid();
  if (level != set.level) {
    SetLogLevel(level);
  }
  set.level = level;
  return {};
}

}  // namespace mooncake
