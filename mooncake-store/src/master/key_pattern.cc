#include "mooncake-store/src/master/key_pattern.h"

// Steps that a match may take before it gives up: some milliseconds' worth. Boost's own bound grows
// with the square of the key's length or the pattern's, up to a second and more for one key, on a
// thread that serves others. No other source may include Boost.Regex: it is all templates, and one
// bound would win.
#define BOOST_REGEX_MAX_STATE_COUNT 200'000  // NOLINT(readability-identifier-naming): Boost's name

#include <fmt/format.h>

#include <boost/regex.hpp>
#include <stdexcept>

namespace mooncake::store {

// Not std::regex: it recurses once a character, and a long key would end the process.
struct KeyPattern::Compiled {
  boost::regex regex;
};

Result<KeyPattern> KeyPattern::Compile(std::string_view pattern) {
  try {
    return KeyPattern(std::make_shared<const Compiled>(Compiled{
        boost::regex(pattern.begin(), pattern.end(), boost::regex_constants::ECMAScript)}));
  } catch (const std::runtime_error& error) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("'{}' is no regular expression: {}", pattern, error.what()));
  }
}

bool KeyPattern::Matches(std::string_view key) const {
  try {
    return boost::regex_search(key.begin(), key.end(), compiled_->regex);
  } catch (const std::runtime_error&) {
    return false;  // Its complexity limit: see Matches().
  }
}

}  // namespace mooncake::store
