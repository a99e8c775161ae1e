#include "mooncake-common/src/net/lane.h"

#include <sched.h>

#include <utility>

namespace mooncake {
namespace {

std::uint32_t EventsOf(LaneCore::Interest interest) {
  switch (interest) {
    case LaneCore::Interest::kNothing:
    case LaneCore::Interest::kHangup:
      return EPOLLRDHUP | EPOLLONESHOT;
    case LaneCore::Interest::kRead:
      return EPOLLIN | EPOLLRDHUP | EPOLLONESHOT;
    case LaneCore::Interest::kReadWrite:
      return EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLONESHOT;
  }
  return 0;
}

}  // namespace

Lane::Lane(Reactor& reactor, UniqueFd fd, LaneDriver& driver)
    : port_(reactor, std::move(fd), driver), core_(port_, LaneCore::Interest::kHangup) {}

Result<std::unique_ptr<Lane>> Lane::Create(Reactor& reactor, UniqueFd fd, LaneDriver& driver) {
  std::unique_ptr<Lane> lane(new Lane(reactor, std::move(fd), driver));
  auto watch = reactor.Watch(lane->port_.fd.get(), EventsOf(LaneCore::Interest::kHangup),
                             [raw = lane.get()](std::uint32_t) {
                               raw->port_.wakeups.fetch_add(1, std::memory_order_relaxed);
                               raw->core_.Fire();
                             });
  if (!watch) {
    lane->core_.Abandon();
    return std::unexpected(std::move(watch).error());
  }
  lane->port_.watch = *watch;  // A Fire meanwhile finds the lane held.
  lane->core_.Begin();
  return lane;
}

Lane::~Lane() {
  core_.Close({ErrorCode::kCancelled, "the connection's owner has gone"});
  while (!core_.unused()) {
    sched_yield();
  }
}

void Lane::Port::Arm(LaneCore::Interest interest) { reactor.Modify(watch, EventsOf(interest)); }

void Lane::Port::Close(const Error& why) {
  reactor.Unwatch(watch);
  fd.Reset();
  driver.OnClosed(why);
}

}  // namespace mooncake
