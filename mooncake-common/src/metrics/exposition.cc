#include "mooncake-common/src/metrics/exposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace mooncake {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Appends `text` with backslash and line end escaped, and quotes where they would end the value.
void AppendEscaped(std::string& out, std::string_view text, bool escape_quotes) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && escape_quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

}  // namespace

bool IsMetricName(std::string_view name) {
  return !name.empty() && !IsDigit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return IsLetter(c) || IsDigit(c) || c == ':'; });
}

bool IsLabelName(std::string_view name) {
  return IsMetricName(name) && name.find(':') == std::string_view::npos;
}

void ExpositionWriter::Family(std::string_view name, std::string_view help, std::string_view type) {
  fmt::format_to(std::back_inserter(text_), "# HELP {} ", name);
  AppendEscaped(text_, help, false);
  fmt::format_to(std::back_inserter(text_), "\n# TYPE {} {}\n", name, type);
}

void ExpositionWriter::Sample(std::string_view name, const Labels& labels, std::uint64_t value) {
  NameAndLabels(name, labels);
  fmt::format_to(std::back_inserter(text_), " {}\n", value);
}

void ExpositionWriter::Sample(std::string_view name, const Labels& labels, std::int64_t value) {
  NameAndLabels(name, labels);
  fmt::format_to(std::back_inserter(text_), " {}\n", value);
}

void ExpositionWriter::Sample(std::string_view name, const Labels& labels,
                              const Histogram::Snapshot& value) {
  const std::string bucket_name = fmt::format("{}_bucket", name);
  Labels with_bound = labels;
  with_bound.emplace_back("le", "");
  std::uint64_t below = 0;
  for (std::size_t bucket = 0; bucket < value.bounds.size(); ++bucket) {
    below += value.counts[bucket];
    with_bound.back().second = fmt::format("{}", value.bounds[bucket]);
    Sample(bucket_name, with_bound, below);
  }
  with_bound.back().second = "+Inf";
  Sample(bucket_name, with_bound, value.count);
  Sample(fmt::format("{}_sum", name), labels, value.sum);
  Sample(fmt::format("{}_count", name), labels, value.count);
}

void ExpositionWriter::NameAndLabels(std::string_view name, const Labels& labels) {
  text_ += name;
  char separator = '{';
  for (const auto& [label, value] : labels) {
    text_ += separator;
    text_ += label;
    text_ += "=\"";
    AppendEscaped(text_, value, true);
    text_ += '"';
    separator = ',';
  }
  if (!labels.empty()) {
    text_ += '}';
  }
}

}  // namespace mooncake
