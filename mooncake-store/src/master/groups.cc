#include "mooncake-store/src/master/groups.h"

namespace mooncake::store {

std::string GroupTable::ScopedName(std::uint32_t tenant, std::string_view name) {
  return std::to_string(tenant) + '/' + std::string(name);
}

GroupNumber GroupTable::Join(std::uint32_t tenant, std::string_view name, Slot member) {
  std::string scoped = ScopedName(tenant, name);
  const MutexLock lock(mutex_);
  GroupNumber& number = by_name_[scoped];
  if (number == kNoGroup) {
    // Numbers come again after 2^32 groups; the living keep theirs.
    do {
      ++last_;
    } while (last_ == kNoGroup || groups_.contains(last_));
    number = last_;
    groups_[number].scoped_name = std::move(scoped);
  }
  Group& group = groups_[number];
  group.members.insert(member);
  group.needs_refresh = true;
  return number;
}

void GroupTable::Leave(GroupNumber group, Slot member) {
  const MutexLock lock(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end()) {
    return;
  }
  found->second.members.erase(member);
  if (found->second.members.empty()) {
    by_name_.erase(found->second.scoped_name);
    groups_.erase(found);
  }
}

bool GroupTable::TakeNeedsRefresh(GroupNumber group) {
  const MutexLock lock(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end() || !found->second.needs_refresh) {
    return false;
  }
  found->second.needs_refresh = false;
  return true;
}

std::vector<Slot> GroupTable::Members(GroupNumber group) const {
  const MutexLock lock(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end()) {
    return {};
  }
  return {found->second.members.begin(), found->second.members.end()};
}

std::string GroupTable::NameOf(GroupNumber group) const {
  const MutexLock lock(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end()) {
    return {};
  }
  return found->second.scoped_name.substr(found->second.scoped_name.find('/') + 1);
}

}  // namespace mooncake::store
