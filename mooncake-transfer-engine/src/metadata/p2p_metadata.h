// Metadata without a central store (P2PHANDSHAKE): a segment's name is where its owner is asked.
// See metadata.h for the contract.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-transfer-engine/src/metadata/metadata.h"
#include "mooncake-transfer-engine/src/metadata/peer_link.h"
#include "mooncake-transfer-engine/src/metadata/server_name.h"

namespace mooncake::transfer {

class P2pMetadata final : public Metadata {
 public:
  P2pMetadata(MetadataOptions options, Reactor& reactor, Rng rng);
  ~P2pMetadata() override;

  [[nodiscard]] Result<void> Start(DescribeLocal describe) override;
  void Interrupt() override { link_.Interrupt(); }
  void Stop() override;
  [[nodiscard]] std::string LocalName() const override;
  [[nodiscard]] std::string DataHost() const override { return host_.data_host; }
  [[nodiscard]] std::uint16_t RpcPort() const override { return link_.port(); }
  [[nodiscard]] Result<void> PublishSegment(const SegmentDescriptor&) override { return {}; }
  [[nodiscard]] Result<SegmentDescriptor> GetSegment(std::string_view name) override;
  [[nodiscard]] Result<void> RemoveSegment(std::string_view) override { return {}; }
  [[nodiscard]] Result<void> Republish() override { return {}; }
  [[nodiscard]] Result<void> Probe(std::string_view name) override;
  [[nodiscard]] Result<void> Notify(std::string_view name,
                                    const Notification& notification) override;
  [[nodiscard]] std::vector<Notification> TakeNotifies() override { return link_.TakeNotifies(); }

 private:
  [[nodiscard]] SegmentDescriptor Describe() const;

  const MetadataOptions options_;
  Rng rng_;
  PeerLink link_;
  // Set by Start().
  DescribeLocal describe_;
  HostChoice host_;
};

}  // namespace mooncake::transfer
