// The metrics in one line for people.
#include <fmt/format.h>

#include <iterator>

#include "mooncake-common/src/base/byte_size.h"
#include "mooncake-store/src/server/metrics_families.h"

namespace mooncake::store {

std::string MasterMetrics::Summary() const {
  const Families& families = *families_;
  const MasterCounters& counters = master_.counters();
  const Master::Usage usage = master_.MeasureUsage();
  std::string text = fmt::format(
      "role=leader, state=serving, service_ready=true, master={{Mem Storage: {} / {} | Keys: {} "
      "(soft-pinned: {}) | Clients: {} | Requests (Success/Total):",
      FormatByteSize(usage.used_bytes), FormatByteSize(usage.capacity_bytes),
      counters.objects.load(), counters.soft_pinned_objects.load(), master_.client_count());
  const auto operation = [&](const char* name, const OperationCounters& of) {
    const std::uint64_t failures = of.failures.Value();  // First: a request is counted before.
    const std::uint64_t total = of.requests.Value();
    fmt::format_to(std::back_inserter(text), " {}={}/{},", name, total - failures, total);
  };
  operation("PutStart", families.put_start);
  operation("PutEnd", families.put_end);
  operation("PutRevoke", families.put_revoke);
  operation("Get", families.get_replica_list);
  operation("Exist", families.exist_key);
  operation("Del", families.remove);
  operation("DelAll", families.remove_all);
  operation("Ping", families.ping);
  text.pop_back();
  text += " | Batch Requests (Req=Success/PartialSuccess/Total, Item=Success/Total):";
  const auto batch = [&](const char* name, const BatchCounters& of) {
    const std::uint64_t failures = of.failures.Value();
    const std::uint64_t partial = of.partial_successes.Value();
    const std::uint64_t total = of.requests.Value();
    const std::uint64_t failed_items = of.failed_items.Value();
    const std::uint64_t items = of.items.Value();
    fmt::format_to(std::back_inserter(text), " {}:(Req={}/{}/{}, Item={}/{}),", name,
                   total - failures - partial, partial, total, items - failed_items, items);
  };
  batch("PutStart", families.batch_put_start);
  batch("PutEnd", families.batch_put_end);
  batch("PutRevoke", families.batch_put_revoke);
  batch("Get", families.batch_get_replica_list);
  batch("ExistKey", families.batch_exist_key);
  batch("Clear", families.batch_replica_clear);
  text.pop_back();
  fmt::format_to(std::back_inserter(text),
                 " | Eviction: Success/Attempts={}/{}, AllocFail={}, PartialAlloc={}, keys={}, "
                 "size={} | Discard: Released/Total={}/{}, StagingSize={}}}, ha={{off}}",
                 counters.evictions_successful.load(), counters.evictions_attempted.load(),
                 counters.put_alloc_failures.load(), counters.put_partial_allocations.load(),
                 counters.evicted_objects.load(), FormatByteSize(counters.evicted_bytes.load()),
                 counters.puts_released.load(), counters.puts_discarded.load(),
                 FormatByteSize(counters.resting_bytes.load()));
  return text;
}

}  // namespace mooncake::store
