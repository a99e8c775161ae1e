// The master of a store. See docs/operations.md.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "mooncake-common/src/base/config.h"
#include "mooncake-common/src/base/descriptor_limit.h"
#include "mooncake-common/src/base/end_signals.h"
#include "mooncake-common/src/base/env.h"
#include "mooncake-common/src/base/glog_flags.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-store/src/server/flags.h"
#include "mooncake-store/src/server/master_server.h"
#include "mooncake-store/src/server/version.h"

namespace mooncake::store {
namespace {

Result<void> Run() {
  const EndSignals ends = EndSignals::Block();
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
  PrepareDescriptorsFor(rpc::RpcServer::Options().max_connections);
  MasterServer server(options);
  MC_TRY(server.Start());
  MC_LOG_INFO(
      "mooncake_master {} (git: {}): clients on port {}, admin HTTP on port {}{}", Version(),
      GitHash(), server.rpc_port(), server.admin_port(),
      options.serve_metadata ? fmt::format(", metadata on port {}", server.metadata_port()) : "");
  const int signal = ends.Wait();
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
