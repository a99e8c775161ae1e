// A whole master on loopback ports of its own, asked over RPC and HTTP. For tests only.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "mooncake-common/src/net/http/client.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-store/src/protocol/codec.h"
#include "mooncake-store/src/server/master_server.h"

namespace mooncake::store {

// What one client asks; not for two threads at once.
class TestCaller {
 public:
  explicit TestCaller(std::uint16_t port, Uuid client = {1, 1}) : client_(client) {
    EXPECT_TRUE(reactor_.Start());
    auto made = rpc::RpcClient::Create(reactor_, {.host = "127.0.0.1", .port = port});
    EXPECT_TRUE(made);
    rpc_ = std::move(*made);
  }
  ~TestCaller() {
    rpc_->Stop();
    reactor_.Stop();
  }

  // The bytes of the reply, or why there is none.
  Result<std::span<const std::byte>> CallRaw(Method method, std::span<const std::byte> body) {
    const Instant deadline = HangDeadline();
    MC_TRY(rpc_->Call(static_cast<std::uint16_t>(method), body, deadline, raw_));
    return raw_.body();
  }
  template <typename Reply, typename Request>
  Reply Call(Method method, Request request) {
    request.caller.client = client_;
    Reply reply;
    const auto body = CallRaw(method, codec_.Encode(request));
    EXPECT_TRUE(body) << body.error().ToString();
    if (body) {
      const auto decoded = codec_.Decode(*body, reply);
      EXPECT_TRUE(decoded) << decoded.error().ToString();
    }
    return reply;
  }

  StoreCode Mount(std::uint64_t bytes, std::string name = "host1:12345",
                  std::string te_endpoint = "host1:23456") {
    return Call<MountSegmentReply>(
               Method::kMountSegment,
               MountSegmentRequest{.segment = {.id = {client_.first, 7},
                                               .name = std::move(name),
                                               .base_address = 0x7f0000000000,
                                               .size_bytes = bytes,
                                               .te_endpoint = std::move(te_endpoint),
                                               .protocol = "tcp"}})
        .code;
  }
  BatchPutStartReply Start(const std::vector<std::string_view>& keys, std::uint64_t bytes) {
    return Call<BatchPutStartReply>(
        Method::kBatchPutStart,
        BatchPutStartRequest{
            .chain = {.chain_id = ++chain_, .total = static_cast<std::uint32_t>(keys.size())},
            .keys = keys,
            .sizes_bytes = std::vector<std::uint64_t>(keys.size(), bytes)});
  }
  BatchPutEndReply End(const std::vector<std::string_view>& keys, bool success = true) {
    return Call<BatchPutEndReply>(
        Method::kBatchPutEnd,
        BatchPutEndRequest{.keys = keys,
                           .endings = std::vector<PutEnding>(keys.size(), {.success = success})});
  }
  StoreCode Put(std::string_view key, std::uint64_t bytes) {
    const StoreCode code = Start({key}, bytes).results.at(0).code;
    return code == StoreCode::kOk ? End({key}).codes.at(0) : code;
  }
  bool Exists(std::string_view key) {
    return Call<BatchExistReply>(
               Method::kBatchExist,
               BatchExistRequest{.chain = {.chain_id = ++chain_, .total = 1}, .keys = {key}})
               .exists.at(0) == 1;
  }
  StoreCode Remove(std::string_view key) {
    return Call<BatchRemoveReply>(Method::kBatchRemove, BatchRemoveRequest{.keys = {key}})
        .codes.at(0);
  }

 private:
  const Uuid client_;
  Reactor reactor_;
  std::unique_ptr<rpc::RpcClient> rpc_;
  rpc::RpcReply raw_;
  Codec codec_;
  std::uint64_t chain_ = 0;
};

class ServerTest : public testing::Test {
 protected:
  static ServerOptions Options() {
    ServerOptions options;
    options.rpc_host = "127.0.0.1";
    options.rpc_port = 0;
    options.admin_host = "127.0.0.1";
    options.admin_port = 0;
    options.metadata_host = "127.0.0.1";
    options.metadata_port = 0;
    // Nothing ends because a test was held up.
    options.master.lease_ttl = std::chrono::hours(1);
    options.master.client_ttl = std::chrono::hours(1);
    return options;
  }

  void Begin(const ServerOptions& options = Options()) {
    server_ = std::make_unique<MasterServer>(options);
    const auto started = server_->Start();
    ASSERT_TRUE(started) << started.error().ToString();
  }

  HttpResponse Http(std::string_view path, std::string method = "GET") {
    auto response =
        http_.Send({.method = std::move(method),
                    .url = fmt::format("http://127.0.0.1:{}{}", server_->admin_port(), path)});
    EXPECT_TRUE(response) << response.error().ToString();
    return response ? std::move(*response) : HttpResponse{.status = 0};
  }
  // The value of one sample; -1 if it is not there.
  double Metric(const std::string& name) {
    const std::string text = "\n" + Http("/metrics").body;
    const std::size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  std::unique_ptr<MasterServer> server_;
  HttpClient http_{{.total_timeout = kHangLimit, .connect_timeout = kHangLimit}};
};

}  // namespace mooncake::store
