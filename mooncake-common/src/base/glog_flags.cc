#include "mooncake-common/src/base/glog_flags.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <string>

#include "mooncake-common/src/base/log.h"

// NOLINTBEGIN: the macros make names and globals of their own.
DEFINE_string(log_dir, "",
              "Folder to write the log to; standard error gets what --stderrthreshold says then");
DEFINE_bool(logtostderr, false, "Write the log to standard error only, even with --log_dir");
DEFINE_int32(minloglevel, 0, "Least severe lines: 0 information, 1 warnings, 2 errors, 3 none");
DEFINE_int32(v, 0, "Above 0: write trace lines, too");
DEFINE_bool(alsologtostderr, false, "With --log_dir: write all lines to standard error, too");
DEFINE_bool(alsologtostdout, false, "Accepted, without effect");
DEFINE_string(alsologtoemail, "", "Accepted, without effect");
DEFINE_bool(colorlogtostderr, false, "Accepted, without effect");
DEFINE_bool(colorlogtostdout, false, "Accepted, without effect");
DEFINE_bool(drop_log_memory, true, "Accepted, without effect");
DEFINE_string(log_backtrace_at, "", "Accepted, without effect");
DEFINE_string(log_link, "", "Accepted, without effect");
DEFINE_bool(log_prefix, true, "Accepted, without effect");
DEFINE_bool(log_utc_time, false, "Accepted, without effect");
DEFINE_bool(log_year_in_prefix, true, "Accepted, without effect");
DEFINE_int32(logbuflevel, 0, "Accepted, without effect");
DEFINE_int32(logbufsecs, 30, "Accepted, without effect");
DEFINE_int32(logcleansecs, 300, "Accepted, without effect");
DEFINE_int32(logemaillevel, 999, "Accepted, without effect");
DEFINE_string(log_file_header, "", "Accepted, without effect");
DEFINE_int32(logfile_mode, 436, "Accepted, without effect");
DEFINE_string(logmailer, "", "Accepted, without effect");
DEFINE_bool(logtostdout, false, "Accepted, without effect");
DEFINE_int32(max_log_size, 1800, "Accepted, without effect");
DEFINE_int32(stderrthreshold, 2,
             "With --log_dir: least severe lines that go to standard error, too, counted as by "
             "--minloglevel; without it: if given");
DEFINE_bool(stop_logging_if_full_disk, false, "Accepted, without effect");
DEFINE_bool(symbolize_stacktrace, true, "Accepted, without effect");
DEFINE_bool(timestamp_in_logfile_name, true, "Accepted, without effect");
DEFINE_string(vmodule, "", "Accepted, without effect");
// NOLINTEND

namespace mooncake {
namespace {

bool IsGiven(const char* flag) { return !gflags::GetCommandLineFlagInfoOrDie(flag).is_default; }

// 0: information, 1: warnings, 2: errors; above: none.
LogLevel OfSeverity(int severity) {
  const int level = static_cast<int>(LogLevel::kInfo) + std::max(severity, 0);
  return static_cast<LogLevel>(std::min(level, static_cast<int>(LogLevel::kOff)));
}

}  // namespace

Result<void> ApplyLogFlags() {
  if (FLAGS_v > 0) {
    SetLogLevel(LogLevel::kTrace);
  } else if (IsGiven("minloglevel")) {
    SetLogLevel(OfSeverity(FLAGS_minloglevel));
  }
  if (FLAGS_logtostderr) {
    SetStandardErrorLevel(LogLevel::kTrace);
    return {};
  }
  if (!FLAGS_log_dir.empty()) {
    MC_TRY(LogToFolder(FLAGS_log_dir, gflags::ProgramInvocationShortName()));
  }
  if (FLAGS_alsologtostderr) {
    SetStandardErrorLevel(LogLevel::kTrace);
  } else if (!FLAGS_log_dir.empty() || IsGiven("stderrthreshold")) {
    SetStandardErrorLevel(OfSeverity(FLAGS_stderrthreshold));
  }
  return {};
}

}  // namespace mooncake
