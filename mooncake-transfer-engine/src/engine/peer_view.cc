#include "mooncake-transfer-engine/src/engine/peer_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mooncake::transfer {

namespace {

std::vector<AddressRange> SortedRanges(const SegmentDescriptor& peer) {
  std::vector<AddressRange> ranges;
  ranges.reserve(peer.buffers.size());
  for (const BufferDescriptor& buffer : peer.buffers) {
    // A peer's nonsense is left out: no request can lie in it.
    if (buffer.length_bytes != 0 && buffer.length_bytes <= ~std::uint64_t{0} - buffer.address) {
      ranges.push_back({.begin = buffer.address, .end = buffer.address + buffer.length_bytes});
    }
  }
  std::ranges::sort(ranges, {}, &AddressRange::begin);
  return ranges;
}

bool SameBuffer(const BufferDescriptor& a, const BufferDescriptor& b) {
  const auto same_memory = [](const SharedMemory& x, const SharedMemory& y) {
    return x.fd == y.fd && x.offset_bytes == y.offset_bytes;
  };
  return a.address == b.address && a.length_bytes == b.length_bytes &&
         a.shared.has_value() == b.shared.has_value() &&
         (!a.shared || same_memory(*a.shared, *b.shared));
}

bool SameExtension(const PeerExtension& a, const PeerExtension& b) {
  return a.incarnation == b.incarnation && a.host_id == b.host_id && a.pid == b.pid &&
         a.pid_namespace == b.pid_namespace && a.nonce == b.nonce &&
         a.nonce_address == b.nonce_address && a.tcp_extension_version == b.tcp_extension_version;
}

}  // namespace

Result<std::shared_ptr<PeerView>> PeerView::Make(
    std::shared_ptr<const SegmentDescriptor> peer,
    std::span<const std::unique_ptr<Transport>> transports) {
  auto view = std::shared_ptr<PeerView>(new PeerView());
  std::string reasons;
  std::vector<std::uint32_t> ranks;
  for (const auto& transport : transports) {
    const TransportTraits traits = transport->Describe();
    auto endpoint = transport->Connect(peer);
    if (!endpoint) {
      reasons += fmt::format("; {}: {}", traits.name, endpoint.error().message);
      continue;
    }
    auto path = std::make_unique<Path>();
    path->traits = traits;
    path->endpoint = std::move(endpoint).value();
    path->index = view->paths_.size();
    if (traits.needs_local_registration) {
      view->registered_only_ |= 1U << path->index;
    }
    ranks.push_back(traits.rank);
    view->paths_.push_back(std::move(path));
  }
  if (view->paths_.empty()) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("connect to segment {}: no transport of this engine reaches it{}",
                            peer->name, reasons));
  }
  const auto best = std::ranges::min(ranks);
  view->best_rank_paths_ = static_cast<std::uint32_t>(std::ranges::count(ranks, best));
  view->ranges_ = SortedRanges(*peer);
  view->descriptor_ = std::move(peer);
  const MutexLock lock(view->mutex_);
  view->chooser_.emplace(std::move(ranks));
  const auto sole = view->chooser_->Sole();
  view->sole_ = sole ? static_cast<int>(*sole) : -1;
  return view;
}

std::optional<AddressRange> PeerView::FindRange(std::uint64_t address,
                                                std::uint64_t length_bytes) const {
  const auto after = std::ranges::upper_bound(ranges_, address, {}, &AddressRange::begin);
  if (after == ranges_.begin()) {
    return std::nullopt;
  }
  const AddressRange& range = *std::prev(after);
  return range.Contains(address, length_bytes) ? std::optional(range) : std::nullopt;
}

bool PeerView::SameAs(const SegmentDescriptor& other) const {
  const SegmentDescriptor& mine = *descriptor_;
  return mine.protocol == other.protocol && mine.tcp_data_host == other.tcp_data_host &&
         mine.tcp_data_port == other.tcp_data_port &&
         mine.tcp_proto_version == other.tcp_proto_version &&
         mine.extension.has_value() == other.extension.has_value() &&
         (!mine.extension || SameExtension(*mine.extension, *other.extension)) &&
         std::ranges::equal(mine.buffers, other.buffers, SameBuffer);
}

Path* PeerView::Choose(const Want& want, const Clock& clock) {
  const int sole = sole_.load(std::memory_order_relaxed);
  if (sole >= 0 && ((want.excluded | want.avoided) & (1U << sole)) == 0) [[likely]] {
    return paths_[static_cast<std::size_t>(sole)].get();
  }
  std::array<std::uint64_t, PathChooser::kMaxPaths> inflight{};
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    inflight[i] = paths_[i]->inflight_bytes.load(std::memory_order_relaxed);
  }
  const Instant now = clock.Now();
  const MutexLock lock(mutex_);
  const auto choice = chooser_->Choose({.length_bytes = want.length_bytes,
                                        .inflight_bytes = std::span(inflight).first(paths_.size()),
                                        .excluded = want.excluded,
                                        .avoided = want.avoided,
                                        .first_attempt = want.first_attempt},
                                       now);
  return choice ? paths_[*choice].get() : nullptr;
}

void PeerView::OnDone(const Path& path, std::uint64_t length_bytes, Instant posted, Instant done) {
  const MutexLock lock(mutex_);
  if (posted == Instant{}) {
    chooser_->OnDone(path.index);
  } else {
    chooser_->OnDone(path.index, length_bytes, posted, done);
  }
  const auto sole = chooser_->Sole();
  sole_.store(sole ? static_cast<int>(*sole) : -1, std::memory_order_relaxed);
}

Instant PeerView::OnFailed(const Path& path, Instant now) {
  const MutexLock lock(mutex_);
  const Instant again = chooser_->OnFailed(path.index, now);
  const auto sole = chooser_->Sole();
  sole_.store(sole ? static_cast<int>(*sole) : -1, std::memory_order_relaxed);
  return again;
}

bool PeerView::HasAlternative(const Path& path, Instant now) const {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (i != path.index && !chooser_->health(i).Paused(now)) {
      return true;
    }
  }
  return false;
}

}  // namespace mooncake::transfer
