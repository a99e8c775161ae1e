// A regular expression over keys: ECMAScript, found anywhere in the key.
//
// Thread-safety: matching is const and may run on several threads.
#pragma once

#include <memory>
#include <string_view>

#include "mooncake-common/src/base/result.h"

namespace mooncake::store {

class KeyPattern {
 public:
  // Errors: kInvalidArgument, quoting the pattern, when it does not parse.
  [[nodiscard]] static Result<KeyPattern> Compile(std::string_view pattern);

  // A key on which the pattern takes too long to decide, more than 200 000 steps, does not match. A
  // pattern that goes over the key once takes a few for each of its bytes; only one that tries
  // again from each of them on may take their square.
  [[nodiscard]] bool Matches(std::string_view key) const;

 private:
  struct Compiled;
  explicit KeyPattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace mooncake::store
