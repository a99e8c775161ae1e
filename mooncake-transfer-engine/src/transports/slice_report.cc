#include "mooncake-transfer-engine/src/transports/slice_report.h"

#include <cstddef>

namespace mooncake::transfer {
namespace {

template <typename Tell>
void ForEachSink(std::span<Slice* const> slices, Tell tell) {
  std::size_t begin = 0;
  while (begin < slices.size()) {
    SliceSink* const sink = slices[begin]->sink;
    std::size_t end = begin + 1;
    while (end < slices.size() && slices[end]->sink == sink) {
      ++end;
    }
    tell(*sink, slices.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace

void ReportDone(std::span<Slice* const> slices) {
  ForEachSink(slices, [](SliceSink& sink, std::span<Slice* const> ended) { sink.OnDone(ended); });
}

void ReportFailed(std::span<Slice* const> slices, const Error& why) {
  ForEachSink(slices, [&why](SliceSink& sink, std::span<Slice* const> ended) {
    sink.OnFailed(ended, why);
  });
}

}  // namespace mooncake::transfer
