#include "mooncake-common/src/base/end_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace mooncake {
namespace {

TEST(EndSignals, AreKeptUntilSomebodyWaits) {
  const EndSignals ends = EndSignals::Block();
  for (const int signal : {SIGTERM, SIGINT}) {
    ASSERT_EQ(std::raise(signal), 0);  // Would end the process if it were not blocked.
    EXPECT_EQ(ends.Wait(), signal);
  }
}

TEST(EndSignals, APeerThatHasGoneIsAnErrorOfTheWrite) {
  std::signal(SIGPIPE, SIG_DFL);  // As a program starts: the write would end it.
  (void)EndSignals::Block();
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  close(pipe[0]);
  EXPECT_EQ(write(pipe[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(pipe[1]);
}

}  // namespace
}  // namespace mooncake
