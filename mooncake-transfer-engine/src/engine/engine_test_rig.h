// One engine over fake transports, a fake directory and a peer that is memory of this process.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"
#include "mooncake-transfer-engine/src/engine/fake_directory.h"
#include "mooncake-transfer-engine/src/engine/region_table.h"
#include "mooncake-transfer-engine/src/transports/fake/fake_transport.h"

namespace mooncake::transfer {

struct RigOptions {
  std::vector<FakeOptions> transports = {FakeOptions{}};
  std::size_t memory_bytes = std::size_t{1} << 20U;
  bool manual_clock = false;  // Then there is no caretaker: polls do all the work.
  Duration stall_limit = std::chrono::seconds(30);
  std::uint32_t window_slices = 1024;
  std::function<Result<void>()> revoke = {};
};

class EngineRig {
 public:
  static constexpr const char* kPeer = "peer:1";

  explicit EngineRig(const RigOptions& options = {})
      : local(options.memory_bytes), remote(options.memory_bytes) {
    EngineOptions engine_options;
    engine_options.name = "self:1";
    engine_options.directory = directory;
    engine_options.stall_limit = options.stall_limit;
    engine_options.window_slices = options.window_slices;
    engine_options.revoke_announced = options.revoke;
    if (options.manual_clock) {
      engine_options.clock = &clock;
      engine_options.caretaker = false;
      clock.Advance(std::chrono::hours(1));  // Zero means "not set" here and there.
    }
    std::uint64_t seed = 1;
    for (const FakeOptions& one : options.transports) {
      auto transport = std::make_unique<FakeTransport>(seed++, one);
      switches.push_back(transport->SharedSwitches());
      engine_options.transports.push_back(std::move(transport));
    }
    engine = Engine::Create(std::move(engine_options)).value();
    EXPECT_TRUE(engine->Start());
    PublishPeer(1);
    segment = engine->OpenSegment(kPeer).value();
    for (std::size_t i = 0; i < remote.size(); ++i) {
      remote[i] = static_cast<std::byte>(i * 7 + i / 256);
    }
  }

  // The peer as of an incarnation, with its memory at `remote`.
  void PublishPeer(std::uint64_t incarnation) {
    SegmentDescriptor peer;
    peer.name = kPeer;
    peer.buffers = {BufferDescriptor{.name = kPeer,
                                     .address = reinterpret_cast<std::uint64_t>(remote.data()),
                                     .length_bytes = remote.size()}};
    peer.extension = PeerExtension{.host_id = "host", .incarnation = incarnation};
    EXPECT_TRUE(directory->Publish(peer));
    for (const auto& one : switches) {
      one->incarnation = incarnation;
    }
  }

  [[nodiscard]] TransferRequest Read(std::size_t offset, std::size_t length) const {
    return Request(Opcode::kRead, offset, length);
  }
  [[nodiscard]] TransferRequest Request(Opcode opcode, std::size_t offset,
                                        std::size_t length) const {
    return TransferRequest{
        .opcode = opcode,
        .local = const_cast<std::byte*>(local.data()) + offset,
        .segment = segment,
        .remote_address = reinterpret_cast<std::uint64_t>(remote.data()) + offset,
        .length_bytes = length};
  }

  [[nodiscard]] bool SameBytes(std::size_t offset, std::size_t length) const {
    return std::memcmp(local.data() + offset, remote.data() + offset, length) == 0;
  }

  // Polls until the batch is terminal, moving a manual clock by `step` each time.
  TransferStatus Poll(BatchId batch, Duration step = std::chrono::milliseconds(1)) {
    TransferStatus status;
    for (int i = 0; i < 1'000'000; ++i) {
      status = engine->BatchStatus(batch).value();
      if (IsTerminal(status.state)) {
        return status;
      }
      clock.Advance(step);
    }
    ADD_FAILURE() << "the batch did not end";
    return status;
  }

  ManualClock clock;
  std::shared_ptr<FakeDirectory> directory = std::make_shared<FakeDirectory>();
  std::vector<std::shared_ptr<FakeTransport::Switches>> switches;
  std::vector<std::byte> local;
  std::vector<std::byte> remote;
  std::unique_ptr<Engine> engine;
  SegmentId segment = 0;
};

inline FakeOptions Named(std::string_view name, std::uint32_t rank = 0) {
  return {.traits = {.name = name, .rank = rank}};
}

inline BatchId SubmitOne(EngineRig& rig, const TransferRequest& request) {
  const BatchId batch = rig.engine->AllocateBatch(4).value();
  EXPECT_TRUE(rig.engine->Submit(batch, std::array{request}));
  return batch;
}

}  // namespace mooncake::transfer
