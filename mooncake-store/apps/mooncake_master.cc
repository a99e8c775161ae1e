// The master of a store. See docs/operations.md.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "mooncake-common/src/base/config.h"
#include "mooncake-common/src/base/env.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-store/src/server/flags.h"
#include "mooncake-store/src/server/glog_flags.h"
#include "mooncake-store/src/server/master_server.h"
#include "mooncake-store/src/server/version.h"

namespace mooncake::store {
namespace {

// Blocked in all threads, so that sigwait() gets them.
sigset_t BlockSignalsToEnd() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

Result<void> Run() {
  const sigset_t signals = BlockSignalsToEnd();
  Config file;
  if (const std::string path = ConfigPath(); !path.empty()) {
    MC_TRY_ASSIGN(file, Config::Load(path));
  }
  MC_TRY_ASSIGN(const Settings settings, Settings::Merge(ReadFlags(), file, ConfigPath()));
  MC_TRY_ASSIGN(const ServerOptions options,
                ServerOptionsFrom(settings, std::thread::hardware_concurrency()));
  for (const std::string& note : settings.notes()) {
    MC_LOG_WARNING("{}", note);
  }
  MasterServer server(options);
  MC_TRY(server.Start());
  MC_LOG_INFO(
      "mooncake_master {} (git: {}): clients on port {}, admin HTTP on port {}{}", Version(),
      GitHash(), server.rpc_port(), server.admin_port(),
      options.serve_metadata ? fmt::format(", metadata on port {}", server.metadata_port()) : "");
  int signal = 0;
  sigwait(&signals, &signal);
  MC_LOG_INFO("mooncake_master ends: signal {}", signal);
  server.Stop();
  return {};
}

Result<void> Main(int argc, char** argv) {
  MC_TRY(ParseCommandLine(argc, argv));
  MC_TRY(InitLoggingFromEnv());
  MC_TRY(ApplyLogFlags());
  WarnOfUnreadEnvOnce();
  return Run();
}

}  // namespace
}  // namespace mooncake::store

int main(int argc, char** argv) {
  const auto ended = mooncake::store::Main(argc, argv);
  if (!ended) {
    std::fprintf(stderr, "mooncake_master: %s\n", ended.error().message.c_str());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
