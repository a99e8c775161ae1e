// The metrics of one program or client, and their text form for Prometheus.
//
//   Registry registry;
//   Counter& puts = registry.AddCounter("master_put_start_requests_total", "Puts begun");
//   GaugeFamily& used = registry.AddGaugeFamily("segment_allocated_bytes", "...", {"segment"});
//   used.With({"node1:12345"}).Set(4096);
//
// A family is written out from the moment it is added, also while it is zero or has no label values
// yet, so that dashboards find every name.
//
// Thread-safety: any thread. Families live as long as the registry. Names and labels are ours, so a
// malformed or repeated one aborts; label values may be any text.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/metrics/metric.h"

namespace mooncake {

// Media type of Registry::Expose().
inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4";

// The metrics of one name that differ in the values of their labels.
//
// Thread-safety: any thread. With() takes a lock: keep what it returns.
template <typename Metric>
class MetricFamily {
 public:
  using Make = std::function<std::unique_ptr<Metric>()>;
  using Members = std::map<std::vector<std::string>, std::shared_ptr<Metric>>;

  MetricFamily(std::vector<std::string> label_names, Make make);

  // The metric with these values, one for each label name; made at first use. It stays good until
  // Remove() of the same values.
  [[nodiscard]] Metric& With(const std::vector<std::string>& label_values) MC_EXCLUDES(mutex_);

  // Ends the metric of something that is gone (a segment). Nobody may hold it any more.
  void Remove(const std::vector<std::string>& label_values) MC_EXCLUDES(mutex_);

  [[nodiscard]] const std::vector<std::string>& label_names() const { return label_names_; }
  // All there are now, ordered by their values.
  [[nodiscard]] Members Read() const MC_EXCLUDES(mutex_);

 private:
  const std::vector<std::string> label_names_;
  const Make make_;
  mutable Mutex mutex_;
  Members members_ MC_GUARDED_BY(mutex_);
};

using CounterFamily = MetricFamily<Counter>;
using GaugeFamily = MetricFamily<Gauge>;
using HistogramFamily = MetricFamily<Histogram>;

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter& AddCounter(std::string_view name, std::string_view help);
  Gauge& AddGauge(std::string_view name, std::string_view help);
  Histogram& AddHistogram(std::string_view name, std::string_view help,
                          std::span<const std::uint64_t> bounds);

  CounterFamily& AddCounterFamily(std::string_view name, std::string_view help,
                                  std::vector<std::string> label_names);
  GaugeFamily& AddGaugeFamily(std::string_view name, std::string_view help,
                              std::vector<std::string> label_names);
  HistogramFamily& AddHistogramFamily(std::string_view name, std::string_view help,
                                      std::span<const std::uint64_t> bounds,
                                      std::vector<std::string> label_names);

  // All families in the text format 0.0.4, in the order in which they were added.
  [[nodiscard]] std::string Expose() const MC_EXCLUDES(mutex_);

  // The names of all families, in that order.
  [[nodiscard]] std::vector<std::string> Names() const MC_EXCLUDES(mutex_);

 private:
  struct Family;

  void Add(Family family) MC_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<const Family*> Families() const MC_EXCLUDES(mutex_);

  mutable Mutex mutex_;
  // Only ever grows; a family that is in here does not change any more.
  std::vector<std::unique_ptr<const Family>> families_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake
