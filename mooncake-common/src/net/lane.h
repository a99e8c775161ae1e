// A non-blocking stream socket that whoever waits for it drives, and the reactor otherwise.
//
// The user posts an operation into its driver's own queue, then enters: TryDrive() and leave, or
// DriveUntil() to wait for the answer in its own thread. Whatever is pending when the last one has
// left is armed in the reactor, which drives it under the same try-lock. While a caller drives, the
// reactor is not woken; while nothing is pending, nobody is. Why that loses nothing:
// docs/design/lanes.md.
//
//   driver.Post(request);                                       // Its own queue, its own lock.
//   if (!lane.DriveUntil([&] { return request.done(); }, 50us)) {
//     request.event.Wait(deadline);                             // The reactor drives meanwhile.
//   }
//
// Thread-safety: any method from any thread at once. Many may wait on one lane.
// Ownership:     owns the socket; borrows driver and reactor, which must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/lane_core.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {

class Lane {
 public:
  // Takes a socket that is connected, or connecting (SocketConnect): Drive() then finds that
  // reading and writing "would block", and the driver should want to write.
  //
  // Errors: kExhausted when the reactor cannot watch it. The driver has heard nothing then.
  [[nodiscard]] static Result<std::unique_ptr<Lane>> Create(Reactor& reactor, UniqueFd fd,
                                                            LaneDriver& driver);

  // Closes with kCancelled and waits until nobody is inside. Nobody may enter any more, and no
  // driver method may be on this thread's stack.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // By a thread that posted and leaves: drives once, unless somebody is at it, who will then do so.
  void TryDrive() { core_.TryDrive(); }

  // By a thread that waits: drives until done(), closed, or `spin` has passed without progress;
  // zero: once. Returns done(). done() is asked often and must not block.
  bool DriveUntil(LaneCondition done, Duration spin) { return core_.DriveUntil(done, spin); }

  // By a thread that watches several lanes: drives once unless somebody is at it; true if anything
  // moved. From then on the reactor is not woken for this lane: whoever polls must Release().
  bool Poll() { return core_.Poll(); }

  // The caller stops polling: the reactor takes over whatever is pending. When other threads poll
  // the same lane, their next Poll() takes it back.
  void Release() { core_.Release(); }

  // Has the lane closed with `why` (the first one counts), at once or by the holder, soon. The
  // driver may ask for it, too.
  void RequestClose(Error why) { core_.RequestClose(std::move(why)); }

  // The same, and waits for one Drive() at most: after it returns no driver method runs. Not from
  // within the driver.
  void Close(Error why) { core_.Close(std::move(why)); }

  // True once the driver has heard OnClosed().
  [[nodiscard]] bool closed() const { return core_.closed(); }

  // How often the reactor was woken for this lane; for tests, benchmarks and metrics.
  [[nodiscard]] std::uint64_t reactor_wakeups() const {
    return port_.wakeups.load(std::memory_order_relaxed);
  }

 private:
  struct Port final : LaneCore::Port {
    Port(Reactor& the_reactor, UniqueFd the_fd, LaneDriver& the_driver)
        : reactor(the_reactor), fd(std::move(the_fd)), driver(the_driver) {}
    Result<LaneDriver::Progress> Drive() override { return driver.Drive(fd.get()); }
    bool HasPending() override { return driver.HasPending(); }
    bool WantsWrite() override { return driver.WantsWrite(); }
    void Arm(LaneCore::Interest interest) override;
    void Close(const Error& why) override;

    Reactor& reactor;
    UniqueFd fd;
    LaneDriver& driver;
    WatchId watch = WatchId::kNone;
    std::atomic<std::uint64_t> wakeups{0};
  };

  Lane(Reactor& reactor, UniqueFd fd, LaneDriver& driver);

  Port port_;
  LaneCore core_;
};

}  // namespace mooncake
