#include "mooncake-store/tests/sim/sim_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mooncake::store {
namespace {

// What is under way when its sender dies arrives within this time or never.
constexpr Duration kLateBytes = std::chrono::milliseconds(200);
constexpr std::byte kUnwritten{0xEE};

bool Happens(Rng& rng, double probability) {
  return probability > 0 && rng.UnitInterval() < probability;
}

}  // namespace

EngineRates EngineRates::Draw(Rng& rng) {
  EngineRates rates;
  rates.fail = rng.Chance(1, 2) ? 0 : rng.UnitInterval() * 0.05;
  rates.slow = rng.Chance(1, 2) ? 0 : rng.UnitInterval() * 0.2;
  rates.slow_time = std::chrono::milliseconds(1 + rng.Uniform(3000));
  rates.base_time = std::chrono::microseconds(1 + rng.Uniform(1000));
  return rates;
}

std::string EngineRates::ToString() const {
  return fmt::format("moves take {} us, fail {:.4f}, slow {:.4f} by {} ms",
                     base_time.count() / 1000, fail, slow, slow_time.count() / 1'000'000);
}

struct SimEngine::Flight {
  sim::ProcessId from = 0;
  std::uint64_t life = 0;
  TransferOpcode opcode = TransferOpcode::kRead;
  std::vector<TransferPiece> pieces;
  std::vector<std::vector<std::byte>> sent;  // Of writes: the bytes as they were at the start.
  std::vector<Error> failed;                 // By piece; an empty message = fine.
  std::shared_ptr<void> keep;
  Instant died{};  // Of the sender, once noticed.
};

std::uint64_t SimEngine::Allocate(sim::ProcessId owner, std::uint64_t size) {
  const std::uint64_t base = next_base_;
  next_base_ += (size + 0xfffff) / 0x100000 * 0x100000 + 0x100000;
  regions_[base] = Memory{.owner = owner,
                          .life = network_.Life(owner),
                          .bytes = std::vector<std::byte>(size, kUnwritten)};
  return base;
}

void SimEngine::Free(std::uint64_t base) { regions_.erase(base); }

std::span<std::byte> SimEngine::Region(std::uint64_t base) {
  const auto found = regions_.find(base);
  return found == regions_.end() ? std::span<std::byte>() : std::span(found->second.bytes);
}

std::byte* SimEngine::Reach(sim::ProcessId from, std::uint64_t address, std::uint64_t length) {
  auto region = regions_.upper_bound(address);
  if (region == regions_.begin()) {
    return nullptr;
  }
  --region;
  Memory& memory = region->second;
  const std::uint64_t offset = address - region->first;
  const bool inside = offset <= memory.bytes.size() && length <= memory.bytes.size() - offset;
  const bool alive = network_.IsUp(memory.owner) && network_.Life(memory.owner) == memory.life;
  if (!inside || !alive || !network_.Reachable(from, memory.owner)) {
    return nullptr;
  }
  return memory.bytes.data() + offset;
}

bool SimEngine::BeingWritten(std::uint64_t begin, std::uint64_t end) const {
  const Instant now = simulator_.Now();
  return std::ranges::any_of(landings_, [&](const Landing& landing) {
    const auto flight = landing.flight.lock();
    if (flight == nullptr || landing.until <= now || landing.end <= begin || end <= landing.begin) {
      return false;
    }
    return flight->died == Instant{} || now <= flight->died + kLateBytes;
  });
}

void SimEngine::Move(sim::ProcessId from, const TransferBatch& batch,
                     const std::shared_ptr<void>& keep, Done done) {
  Rng& rng = simulator_.rng();
  std::erase_if(landings_,
                [now = simulator_.Now()](const Landing& landing) { return landing.until < now; });
  auto flight = std::make_shared<Flight>();
  flight->from = from;
  flight->life = network_.Life(from);
  flight->opcode = batch.opcode;
  flight->pieces = batch.pieces;
  flight->failed.resize(batch.pieces.size());
  flight->keep = keep;
  Duration time = rates_.base_time + Duration(rng.Uniform(rates_.base_time.count() + 1));
  if (Happens(rng, rates_.slow)) {
    time += Duration(rng.Uniform(rates_.slow_time.count() + 1));
  }
  for (std::uint32_t i = 0; i < flight->pieces.size(); ++i) {
    const TransferPiece& piece = flight->pieces[i];
    if (batch.opcode == TransferOpcode::kWrite) {
      flight->sent.emplace_back(piece.local, piece.local + piece.length_bytes);
    }
    if (Happens(rng, rates_.fail)) {
      flight->failed[i] = Error{ErrorCode::kIo, "completion with error"};
    }
    if (batch.opcode == TransferOpcode::kWrite) {
      landings_.push_back({.flight = flight,
                           .begin = piece.address,
                           .end = piece.address + piece.length_bytes,
                           .until = simulator_.Now() + time});
    }
    const std::uint64_t chunks = 1 + rng.Uniform(std::min<std::uint64_t>(3, piece.length_bytes));
    for (std::uint64_t c = 0; c < chunks; ++c) {
      const std::uint64_t begin = piece.length_bytes * c / chunks;
      const std::uint64_t end = piece.length_bytes * (c + 1) / chunks;
      simulator_.After(Duration(rng.Uniform(time.count() + 1)),
                       [this, flight, i, begin, end] { MoveChunk(flight, i, begin, end - begin); });
    }
  }
  network_.RunOn(from, time + Duration(1), [flight, done = std::move(done)]() mutable {
    std::vector<PieceFailure> failures;
    for (std::uint32_t i = 0; i < flight->failed.size(); ++i) {
      if (!flight->failed[i].message.empty()) {
        failures.push_back({.piece = i, .why = flight->failed[i]});
      }
    }
    done(std::move(failures));
  });
}

void SimEngine::MoveChunk(const std::shared_ptr<Flight>& flight, std::uint32_t piece,
                          std::uint64_t offset, std::uint64_t length) {
  const TransferPiece& what = flight->pieces[piece];
  const bool sender_lives =
      network_.IsUp(flight->from) && network_.Life(flight->from) == flight->life;
  if (!sender_lives) {
    if (flight->died == Instant{}) {
      flight->died = simulator_.Now();
    }
    if (flight->opcode == TransferOpcode::kRead || simulator_.Now() > flight->died + kLateBytes) {
      return;
    }
  }
  std::byte* const remote = Reach(flight->from, what.address + offset, length);
  if (remote == nullptr) {
    flight->failed[piece] = Error{ErrorCode::kUnavailable, "the peer is gone or cut off"};
    return;
  }
  if (flight->opcode == TransferOpcode::kRead) {
    std::copy_n(remote, length, what.local + offset);
  } else {
    std::copy_n(flight->sent[piece].begin() + static_cast<std::ptrdiff_t>(offset), length, remote);
  }
}

}  // namespace mooncake::store
