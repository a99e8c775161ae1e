#include "mooncake-transfer-engine/src/transports/local/presence.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::transfer {
namespace {

// What a peer maps.
class View {
 public:
  explicit View(const Presence& presence)
      : memory_(::mmap(nullptr, sizeof(PresencePage), PROT_READ | PROT_WRITE, MAP_SHARED,
                       presence.fd(), 0)) {
    MC_CHECK(memory_ != MAP_FAILED);
  }
  ~View() { ::munmap(memory_, sizeof(PresencePage)); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  const PresencePage* operator->() const { return static_cast<const PresencePage*>(memory_); }

 private:
  void* const memory_;
};

TEST(Presence, VouchesForItsNonceWhileAThreadHoldsIt) {
  auto presence = Presence::Create();
  ASSERT_TRUE(presence) << presence.error().message;
  const View view(**presence);
  (*presence)->nonce() = 7;
  EXPECT_FALSE(view->Vouches(7));  // Nobody holds it yet.
  std::thread([&] {
    Presence::HoldByThisThread(*presence);
    EXPECT_TRUE(view->Vouches(7));
    EXPECT_FALSE(view->Vouches(8));
    (*presence)->nonce() = 0;
    EXPECT_FALSE(view->Vouches(7));
    (*presence)->nonce() = 7;
    presence->reset();  // The thread keeps the page for as long as it holds the lock.
    EXPECT_TRUE(view->Vouches(7));
  }).join();
  EXPECT_FALSE(view->Vouches(7));
}

TEST(Presence, EndsWithItsProcessHoweverThatEnds) {
  auto presence = Presence::Create();
  ASSERT_TRUE(presence) << presence.error().message;
  const View view(**presence);
  (*presence)->nonce() = 7;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Presence::HoldByThisThread(*presence);
    for (;;) {
      ::pause();
    }
  }
  EXPECT_TRUE(WaitUntil([&] { return view->Vouches(7); }));
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(view->Vouches(7));  // It stands still, but lives.
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_FALSE(view->Vouches(7));
}

}  // namespace
}  // namespace mooncake::transfer
