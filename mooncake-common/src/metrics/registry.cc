#include "mooncake-common/src/metrics/registry.h"

#include <algorithm>
#include <variant>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/metrics/exposition.h"

namespace mooncake {
namespace {

using Source = std::variant<std::unique_ptr<CounterFamily>, std::unique_ptr<GaugeFamily>,
                            std::unique_ptr<HistogramFamily>>;

std::string_view TypeOf(const Source& source) {
  if (std::holds_alternative<std::unique_ptr<CounterFamily>>(source)) {
    return "counter";
  }
  return std::holds_alternative<std::unique_ptr<HistogramFamily>>(source) ? "histogram" : "gauge";
}

auto ValueOf(const Counter& counter) { return counter.Value(); }
auto ValueOf(const Gauge& gauge) { return gauge.Value(); }
auto ValueOf(const Histogram& histogram) { return histogram.Read(); }

template <typename Metric>
void WriteMembers(ExpositionWriter& writer, const std::string& name,
                  const MetricFamily<Metric>& family) {
  for (const auto& [values, metric] : family.Read()) {
    ExpositionWriter::Labels labels;
    for (std::size_t i = 0; i < values.size(); ++i) {
      labels.emplace_back(family.label_names()[i], values[i]);
    }
    writer.Sample(name, labels, ValueOf(*metric));
  }
}

}  // namespace

template <typename Metric>
MetricFamily<Metric>::MetricFamily(std::vector<std::string> label_names, Make make)
    : label_names_(std::move(label_names)), make_(std::move(make)) {
  MC_CHECK(std::ranges::all_of(label_names_, IsLabelName));
}

template <typename Metric>
Metric& MetricFamily<Metric>::With(const std::vector<std::string>& label_values) {
  MC_CHECK(label_values.size() == label_names_.size());
  const MutexLock lock(mutex_);
  std::shared_ptr<Metric>& member = members_[label_values];
  if (member == nullptr) {
    member = make_();
  }
  return *member;
}

template <typename Metric>
void MetricFamily<Metric>::Remove(const std::vector<std::string>& label_values) {
  const MutexLock lock(mutex_);
  members_.erase(label_values);
}

template <typename Metric>
typename MetricFamily<Metric>::Members MetricFamily<Metric>::Read() const {
  const MutexLock lock(mutex_);
  return members_;
}

template class MetricFamily<Counter>;
template class MetricFamily<Gauge>;
template class MetricFamily<Histogram>;

struct Registry::Family {
  std::string name;
  std::string help;
  Source source;
};

Registry::Registry() = default;
Registry::~Registry() = default;

Counter& Registry::AddCounter(std::string_view name, std::string_view help) {
  return AddCounterFamily(name, help, {}).With({});
}

Gauge& Registry::AddGauge(std::string_view name, std::string_view help) {
  return AddGaugeFamily(name, help, {}).With({});
}

Histogram& Registry::AddHistogram(std::string_view name, std::string_view help,
                                  std::span<const std::uint64_t> bounds) {
  return AddHistogramFamily(name, help, bounds, {}).With({});
}

CounterFamily& Registry::AddCounterFamily(std::string_view name, std::string_view help,
                                          std::vector<std::string> label_names) {
  auto family = std::make_unique<CounterFamily>(std::move(label_names),
                                                [] { return std::make_unique<Counter>(); });
  CounterFamily& added = *family;
  Add({.name = std::string(name), .help = std::string(help), .source = std::move(family)});
  return added;
}

GaugeFamily& Registry::AddGaugeFamily(std::string_view name, std::string_view help,
                                      std::vector<std::string> label_names) {
  auto family = std::make_unique<GaugeFamily>(std::move(label_names),
                                              [] { return std::make_unique<Gauge>(); });
  GaugeFamily& added = *family;
  Add({.name = std::string(name), .help = std::string(help), .source = std::move(family)});
  return added;
}

HistogramFamily& Registry::AddHistogramFamily(std::string_view name, std::string_view help,
                                              std::span<const std::uint64_t> bounds,
                                              std::vector<std::string> label_names) {
  MC_CHECK(std::ranges::find(label_names, "le") == label_names.end());
  auto family = std::make_unique<HistogramFamily>(
      std::move(label_names), [own_bounds = std::vector(bounds.begin(), bounds.end())] {
        return std::make_unique<Histogram>(own_bounds);
      });
  HistogramFamily& added = *family;
  Add({.name = std::string(name), .help = std::string(help), .source = std::move(family)});
  return added;
}

void Registry::Add(Family family) {
  MC_CHECK(IsMetricName(family.name));
  const MutexLock lock(mutex_);
  MC_CHECK(std::ranges::none_of(families_,
                                [&](const auto& other) { return other->name == family.name; }));
  families_.push_back(std::make_unique<const Family>(std::move(family)));
}

std::vector<const Registry::Family*> Registry::Families() const {
  const MutexLock lock(mutex_);
  std::vector<const Family*> all;
  all.reserve(families_.size());
  for (const auto& family : families_) {
    all.push_back(family.get());
  }
  return all;
}

std::string Registry::Expose() const {
  ExpositionWriter writer;
  for (const Family* family : Families()) {
    writer.Family(family->name, family->help, TypeOf(family->source));
    std::visit([&](const auto& source) { WriteMembers(writer, family->name, *source); },
               family->source);
  }
  return writer.Take();
}

std::vector<std::string> Registry::Names() const {
  std::vector<std::string> names;
  for (const Family* family : Families()) {
    names.push_back(family->name);
  }
  return names;
}

}  // namespace mooncake
