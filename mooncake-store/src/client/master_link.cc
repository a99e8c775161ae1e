#include "mooncake-store/src/client/master_link.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "mooncake-common/src/base/address.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {
namespace {

template <typename Request>
constexpr Method MethodOf() {
  if constexpr (std::is_same_v<Request, PingRequest>) {
    return Method::kPing;
  } else if constexpr (std::is_same_v<Request, MountSegmentRequest>) {
    return Method::kMountSegment;
  } else if constexpr (std::is_same_v<Request, ReMountSegmentsRequest>) {
    return Method::kReMountSegments;
  } else if constexpr (std::is_same_v<Request, UnmountSegmentRequest>) {
    return Method::kUnmountSegment;
  } else if constexpr (std::is_same_v<Request, QuerySegmentsRequest>) {
    return Method::kQuerySegments;
  } else if constexpr (std::is_same_v<Request, BatchExistRequest>) {
    return Method::kBatchExist;
  } else if constexpr (std::is_same_v<Request, BatchGetReplicasRequest>) {
    return Method::kBatchGetReplicas;
  } else if constexpr (std::is_same_v<Request, GetReplicasByRegexRequest>) {
    return Method::kGetReplicasByRegex;
  } else if constexpr (std::is_same_v<Request, BatchPutStartRequest>) {
    return Method::kBatchPutStart;
  } else if constexpr (std::is_same_v<Request, BatchPutEndRequest>) {
    return Method::kBatchPutEnd;
  } else if constexpr (std::is_same_v<Request, BatchRemoveRequest>) {
    return Method::kBatchRemove;
  } else if constexpr (std::is_same_v<Request, RemoveByRegexRequest>) {
    return Method::kRemoveByRegex;
  } else if constexpr (std::is_same_v<Request, RemoveAllRequest>) {
    return Method::kRemoveAll;
  } else if constexpr (std::is_same_v<Request, BatchReplicaClearRequest>) {
    return Method::kBatchReplicaClear;
  } else {
    static_assert(std::is_same_v<Request, ReportFailedReadsRequest>);
    return Method::kReportFailedReads;
  }
}

// `visit(method, request, reply)` for the call's messages. An operation never asks for nothing.
template <typename Visit>
auto WithExchange(const MasterCall& call, Visit visit) {
  using Outcome = decltype(visit(Method::kPing, std::declval<const PingRequest&>(),
                                 std::declval<PingReply&>()));
  return std::visit(
      [&](const auto& exchange) -> Outcome {
        using E = std::remove_cvref_t<decltype(exchange)>;
        if constexpr (std::is_same_v<E, std::monostate>) {
          MC_CHECK(false && "a call without a message");
          std::unreachable();
        } else {
          return visit(MethodOf<typename E::RequestType>(), *exchange.request, *exchange.reply);
        }
      },
      call);
}

}  // namespace

Result<std::unique_ptr<MasterLink>> MasterLink::Create(Reactor& reactor,
                                                       const std::string& address) {
  MC_TRY_ASSIGN(const HostPort parsed, ParseHostPort(address));
  if (!parsed.port) {
    return Fail(ErrorCode::kInvalidArgument,
                "master address '" + address + "' has no port; write host:port");
  }
  MC_TRY_ASSIGN(auto client,
                rpc::RpcClient::Create(reactor, {.host = parsed.host, .port = *parsed.port}));
  return std::unique_ptr<MasterLink>(new MasterLink(address, std::move(client)));
}

Result<void> MasterLink::Call(const MasterCall& call, Instant deadline, CallContext& context) {
  return WithExchange(call, [&](Method method, const auto& request, auto& reply) -> Result<void> {
    MC_TRY(client_->Call(static_cast<std::uint16_t>(method), context.codec.Encode(request),
                         deadline, context.reply));
    return context.codec.Decode(context.reply.body(), reply);
  });
}

rpc::RpcClient::Started MasterLink::Start(const MasterCall& call, Instant deadline,
                                          CallContext& context, rpc::RpcClient::Callback callback) {
  return WithExchange(call, [&](Method method, const auto& request, auto& /*reply*/) {
    return client_->Start(static_cast<std::uint16_t>(method), context.codec.Encode(request),
                          deadline, std::move(callback));
  });
}

Result<void> MasterLink::Take(const MasterCall& call, std::span<const std::byte> body,
                              CallContext& context) {
  return WithExchange(call,
                      [&](Method /*method*/, const auto& /*request*/, auto& reply) -> Result<void> {
                        return context.codec.Decode(body, reply);
                      });
}

Result<std::string> MasterLink::ServiceReady(Instant deadline) {
  CallContext context;
  ServiceReadyReply ready;
  MC_TRY(client_->Call(static_cast<std::uint16_t>(Method::kServiceReady), {}, deadline,
                       context.reply));
  MC_TRY(context.codec.Decode(context.reply.body(), ready));
  return std::move(ready.version);
}

}  // namespace mooncake::store
