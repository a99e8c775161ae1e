// Lines of the Prometheus text format 0.0.4.
//
// Thread-safety: none; one writer a page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mooncake-common/src/metrics/metric.h"

namespace mooncake {

// [a-zA-Z_:][a-zA-Z0-9_:]*, for labels without the colon.
[[nodiscard]] bool IsMetricName(std::string_view name);
[[nodiscard]] bool IsLabelName(std::string_view name);

class ExpositionWriter {
 public:
  // Names with their values, in the order in which they are written.
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // Begins a family; its samples follow. `type` is counter, gauge or histogram.
  void Family(std::string_view name, std::string_view help, std::string_view type);

  void Sample(std::string_view name, const Labels& labels, std::uint64_t value);
  void Sample(std::string_view name, const Labels& labels, std::int64_t value);
  void Sample(std::string_view name, const Labels& labels, const Histogram::Snapshot& value);

  [[nodiscard]] std::string Take() { return std::move(text_); }

 private:
  void NameAndLabels(std::string_view name, const Labels& labels);

  std::string text_;
};

}  // namespace mooncake
