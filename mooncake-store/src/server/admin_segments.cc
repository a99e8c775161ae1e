// Admin routes that look at segments.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "mooncake-common/src/base/byte_size.h"
#include "mooncake-store/src/server/admin_http.h"
#include "mooncake-store/src/server/admin_reply.h"

namespace mooncake::store {

namespace {

std::string_view StatusName(SegmentStatus status) {
  switch (status) {
    case SegmentStatus::kUndefined:
      break;
    case SegmentStatus::kOk:
      return "OK";
    case SegmentStatus::kDraining:
      return "DRAINING";
    case SegmentStatus::kDrained:
      return "DRAINED";
    case SegmentStatus::kGracefullyUnmounting:
      return "GRACEFULLY_UNMOUNTING";
    case SegmentStatus::kUnmounting:
      return "UNMOUNTING";
  }
  return "UNDEFINED";
}

// For a segment that clients could not read: fields that the published interface does not have.
void AddQuarantine(const SegmentReport& report, Json& json) {
  if (report.quarantined) {
    json["quarantined"] = true;
    json["quarantine_reason"] = "clients reported that they could not read it";
  }
}

Json DetailJson(const SegmentReport& report) {
  const SegmentInfo& info = report.segment.info;
  const double percent = report.capacity_bytes == 0
                             ? 0.0
                             : static_cast<double>(report.used_bytes) * 100.0 /
                                   static_cast<double>(report.capacity_bytes);
  Json json{{"segment_name", info.name},
            {"segment_id", info.id.ToString()},
            {"client_id", report.segment.owner.ToString()},
            {"base_address", fmt::format("{:#x}", info.base_address)},
            {"size_bytes", info.size_bytes},
            {"size_human", fmt::format("{:g} GiB", static_cast<double>(info.size_bytes) /
                                                       static_cast<double>(kGiB))},
            {"te_endpoint", info.te_endpoint},
            {"protocol", info.protocol},
            {"status", StatusName(report.segment.status)},
            {"allocator_used_bytes", report.used_bytes},
            {"allocator_capacity_bytes", report.capacity_bytes},
            {"allocator_usage_percent", percent}};
  AddQuarantine(report, json);
  return json;
}

}  // namespace

HttpResponse AdminHttp::GetAllSegments(const HttpRequest&) {
  std::set<std::string> names;  // Several segments may share one.
  for (const SegmentReport& report : master_.ReportSegments(clock_.Now())) {
    names.insert(report.segment.info.name);
  }
  std::string text;
  for (const std::string& name : names) {
    text += name;
    text += '\n';
  }
  return ListReply(std::move(text));
}

HttpResponse AdminHttp::GetSegmentsDetail(const HttpRequest&) {
  Json segments = Json::array();
  for (const SegmentReport& report : master_.ReportSegments(clock_.Now())) {
    segments.push_back(DetailJson(report));
  }
  const std::size_t count = segments.size();
  return JsonReply({{"total_segments", count}, {"segments", std::move(segments)}});
}

HttpResponse AdminHttp::QuerySegment(const HttpRequest& request) {
  const std::string name(request.Query("segment").value_or(""));
  bool found = false;
  std::uint64_t used_bytes = 0;
  std::uint64_t capacity_bytes = 0;
  for (const SegmentReport& report : master_.ReportSegments(clock_.Now())) {
    if (report.segment.info.name == name) {
      found = true;
      used_bytes += report.used_bytes;
      capacity_bytes += report.capacity_bytes;
    }
  }
  if (!found) {
    return ListReply("Failed to query segment", 500);
  }
  return ListReply(
      fmt::format("{}\nUsed(bytes): {}\nCapacity(bytes) : {}\n", name, used_bytes, capacity_bytes));
}

HttpResponse AdminHttp::SegmentStatusOf(const HttpRequest& request) {
  const auto name = request.Query("segment");
  if (!name || name->empty()) {
    return ErrorReply(400, StoreCode::kInvalidParams, "Missing segment query parameter");
  }
  const auto reports = master_.ReportSegments(clock_.Now());
  const auto found = std::ranges::find_if(
      reports, [&](const SegmentReport& report) { return report.segment.info.name == *name; });
  if (found == reports.end()) {
    return ErrorReply(404, StoreCode::kSegmentNotFound);
  }
  const SegmentStatus status = found->segment.status;
  Json json{{"success", true},
            {"segment", *name},
            {"status", static_cast<int>(status)},
            {"status_name", StatusName(status)},
            {"error_code", 0},
            {"error_message", ""}};
  AddQuarantine(*found, json);
  return JsonReply(json);
}

}  // namespace mooncake::store
