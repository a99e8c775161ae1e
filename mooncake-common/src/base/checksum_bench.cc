// Good: several GB/s, close to what memory gives; a table of bytes makes 0.4 GB/s.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mooncake-common/src/base/checksum.h"

namespace mooncake {
namespace {

void Crc64Speed(benchmark::State& state) {
  const std::vector<std::byte> data(static_cast<std::size_t>(state.range(0)), std::byte{7});
  for (auto _ : state) {
    benchmark::DoNotOptimize(Crc64Of(data));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}
BENCHMARK(Crc64Speed)->Arg(4096)->Arg(1 << 20);

}  // namespace
}  // namespace mooncake
