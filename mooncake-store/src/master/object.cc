#include "mooncake-store/src/master/object.h"

#include <algorithm>

namespace mooncake::store {

std::uint32_t AppendPlacements(const ObjectRecord& object, std::vector<Placement>& out) {
  const auto begin = static_cast<std::ptrdiff_t>(out.size());
  for (const ExtentRecord& extent : object.extents()) {
    const auto known = std::find_if(
        out.begin() + begin, out.end(),
        [&](const Placement& placement) { return placement.segment == extent.segment; });
    if (known != out.end()) {
      known->units += extent.units;
    } else {
      out.push_back({extent.segment, extent.units});
    }
  }
  return static_cast<std::uint32_t>(out.size() - static_cast<std::size_t>(begin));
}

}  // namespace mooncake::store
