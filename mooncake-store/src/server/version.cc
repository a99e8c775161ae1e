#include "mooncake-store/src/server/version.h"

namespace mooncake::store {

// Both macros come from CMakeLists.txt.
std::string_view Version() { return MC_VERSION; }
std::string_view GitHash() { return MC_GIT_HASH; }

}  // namespace mooncake::store
