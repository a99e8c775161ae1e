#include "mooncake-transfer-engine/src/transports/tcp/tcp_channel.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "mooncake-common/src/base/result.h"

namespace mooncake::transfer {
namespace {

// Payload of one request: large enough that its head costs nothing, small enough that several share
// the work and an early part is not held up by a late one.
constexpr std::uint64_t kFrameBytes = std::uint64_t{1} << 20;

}  // namespace

TcpChannel::TcpChannel(Reactor& reactor, std::shared_ptr<PeerAddresses> addresses,
                       const Options& options)
    : reactor_(reactor),
      addresses_(std::move(addresses)),
      options_(options),
      ledger_(
          {.queue = {.claim_bytes = kFrameBytes,
                     .claim_pieces = options.protocol == TcpProtocol::kExtended ? Claim::kMaxPieces
                                                                                : std::size_t{1}},
           .max_unclaimed_bytes = options.max_unclaimed_bytes}) {}

TcpChannel::Lanes TcpChannel::OpenLanes() const {
  const MutexLock lock(mutex_);
  return lanes_;
}

std::size_t TcpChannel::Post(std::span<Slice* const> slices) {
  const std::size_t taken = ledger_.Push(slices);
  if (taken > 0) {
    Tend();
    ledger_.Report();
  }
  return taken;
}

bool TcpChannel::Drive() {
  bool moved = false;
  for (const auto& lane : OpenLanes()) {
    moved = lane->Poll() || moved;
  }
  if (ended_lanes_.load(std::memory_order_acquire) > 0) {
    Tend();
  }
  return ledger_.Report() || moved;
}

bool TcpChannel::CutOff() {
  bool cut_off = false;
  for (const auto& lane : OpenLanes()) {
    cut_off = lane->CutOff() || cut_off;
  }
  ledger_.Report();
  return cut_off;
}

void TcpChannel::Release() {
  for (const auto& lane : OpenLanes()) {
    lane->Poll();  // What was posted and not yet sent.
    lane->Release();
  }
  if (ended_lanes_.load(std::memory_order_acquire) > 0) {
    Tend();
  }
  ledger_.Report();
}

void TcpChannel::Abort(const Error& why) {
  ledger_.Abort(why, [this, &why] {
    for (const auto& lane : OpenLanes()) {
      lane->Close(why);
    }
  });
  Tend();
}

void TcpChannel::Tend() {
  Lanes ended;  // Destroyed after the lock is given back: that may wait for the reactor.
  Error failure;
  bool unreachable = false;
  {
    const MutexLock lock(mutex_);
    const auto is_closed = [](const auto& lane) { return lane->closed(); };
    const auto first_ended = std::ranges::partition(lanes_, std::not_fn(is_closed)).begin();
    ended_lanes_.fetch_sub(static_cast<std::size_t>(lanes_.end() - first_ended));
    std::move(first_ended, lanes_.end(), std::back_inserter(ended));
    lanes_.erase(first_ended, lanes_.end());
    if (ledger_.HasUnclaimed()) {
      const std::uint64_t wanted = lanes_.empty() || options_.max_lanes == 1
                                       ? 1
                                       : 1 + ledger_.unclaimed_bytes() / options_.bytes_per_lane;
      while (lanes_.size() < std::min<std::uint64_t>(wanted, options_.max_lanes)) {
        Result<std::shared_ptr<ClientLane>> opened = OpenLane();
        if (!opened) {
          failure = std::move(opened).error();
          unreachable = lanes_.empty();
          break;
        }
        lanes_.push_back(*std::move(opened));
      }
    }
  }
  if (unreachable) {
    ledger_.FailUnclaimed(failure);
  }
}

Result<std::shared_ptr<ClientLane>> TcpChannel::OpenLane() {
  for (;;) {
    MC_TRY_ASSIGN(const auto choice, addresses_->Next());
    MC_CHECK(choice.has_value());  // Whoever made the channel waited for the first lookup.
    Result<std::shared_ptr<ClientLane>> opened = ClientLane::Open(
        reactor_, ledger_, options_.protocol, choice->address,
        {.on_connected =
             [weak = weak_from_this(), choice = *choice] {
               if (const auto self = weak.lock()) {
                 self->addresses_->OnSuccess(choice);
                 self->connected_lanes_.fetch_add(1, std::memory_order_acq_rel);
               }
             },
         .on_ended =
             [weak = weak_from_this()] {
               if (const auto self = weak.lock()) {
                 self->ReportSoon();
               }
             },
         .on_closed =
             [weak = weak_from_this(), choice = *choice](bool failed_to_connect, const Error& why) {
               if (const auto self = weak.lock()) {
                 self->OnLaneClosed(choice, failed_to_connect, why);
               }
             }});
    if (opened || addresses_->OnFailure(*choice)) {
      return opened;
    }
  }
}

void TcpChannel::OnLaneClosed(const PeerAddresses::Choice& choice, bool failed_to_connect,
                              const Error& why) {
  if (!failed_to_connect) {
    connected_lanes_.fetch_sub(1, std::memory_order_acq_rel);
  } else if (why.code != ErrorCode::kCancelled && addresses_->OnFailure(choice) &&
             connected_lanes_.load(std::memory_order_acquire) == 0) {
    ledger_.FailUnclaimed(why);
  }
  ended_lanes_.fetch_add(1, std::memory_order_acq_rel);
  TendSoon();
}

void TcpChannel::ReportSoon() {
  reactor_.Post([self = shared_from_this()] { self->ledger_.Report(); });
}

void TcpChannel::TendSoon() {
  reactor_.Post([self = shared_from_this()] {
    self->Tend();
    self->ledger_.Report();
  });
}

}  // namespace mooncake::transfer
