// Who drives a socket, and when: the hand-over between callers that wait and the reactor.
// The protocol and its proof: docs/design/lanes.md. This class holds no descriptor, so that a test
// can step it through any order of events; lane.h adds the socket.
//
// Thread-safety: any thread, any method, at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/mutex.h"

namespace mooncake {

// What a lane's user does on its socket. The lane calls all of this from one thread at a time (the
// holder), so state that only these methods touch needs no lock. What others add to (the queue of
// posted operations) does.
//
// None may block, call back into its own lane other than by TryDrive(), or destroy the lane.
class LaneDriver {
 public:
  enum class Progress : std::uint8_t { kIdle, kMoved };

  virtual ~LaneDriver() = default;

  // Does non-blocking I/O once: sends what was posted, takes in what arrived, completes what is
  // done. Bounded in time. kMoved when calling again soon may be worth it. An Error: the connection
  // is lost; OnClosed gets it.
  [[nodiscard]] virtual Result<Progress> Drive(int fd) = 0;

  // Whether something posted is not finished: unsent, or sent and unanswered.
  [[nodiscard]] virtual bool HasPending() = 0;

  // Whether bytes wait for the socket to take them.
  [[nodiscard]] virtual bool WantsWrite() = 0;

  // Called once, the last call ever: finish everything posted with `why`, and refuse later posts.
  virtual void OnClosed(const Error& why) = 0;
};

// Asks a visitor's condition; non-owning, for the duration of a call.
class LaneCondition {
 public:
  template <typename F>
  LaneCondition(const F& condition)  // NOLINT(google-explicit-constructor): a lambda is passed.
      : object_(&condition), ask_([](const void* object) {
          return static_cast<bool>((*static_cast<const F*>(object))());
        }) {}
  bool operator()() const { return ask_(object_); }

 private:
  const void* object_;
  bool (*ask_)(const void*);
};

class LaneCore {
 public:
  // What the reactor is to be woken for, once.
  enum class Interest : std::uint8_t { kNothing, kHangup, kRead, kReadWrite };

  // The holder's side of the reactor and the socket.
  class Port {
   public:
    virtual ~Port() = default;
    virtual Result<LaneDriver::Progress> Drive() = 0;
    virtual bool HasPending() = 0;
    virtual bool WantsWrite() = 0;
    virtual void Arm(Interest interest) = 0;
    // Ends the watch, closes the socket, then tells the driver.
    virtual void Close(const Error& why) = 0;
  };

  // How often (at least once) a leaving holder drives for others before it leaves that to the
  // reactor, and the reactor at one go.
  static constexpr int kDefaultRounds = 8;

  // Takes the port as armed for `armed`. Held by its maker until Begin(): nothing drives before.
  LaneCore(Port& port, Interest armed, int max_rounds = kDefaultRounds)
      : port_(port), max_rounds_(max_rounds), armed_(armed) {}
  LaneCore(const LaneCore&) = delete;
  LaneCore& operator=(const LaneCore&) = delete;

  // The port is ready. Not called, the lane counts as closed from Abandon() on.
  void Begin() { LeaveHolding(0); }
  // The port could not be made ready; the driver hears nothing.
  void Abandon() { word_.store(kClosed, std::memory_order_release); }

  // After posting, by a thread that does not wait: drives once, unless somebody else is at it, who
  // then does; whatever is pending afterwards is left to visitors or the reactor.
  void TryDrive();

  // By a thread that waits: drives until `done` says true, the lane is closed, or the `spin` of a
  // SpinWait has passed without progress. Returns done(). `done` must not block and is asked often;
  // it must become true by the driver's doing, not by a signal that the driver would not give.
  bool DriveUntil(LaneCondition done, Duration spin);

  // By a thread that watches several lanes: drives once unless somebody is at it; true if anything
  // moved. Until Release() such threads together count as one visitor, so that the reactor sleeps.
  bool Poll();

  // Polling ends (for all who poll: those that go on say so by their next Poll()).
  void Release();

  // The armed one-shot fired.
  void Fire();

  // Has the lane closed with `why` (the first one counts): at once if nobody holds it, else by the
  // holder, soon. The driver may ask for it, too.
  void RequestClose(Error why) MC_EXCLUDES(reason_mutex_);

  // The same, and waits: after it returns the driver is not called any more. Not from within it.
  void Close(Error why);

  [[nodiscard]] bool closed() const {
    return (word_.load(std::memory_order_acquire) & kClosed) != 0;
  }
  // Nobody holds or visits.
  [[nodiscard]] bool unused() const {
    const std::uint32_t word = word_.load(std::memory_order_acquire);
    return (word & (kHeld | kPolled)) == 0 && word < kVisitor;
  }

 private:
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kAgain = 2;
  static constexpr std::uint32_t kFired = 4;
  static constexpr std::uint32_t kClosing = 8;
  static constexpr std::uint32_t kClosed = 16;
  static constexpr std::uint32_t kPolled = 32;
  static constexpr std::uint32_t kVisitor = 256;  // One of them; they count from this bit up.

  // Who, if anybody, will still try to drive when `leaving` visitors have left.
  static bool OthersStay(std::uint32_t word, std::uint32_t leaving) {
    return (word & kPolled) != 0 || word / kVisitor != leaving / kVisitor;
  }
  // Adds `part` (0, a visitor, or kPolled); true if the caller is now the holder, else the holder
  // will drive again.
  bool Enter(std::uint32_t part);
  bool TryHold();
  LaneDriver::Progress DriveHeld();
  void LeaveHolding(std::uint32_t visitors);
  // Takes `part` (a visitor, or kPolled) out of the word.
  void LeaveNotHolding(std::uint32_t part);
  void DisarmHeld();
  void ArmHeld(bool as_if_writing);
  void Arm(Interest interest);
  void CloseHeld(const Error& why);
  Error Reason() MC_EXCLUDES(reason_mutex_);

  Port& port_;
  const int max_rounds_;
  std::atomic<std::uint32_t> word_{kHeld};
  Interest armed_;  // The holder's.
  Mutex reason_mutex_;
  std::optional<Error> reason_ MC_GUARDED_BY(reason_mutex_);
};

}  // namespace mooncake
