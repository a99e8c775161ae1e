#include "mooncake-common/src/net/peer_addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mooncake-common/src/base/address.h"

namespace mooncake {

std::shared_ptr<PeerAddresses> PeerAddresses::Create(std::string host, std::uint16_t port,
                                                     NameLookup lookup) {
  std::shared_ptr<PeerAddresses> created(
      new PeerAddresses(std::move(host), port, std::move(lookup)));
  if (!created->is_number_) {
    created->BeginLookup();
  }
  return created;
}

PeerAddresses::PeerAddresses(std::string host, std::uint16_t port, NameLookup lookup)
    : host_(std::move(host)), port_(port), lookup_(std::move(lookup)) {
  if (Result<Addresses> number = ResolveNumber(host_, port_)) {
    addresses_ = *std::move(number);
    is_number_ = true;
  }
}

Result<void> PeerAddresses::WaitUntilKnown(Instant deadline) {
  const MutexLock lock(mutex_);
  while (addresses_.empty()) {
    if (failure_) {
      return std::unexpected(*std::exchange(failure_, std::nullopt));
    }
    if (!changed_.WaitUntil(mutex_, deadline)) {
      return Fail(ErrorCode::kTimeout,
                  fmt::format("resolve host \"{}\": no answer in time; is the name server "
                              "reachable?",
                              host_));
    }
  }
  return {};
}

Result<std::optional<PeerAddresses::Choice>> PeerAddresses::Next() {
  {
    const MutexLock lock(mutex_);
    if (!addresses_.empty()) {
      return Choice{.address = addresses_[next_],
                    .turn = turn_,
                    .last_of_round = next_ + 1 == addresses_.size()};
    }
    if (failure_) {
      return std::unexpected(*std::exchange(failure_, std::nullopt));
    }
  }
  BeginLookup();
  return std::nullopt;
}

bool PeerAddresses::OnFailure(const Choice& choice) {
  bool ask = false;
  {
    const MutexLock lock(mutex_);
    if (choice.turn == turn_) {
      ++turn_;
      next_ = (next_ + 1) % addresses_.size();
      ask = choice.last_of_round && !is_number_;
    }
  }
  if (ask) {
    BeginLookup();
  }
  return choice.last_of_round;
}

void PeerAddresses::OnSuccess(const Choice& choice) {
  const MutexLock lock(mutex_);
  if (choice.turn == turn_ && next_ != 0) {
    // The first of a new round: the others come after it before the round is over.
    std::ranges::rotate(addresses_, addresses_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = 0;
  }
}

std::string PeerAddresses::Describe() const { return FormatHostPort(host_, port_); }

std::string PeerAddresses::Describe(const SocketAddress& address) const {
  return is_number_ ? address.ToString() : fmt::format("{} ({})", Describe(), address.ToString());
}

void PeerAddresses::BeginLookup() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(looking_, true)) {
      return;
    }
  }
  ResolveLater(lookup_, host_, port_, [weak = weak_from_this()](Result<Addresses> found) {
    if (const auto self = weak.lock()) {
      self->OnAnswer(std::move(found));
    }
  });
}

void PeerAddresses::OnAnswer(Result<Addresses> found) {
  const MutexLock lock(mutex_);
  looking_ = false;
  if (found) {
    addresses_ = *std::move(found);
    next_ = 0;
    ++turn_;
    failure_.reset();
  } else if (addresses_.empty()) {
    failure_ = std::move(found).error();
  }
  changed_.NotifyAll();
}

}  // namespace mooncake
