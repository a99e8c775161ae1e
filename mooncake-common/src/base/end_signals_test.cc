#include "mooncake-common/src/base/end_signals.h"

#include <gtest/gtest.h>

namespace mooncake {
namespace {

TEST(EndSignals, AreKeptUntilSomebodyWaits) {
  const EndSignals ends = EndSignals::Block();
  for (const int signal : {SIGTERM, SIGINT}) {
    ASSERT_EQ(std::raise(signal), 0);  // Would end the process if it were not blocked.
    EXPECT_EQ(ends.Wait(), signal);
  }
}

}  // namespace
}  // namespace mooncake
