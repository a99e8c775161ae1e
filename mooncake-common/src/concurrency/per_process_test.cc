#include "mooncake-common/src/concurrency/per_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace mooncake {
namespace {

// Whether `child` holds in a forked process. No assertions in there: it is not gtest's.
template <typename Child>
bool HoldsInAChild(Child child) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(child() ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string Read(PerProcess<std::string>& text) {
  return text.With([](const std::string& value) { return value; });
}

TEST(PerProcess, KeepsAValueAndEndsIt) {
  const auto counted = std::make_shared<int>(7);
  {
    PerProcess<std::shared_ptr<int>> cell;
    cell.With([&](auto& value) { value = counted; });
    EXPECT_EQ(cell.With([](auto& value) { return *value; }), 7);
    EXPECT_EQ(counted.use_count(), 2);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(PerProcess, AChildBeginsAnewAndChangesNothingOfItsParents) {
  PerProcess<std::string> text;
  text.With([](auto& value) { value = "parent"; });
  EXPECT_TRUE(HoldsInAChild([&] {
    const bool anew = Read(text).empty();
    text.With([](auto& value) { value = "child"; });
    return anew && Read(text) == "child" && HoldsInAChild([&] { return Read(text).empty(); });
  }));
  EXPECT_EQ(Read(text), "parent");
}

TEST(PerProcess, AChildNeedsNotTheLockThatWasHeldAtTheFork) {
  PerProcess<std::string> text;
  EXPECT_TRUE(text.With(
      [&](auto& /*locked*/) { return HoldsInAChild([&] { return Read(text).empty(); }); }));
}

TEST(PerProcess, AChildDoesNotEndWhatItLeaves) {
  const auto counted = std::make_shared<int>(7);
  auto cell = std::make_unique<PerProcess<std::shared_ptr<int>>>();
  cell->With([&](auto& value) { value = counted; });
  EXPECT_TRUE(HoldsInAChild([&] {
    cell.reset();
    return counted.use_count() == 2;
  }));
}

}  // namespace
}  // namespace mooncake
