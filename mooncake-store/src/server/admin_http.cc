#include "mooncake-store/src/server/admin_http.h"

#include "mooncake-store/src/server/admin_reply.h"

namespace mooncake::store {

void AdminHttp::Attach(HttpServer& server) {
  const auto route = [&]<typename Answer>(std::string_view method, std::string_view path,
                                          Handler<Answer> handler) {
    server.Handle(method, path, [this, handler](const HttpRequest& request) {
      return (this->*handler)(request);
    });
  };
  route("GET", "/metrics", &AdminHttp::Metrics);
  route("GET", "/metrics/summary", &AdminHttp::MetricsSummary);
  route("GET", "/health", &AdminHttp::Health);
  route("GET", "/role", &AdminHttp::Role);
  route("GET", "/ha_status", &AdminHttp::HaStatus);
  route("GET", "/leader", &AdminHttp::Leader);
  route("GET", "/kv_events/status", &AdminHttp::KvEventsStatus);

  route("GET", "/query_key", &AdminHttp::QueryKey);
  route("GET", "/batch_query_keys", &AdminHttp::BatchQueryKeys);
  route("GET", "/get_all_keys", &AdminHttp::GetAllKeys);
  route("POST", "/api/v1/remove_all", &AdminHttp::RemoveAll);

  route("GET", "/get_all_segments", &AdminHttp::GetAllSegments);
  route("GET", "/get_segments_detail", &AdminHttp::GetSegmentsDetail);
  route("GET", "/query_segment", &AdminHttp::QuerySegment);
  route("GET", "/api/v1/segments/status", &AdminHttp::SegmentStatusOf);

  route("POST", "/api/v1/drain_jobs", &AdminHttp::NotBuilt);
  route("GET", "/api/v1/drain_jobs/query", &AdminHttp::NotBuilt);
  route("POST", "/api/v1/drain_jobs/cancel", &AdminHttp::NotBuilt);
  for (const std::string_view method : {"GET", "PUT", "DELETE"}) {
    route(method, "/api/v1/tenant_quotas", &AdminHttp::NotBuilt);
  }
  server.SetFallback(
      [](const HttpRequest&) { return HttpResponse{.status = 404, .body = "404 Not Found"}; });
}

HttpResponse AdminHttp::Metrics(const HttpRequest&) { return ListReply(metrics_.Expose()); }

HttpResponse AdminHttp::MetricsSummary(const HttpRequest&) { return ListReply(metrics_.Summary()); }

HttpResponse AdminHttp::Health(const HttpRequest&) {
  return JsonReply({{"status", "ok"},
                    {"role", "leader"},
                    {"ha_state", "serving"},
                    {"service_ready", true},
                    {"leader_address", nullptr},
                    {"view_version", nullptr}});
}

HttpResponse AdminHttp::Role(const HttpRequest&) { return TextReply("leader"); }

HttpResponse AdminHttp::HaStatus(const HttpRequest&) { return TextReply("serving"); }

HttpResponse AdminHttp::Leader(const HttpRequest&) {
  return JsonReply({{"present", false}, {"leader_address", nullptr}, {"view_version", nullptr}});
}

HttpResponse AdminHttp::KvEventsStatus(const HttpRequest&) {
  return JsonReply({{"enabled", false},
                    {"published_batches", 0},
                    {"published_events", 0},
                    {"dropped_events", 0},
                    {"skipped_unparsed_keys", 0}});
}

// What the published master answers, too, while such a feature is switched off.
HttpResponse AdminHttp::NotBuilt(const HttpRequest&) {
  return ErrorReply(409, StoreCode::kUnavailableInCurrentMode);
}

}  // namespace mooncake::store
