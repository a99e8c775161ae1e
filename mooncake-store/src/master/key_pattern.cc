#include "mooncake-store/src/master/key_pattern.h"

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
