// The admin HTTP interface of a master: metrics, health, and what objects and segments there are.
// Paths, texts and field names are what the published master answers, because tools scrape them.
//
// Thread-safety: Attach() before the HTTP server starts; handlers run on its one thread.
// Ownership:     borrows all three; they must outlive the HTTP server's thread.
// Untrusted:     anybody who reaches the port may look and may remove everything: there is no
//                authentication. Bind it to an address that only operators reach.
// Source:        docs/operations.md.
//
// Where the published interface has one range for a replica, an object that lies on several ranges
// shows the first one and its total size, and an additional field `extents` with all of them.
#pragma once

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/net/http/server.h"
#include "mooncake-store/src/master/master.h"
#include "mooncake-store/src/server/metrics.h"

namespace mooncake::store {

class AdminHttp {
 public:
  AdminHttp(Master& master, MasterMetrics& metrics, const Clock& clock)
      : master_(master), metrics_(metrics), clock_(clock) {}

  // All routes, and the answer to unknown paths.
  void Attach(HttpServer& server);

 private:
  // GetAllKeys() and RemoveAll() visit every object, so they go in steps.
  template <typename Answer>
  using Handler = Answer (AdminHttp::*)(const HttpRequest& request);

  // ---- State of the service (admin_http.cc) ----
  HttpResponse Metrics(const HttpRequest& request);
  HttpResponse MetricsSummary(const HttpRequest& request);
  HttpResponse Health(const HttpRequest& request);
  HttpResponse Role(const HttpRequest& request);
  HttpResponse HaStatus(const HttpRequest& request);
  HttpResponse Leader(const HttpRequest& request);
  HttpResponse KvEventsStatus(const HttpRequest& request);
  HttpResponse NotBuilt(const HttpRequest& request);

  // ---- Objects (admin_objects.cc) ----
  HttpResponse QueryKey(const HttpRequest& request);
  HttpResponse BatchQueryKeys(const HttpRequest& request);
  HttpAnswer GetAllKeys(const HttpRequest& request);
  HttpAnswer RemoveAll(const HttpRequest& request);

  // ---- Segments (admin_segments.cc) ----
  HttpResponse GetAllSegments(const HttpRequest& request);
  HttpResponse GetSegmentsDetail(const HttpRequest& request);
  HttpResponse QuerySegment(const HttpRequest& request);
  HttpResponse SegmentStatusOf(const HttpRequest& request);

  Master& master_;
  MasterMetrics& metrics_;
  const Clock& clock_;
};

}  // namespace mooncake::store
