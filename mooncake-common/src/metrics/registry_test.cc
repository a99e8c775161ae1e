#include "mooncake-common/src/metrics/registry.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-common/src/metrics/exposition.h"

namespace mooncake {
namespace {

constexpr std::array<std::uint64_t, 2> kBounds = {10, 100};

struct Page {
  std::map<std::string, std::string> types;  // Of each family.
  std::map<std::string, double> samples;     // By name and labels as written.
};

// The name at the front of a sample, and what follows its labels; nullopt if that is malformed.
std::optional<std::pair<std::string, std::string_view>> SplitSample(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && line[at] != '{' && line[at] != ' ') {
    ++at;
  }
  const std::string name(line.substr(0, at));
  if (!IsMetricName(name)) {
    return std::nullopt;
  }
  if (at < line.size() && line[at] == '{') {
    do {
      const std::size_t equals = line.find("=\"", ++at);
      if (equals == std::string_view::npos || !IsLabelName(line.substr(at, equals - at))) {
        return std::nullopt;
      }
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        at += line[at] == '\\' ? 1 : 0;
      }
      ++at;
    } while (at < line.size() && line[at] == ',');
    if (at >= line.size() || line[at] != '}') {
      return std::nullopt;
    }
    ++at;
  }
  return std::pair(name, line.substr(at));
}

// The family a sample belongs to: its own name, or that of the histogram.
std::string FamilyOf(const Page& page, const std::string& name) {
  for (const std::string_view suffix : {"_bucket", "_sum", "_count"}) {
    if (name.ends_with(suffix)) {
      const std::string family = name.substr(0, name.size() - suffix.size());
      if (page.types.contains(family) && page.types.at(family) == "histogram") {
        return family;
      }
    }
  }
  return name;
}

// Reads the text format strictly, as a scraper does.
Page Parse(const std::string& text) {
  Page page;
  std::string family;
  EXPECT_TRUE(text.ends_with('\n'));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    SCOPED_TRACE(line);
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_FALSE(page.types.contains(family)) << "twice";
    } else if (line.starts_with("# TYPE ")) {
      const std::string type = line.substr(line.rfind(' ') + 1);
      EXPECT_EQ(line, fmt::format("# TYPE {} {}", family, type));
      EXPECT_TRUE(type == "counter" || type == "gauge" || type == "histogram");
      page.types.emplace(family, type);
    } else {
      const auto split = SplitSample(line);
      if (!split || !split->second.starts_with(' ')) {
        ADD_FAILURE() << "malformed";
        continue;
      }
      EXPECT_EQ(FamilyOf(page, split->first), family);
      double value = 0;
      const std::string_view number = split->second.substr(1);
      const char* const begin = number.data();
      const char* const end = begin + number.size();
      EXPECT_EQ(std::from_chars(begin, end, value).ptr, end);
      const std::string key = line.substr(0, line.size() - split->second.size());
      EXPECT_TRUE(page.samples.emplace(key, value).second) << "twice";
    }
  }
  return page;
}

TEST(Registry, WritesEachFamilyAlsoWhileItIsZeroOrEmpty) {
  Registry registry;
  registry.AddCounter("requests_total", "Requests");
  registry.AddGaugeFamily("segment_bytes", "Bytes", {"segment"});
  registry.AddHistogram("latency_us", "Latency", kBounds);
  EXPECT_EQ(registry.Expose(),
            "# HELP requests_total Requests\n"
            "# TYPE requests_total counter\n"
            "requests_total 0\n"
            "# HELP segment_bytes Bytes\n"
            "# TYPE segment_bytes gauge\n"
            "# HELP latency_us Latency\n"
            "# TYPE latency_us histogram\n"
            "latency_us_bucket{le=\"10\"} 0\n"
            "latency_us_bucket{le=\"100\"} 0\n"
            "latency_us_bucket{le=\"+Inf\"} 0\n"
            "latency_us_sum 0\n"
            "latency_us_count 0\n");
  EXPECT_THAT(registry.Names(),
              testing::ElementsAre("requests_total", "segment_bytes", "latency_us"));
}

TEST(Registry, WhatItWritesParsesWithTheValuesThatWereCounted) {
  Registry registry;
  registry.AddCounter("requests_total", "With \\ and\na second line").Add(7);
  auto& used = registry.AddGaugeFamily("segment_bytes", "Bytes", {"segment"});
  used.With({"node:1"}).Set(-5);
  used.With({"odd \"name\\\n{},= "}).Set(6);
  auto& latency = registry.AddHistogramFamily("rpc_us", "Latency", kBounds, {"rpc_name"});
  for (const std::uint64_t value : {5, 10, 50, 1000}) {
    latency.With({"Put"}).Observe(value);
  }
  const Page page = Parse(registry.Expose());
  const auto sample = [&](const std::string& name, const std::string& labels) {
    const auto found = page.samples.find(name + "{" + labels + "}");
    return found == page.samples.end() ? -999 : found->second;
  };
  EXPECT_EQ(page.samples.at("requests_total"), 7);
  EXPECT_EQ(sample("segment_bytes", "segment=\"node:1\""), -5);
  EXPECT_EQ(sample("segment_bytes", R"(segment="odd \"name\\\n{},= ")"), 6);
  EXPECT_EQ(sample("rpc_us_bucket", R"(rpc_name="Put",le="10")"), 2);
  EXPECT_EQ(sample("rpc_us_bucket", R"(rpc_name="Put",le="100")"), 3);
  EXPECT_EQ(sample("rpc_us_bucket", R"(rpc_name="Put",le="+Inf")"), 4);
  EXPECT_EQ(sample("rpc_us_sum", R"(rpc_name="Put")"), 1065);
  EXPECT_EQ(sample("rpc_us_count", R"(rpc_name="Put")"), 4);
}

TEST(Registry, TheSameLabelValuesGiveTheSameMetricUntilRemoved) {
  Registry registry;
  auto& family = registry.AddCounterFamily("hits_total", "Hits", {"kind"});
  family.With({"a"}).Add(1);
  family.With({"a"}).Add(1);
  family.With({"b"}).Add(1);
  EXPECT_EQ(Parse(registry.Expose()).samples.at("hits_total{kind=\"a\"}"), 2);
  family.Remove({"a"});
  EXPECT_FALSE(Parse(registry.Expose()).samples.contains("hits_total{kind=\"a\"}"));
  EXPECT_EQ(family.With({"a"}).Value(), 0U);
}

TEST(Registry, MayBeReadWhileThreadsAddAndCount) {
  Registry registry;
  auto& family = registry.AddGaugeFamily("segment_bytes", "Bytes", {"segment"});
  std::atomic<bool> stop = false;
  auto churn = Thread::Start("churn", [&] {
    for (std::uint64_t i = 0; !stop; ++i) {
      const std::string segment = std::to_string(i % 10);
      family.With({segment}).Set(1);
      family.Remove({segment});
      if (i < 20) {
        registry.AddCounter("counter_" + std::to_string(i), "Late").Add();
      }
    }
  });
  ASSERT_TRUE(churn.has_value());
  for (int i = 0; i < 50; ++i) {
    Parse(registry.Expose());
  }
  stop = true;
}

TEST(RegistryDeathTest, MalformedAndRepeatedNamesAreOurOwnMistakes) {
  Registry registry;
  registry.AddCounter("one", "");
  EXPECT_DEATH(registry.AddGauge("one", ""), "broken invariant");
  EXPECT_DEATH(registry.AddGauge("1st", ""), "broken invariant");
  EXPECT_DEATH(registry.AddGauge("with space", ""), "broken invariant");
  EXPECT_DEATH(registry.AddGaugeFamily("two", "", {"a:b"}), "broken invariant");
  EXPECT_DEATH(registry.AddHistogramFamily("three", "", kBounds, {"le"}), "broken invariant");
}

}  // namespace
}  // namespace mooncake
