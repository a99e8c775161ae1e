// Groups: objects that the writer wants to be kept or lost together. Here: who is in which, and
// whether a read of one member must renew the leases of all.
//
// Thread-safety: any thread; one leaf lock, taken below the shards'.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/master/eviction/policy.h"

namespace mooncake::store {

using GroupNumber = std::uint32_t;
inline constexpr GroupNumber kNoGroup = 0;

class GroupTable {
 public:
  // Numbers groups from the one after `last` on.
  explicit GroupTable(GroupNumber last = kNoGroup) : last_(last) {}

  // Adds a member; the group is made when it is the first. Never kNoGroup.
  GroupNumber Join(std::uint32_t tenant, std::string_view name, Slot member) MC_EXCLUDES(mutex_);
  // The group goes with its last member.
  void Leave(GroupNumber group, Slot member) MC_EXCLUDES(mutex_);

  // True once after a member joined: those leased before it must be renewed together.
  [[nodiscard]] bool TakeNeedsRefresh(GroupNumber group) MC_EXCLUDES(mutex_);
  // In slot order; empty for a group that is gone.
  [[nodiscard]] std::vector<Slot> Members(GroupNumber group) const MC_EXCLUDES(mutex_);
  // Empty for a group that is gone.
  [[nodiscard]] std::string NameOf(GroupNumber group) const MC_EXCLUDES(mutex_);

 private:
  struct Group {
    std::string scoped_name;
    std::set<Slot> members;
    bool needs_refresh = false;
  };
  static std::string ScopedName(std::uint32_t tenant, std::string_view name);

  mutable Mutex mutex_;
  GroupNumber last_ MC_GUARDED_BY(mutex_);
  std::unordered_map<GroupNumber, Group> groups_ MC_GUARDED_BY(mutex_);
  std::unordered_map<std::string, GroupNumber> by_name_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::store
