#include "mooncake-store/src/server/service.h"

#include <fmt/format.h>

#include <tuple>
#include <type_traits>

#include "mooncake-common/src/base/log.h"
#include "mooncake-store/src/protocol/codec.h"
#include "mooncake-store/src/server/version.h"

namespace mooncake::store {

namespace {

// What one thread of the RPC server works with, reused from request to request. One set serves all
// masters of a process: nothing stays in it between two requests but memory.
struct ThreadState {
  Codec codec;
  std::tuple<PingRequest, MountSegmentRequest, UnmountSegmentRequest, ReMountSegmentsRequest,
             QuerySegmentsRequest, ReportFailedReadsRequest, BatchExistRequest,
             BatchGetReplicasRequest, GetReplicasByRegexRequest, BatchPutStartRequest,
             BatchPutEndRequest, BatchRemoveRequest, RemoveByRegexRequest, RemoveAllRequest,
             BatchReplicaClearRequest>
      requests;
  std::tuple<PingReply, MountSegmentReply, UnmountSegmentReply, ReMountSegmentsReply,
             QuerySegmentsReply, ReportFailedReadsReply, BatchExistReply, BatchGetReplicasReply,
             BatchPutStartReply, BatchPutEndReply, BatchRemoveReply, RemoveManyReply,
             BatchReplicaClearReply>
      replies;
};

ThreadState& ThisThread() {
  thread_local ThreadState state;
  return state;
}

}  // namespace

std::string_view MethodName(Method method) {
  switch (method) {
    case Method::kServiceReady:
      return "ServiceReady";
    case Method::kPing:
      return "Ping";
    case Method::kMountSegment:
      return "MountSegment";
    case Method::kUnmountSegment:
      return "UnmountSegment";
    case Method::kReMountSegments:
      return "ReMountSegments";
    case Method::kQuerySegments:
      return "QuerySegments";
    case Method::kBatchExist:
      return "BatchExist";
    case Method::kBatchGetReplicas:
      return "BatchGetReplicas";
    case Method::kGetReplicasByRegex:
      return "GetReplicasByRegex";
    case Method::kBatchPutStart:
      return "BatchPutStart";
    case Method::kBatchPutEnd:
      return "BatchPutEnd";
    case Method::kBatchRemove:
      return "BatchRemove";
    case Method::kRemoveByRegex:
      return "RemoveByRegex";
    case Method::kRemoveAll:
      return "RemoveAll";
    case Method::kBatchReplicaClear:
      return "BatchReplicaClear";
    case Method::kReportFailedReads:
      return "ReportFailedReads";
  }
  return "unknown";
}

template <typename Request, typename Answer>
void MasterService::WithRequest(Method method, std::span<const std::byte> body,
                                rpc::ReplyWriter& writer, const rpc::PeerInfo& peer,
                                Answer answer) {
  ThreadState& state = ThisThread();
  auto& request = std::get<Request>(state.requests);
  if (const auto decoded = state.codec.Decode(body, request); !decoded) {
    metrics_.CountMalformed();
    const Error error{
        ErrorCode::kInvalidArgument,
        fmt::format("the master refused a {} of {} bytes: {}; is the client's version the same?",
                    MethodName(method), body.size(), decoded.error().message)};
    MC_LOG_WARNING("rpc: {} from {}", error.message, peer.address);
    writer.Fail(error);
    return;
  }
  answer(state, request);
}

template <typename Request, typename Reply>
void MasterService::Add(rpc::RpcServer& server, Method method) {
  server.Register(static_cast<std::uint16_t>(method),
                  [this, method](std::span<const std::byte> body, rpc::ReplyWriter& writer,
                                 const rpc::PeerInfo& peer) {
                    WithRequest<Request>(method, body, writer, peer,
                                         [&](ThreadState& state, Request& request) {
                                           auto& reply = std::get<Reply>(state.replies);
                                           master_.Handle(request, clock_.Now(), reply);
                                           metrics_.Count(request, reply);
                                           writer.Append(state.codec.Encode(reply));
                                         });
                  });
}

bool MasterService::Step(ObjectSweep& sweep, const Uuid& client, GetReplicasByRegexReply& reply) {
  return master_.StepGet(sweep, client, clock_.Now(), reply);
}

bool MasterService::Step(ObjectSweep& sweep, const Uuid&, RemoveManyReply& reply) {
  const bool done = master_.StepRemove(sweep, clock_.Now());
  reply.removed = sweep.removed;
  return done;
}

template <typename Request>
void MasterService::AddSweep(rpc::RpcServer& server, Method method) {
  using Reply = std::conditional_t<std::is_same_v<Request, GetReplicasByRegexRequest>,
                                   GetReplicasByRegexReply, RemoveManyReply>;
  server.Register(
      static_cast<std::uint16_t>(method),
      [this, method](std::span<const std::byte> body, rpc::ReplyWriter& writer,
                     const rpc::PeerInfo& peer) {
        WithRequest<Request>(method, body, writer, peer, [&](ThreadState& state, Request& request) {
          ObjectSweep sweep;
          Reply reply;
          reply.code = Master::Begin(request, sweep);
          if (reply.code != StoreCode::kOk) {
            metrics_.Count(request, reply);
            writer.Append(state.codec.Encode(reply));
            return;
          }
          // The request is a view of `body`, which does not live on.
          writer.Later([this, client = request.caller.client, sweep = std::move(sweep),
                        reply = std::move(reply)](rpc::ReplyWriter& later) mutable {
            const bool done = Step(sweep, client, reply);
            if (done) {
              metrics_.Count(Request{}, reply);
              later.Append(ThisThread().codec.Encode(reply));
            }
            return done;
          });
        });
      });
}

void MasterService::AddReady(rpc::RpcServer& server) {
  server.Register(static_cast<std::uint16_t>(Method::kServiceReady), [](std::span<const std::byte>,
                                                                        rpc::ReplyWriter& writer,
                                                                        const rpc::PeerInfo&) {
    writer.Append(ThisThread().codec.Encode(ServiceReadyReply{.version = std::string(Version())}));
  });
}

void MasterService::RegisterWith(rpc::RpcServer& server) {
  AddReady(server);
  Add<PingRequest, PingReply>(server, Method::kPing);
  Add<MountSegmentRequest, MountSegmentReply>(server, Method::kMountSegment);
  Add<UnmountSegmentRequest, UnmountSegmentReply>(server, Method::kUnmountSegment);
  Add<ReMountSegmentsRequest, ReMountSegmentsReply>(server, Method::kReMountSegments);
  Add<QuerySegmentsRequest, QuerySegmentsReply>(server, Method::kQuerySegments);
  Add<BatchExistRequest, BatchExistReply>(server, Method::kBatchExist);
  Add<BatchGetReplicasRequest, BatchGetReplicasReply>(server, Method::kBatchGetReplicas);
  Add<BatchPutStartRequest, BatchPutStartReply>(server, Method::kBatchPutStart);
  Add<BatchPutEndRequest, BatchPutEndReply>(server, Method::kBatchPutEnd);
  Add<BatchRemoveRequest, BatchRemoveReply>(server, Method::kBatchRemove);
  Add<BatchReplicaClearRequest, BatchReplicaClearReply>(server, Method::kBatchReplicaClear);
  Add<ReportFailedReadsRequest, ReportFailedReadsReply>(server, Method::kReportFailedReads);
  AddSweep<GetReplicasByRegexRequest>(server, Method::kGetReplicasByRegex);
  AddSweep<RemoveByRegexRequest>(server, Method::kRemoveByRegex);
  AddSweep<RemoveAllRequest>(server, Method::kRemoveAll);
}

}  // namespace mooncake::store
