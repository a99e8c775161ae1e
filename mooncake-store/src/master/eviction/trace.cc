#include "mooncake-store/src/master/eviction/trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace mooncake::store {

Result<std::vector<Chain>> ReadTrace(std::istream& lines) {
  std::vector<Chain> chains;
  for (std::string line; std::getline(lines, line);) {
    const auto malformed = [&] {
      return Fail(
          ErrorCode::kMalformed,
          fmt::format("line {} of the trace is no object with a list of block numbers named "
                      "\"hash_ids\": {:.80}",
                      chains.size() + 1, line));
    };
    const auto request = nlohmann::json::parse(line, nullptr, false);
    const auto blocks = request.is_object() ? request.find("hash_ids") : request.end();
    if (blocks == request.end() || !blocks->is_array()) {
      return malformed();
    }
    Chain& chain = chains.emplace_back();
    for (const auto& block : *blocks) {
      if (!block.is_number_unsigned()) {
        chains.pop_back();
        return malformed();
      }
      chain.push_back(block.get<std::uint64_t>());
    }
  }
  return chains;
}

}  // namespace mooncake::store
