// One client, a fake master and memory to move between them: what the tests of operations start
// from.
//
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/fake_master.h"
#include "mooncake-store/src/client/scripted_driver.h"

namespace mooncake::store {

inline std::vector<std::byte> PatternBytes(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((i * 7 + std::size_t{seed} * 131 + (i >> 8)) & 0xff);
  }
  return bytes;
}

struct ClientFixture {
  explicit ClientFixture(ClientOptions options = {}) : core(Named(std::move(options))) {
    driver.now = Instant(std::chrono::seconds(1000));
  }

  static ClientOptions Named(ClientOptions options) {
    options.client = Uuid{7, 7};
    return options;
  }

  std::vector<PieceFailure> Move(const TransferBatch& batch) {
    std::vector<PieceFailure> failures;
    for (std::uint32_t i = 0; i < batch.pieces.size(); ++i) {
      const TransferPiece& piece = batch.pieces[i];
      if (dead_segments.contains(piece.segment->identity.number)) {
        failures.push_back({i, Error{ErrorCode::kUnavailable, "connection refused"}});
        continue;
      }
      std::byte* const remote = master.At(piece.address);
      if (batch.opcode == TransferOpcode::kRead) {
        std::copy_n(remote, piece.length_bytes, piece.local);
      } else {
        std::copy_n(piece.local, piece.length_bytes, remote);
      }
    }
    if (after_move) {
      after_move();
    }
    return failures;
  }

  FakeMaster master;
  ClientCore core;
  std::set<SegmentNumber> dead_segments;
  int calls_lost = 0;                 // So many more calls get no answer...
  bool lost_are_served = false;       // ... though they were carried out.
  std::optional<Error> refuse_calls;  // What all calls end with.
  std::function<void()> after_move;
  std::function<void(int)> before_call;  // With the number of the call, from 1.
  int calls = 0;
  ScriptedDriver driver{[this](const MasterCall& call) -> std::optional<Error> {
                          ++calls;
                          if (before_call) {
                            before_call(calls);
                          }
                          if (refuse_calls) {
                            return refuse_calls;
                          }
                          if (calls_lost > 0) {
                            --calls_lost;
                            if (lost_are_served) {
                              master.Serve(call);
                            }
                            return Error{ErrorCode::kUnavailable, "connection reset"};
                          }
                          master.Serve(call);
                          return std::nullopt;
                        },
                        [this](const TransferBatch& batch) { return Move(batch); }};
};

}  // namespace mooncake::store
