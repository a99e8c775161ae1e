// The product's Master behind the port, with an ear on its events: why each key went, and how often
// rare things happened.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "mooncake-store/src/master/master.h"
#include "mooncake-store/tests/sim/master_port.h"

namespace mooncake::store {

// Why a key that was readable is not any more.
enum class GoneWhy : std::uint8_t { kRemoved, kEvicted, kReplaced, kSegmentLost };

class RealMaster final : public MasterPort, public EventSink {
 public:
  using OnGone = std::function<void(const std::string& key, GoneWhy why)>;

  RealMaster(const MasterOptions& options, EvictionPolicyKind policy, OnGone on_gone);

  void Serve(const MasterCall& call, Instant now) override;
  void Tick(Instant now) override;
  [[nodiscard]] std::string CheckAccounts() override;

  [[nodiscard]] Master& master() { return *master_; }

  void OnObject(const ObjectEvent& event) override;
  void OnSegment(const SegmentEvent&) override {}
  void OnClient(const ClientEvent&) override {}
  void OnHealth(const HealthEvent&) override {}
  void OnRecency(const RecencyEvent&) override {}
  void OnRested(Instant) override {}

 private:
  const OnGone on_gone_;
  std::map<Slot, std::string> keys_;
  std::unique_ptr<Master> master_;
};

}  // namespace mooncake::store
