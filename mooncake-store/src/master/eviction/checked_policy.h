// A policy that watches another one keep the promises of policy.h: it names only objects that may
// go, each once, and names one as long as any may. What it has seen is told by CheckInvariants().
// For tests and the simulator.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-store/src/master/eviction/policy.h"

namespace mooncake::store {

class CheckedPolicy final : public EvictionPolicy {
 public:
  explicit CheckedPolicy(std::unique_ptr<EvictionPolicy> policy) : policy_(std::move(policy)) {}

  [[nodiscard]] bool NeedsParents() const override { return policy_->NeedsParents(); }
  void OnChain(const ChainEvent& event) override { policy_->OnChain(event); }
  void OnPut(const PutEvent& event) override {
    SegmentMask segments;
    for (const Placement& placement : event.placements) {
      segments.Add(placement.segment);
    }
    objects_[event.slot] = {.segments = segments, .pin = event.pin};
    policy_->OnPut(event);
  }
  void OnReady(Slot slot) override {
    objects_.at(slot).ready = true;
    policy_->OnReady(slot);
  }
  void OnPin(Slot slot, PinClass pin) override {
    objects_.at(slot).pin = pin;
    policy_->OnPin(slot, pin);
  }
  void OnGone(Slot slot) override {
    objects_.erase(slot);
    policy_->OnGone(slot);
  }
  void Pick(const PickRequest& request, SlotGuard& guard, std::vector<Slot>& out) override {
    const std::size_t before = out.size();
    policy_->Pick(request, guard, out);
    std::set<Slot> picked;
    for (std::size_t at = before; at < out.size(); ++at) {
      const auto found = objects_.find(out[at]);
      if (found == objects_.end() || !picked.insert(out[at]).second) {
        Note(fmt::format("picked slot {}, which is not there or was picked already", out[at]));
      } else if (!MayGo(*found, request, guard)) {
        Note(fmt::format("picked slot {}, which may not go", out[at]));
      } else if (out[at] == request.keep && out.size() - before > 1) {
        Note(fmt::format("picked slot {} with others, which was to be kept", out[at]));
      }
    }
    if (picked.empty()) {
      for (const auto& object : objects_) {
        if (Helps(object.second, request) && MayGo(object, request, guard)) {
          Note(fmt::format("picked nothing, though slot {} may go", object.first));
          break;
        }
      }
    }
  }

  [[nodiscard]] std::string CheckInvariants() override {
    return wrong_.empty() ? policy_->CheckInvariants() : wrong_;
  }

 private:
  struct Object {
    SegmentMask segments;
    PinClass pin = PinClass::kNone;
    bool ready = false;
  };

  static bool MayGo(const std::pair<const Slot, Object>& object, const PickRequest& request,
                    SlotGuard& guard) {
    const auto& [slot, is] = object;
    return is.ready &&
           (is.pin == PinClass::kNone || (is.pin == PinClass::kSoft && request.soft_pinned_too)) &&
           guard.BoundUntilNs(slot) <= guard.now_ns();
  }
  // Whether it lies where space is needed. LRU looks for soft-pinned objects only, once asked to.
  static bool Helps(const Object& object, const PickRequest& request) {
    return object.segments.Overlaps(*request.segments) &&
           (object.pin == PinClass::kSoft) == request.soft_pinned_too;
  }
  void Note(std::string wrong) {
    if (wrong_.empty()) {
      wrong_ = std::move(wrong);
    }
  }

  const std::unique_ptr<EvictionPolicy> policy_;
  std::map<Slot, Object> objects_;
  std::string wrong_;  // The first.
};

}  // namespace mooncake::store
