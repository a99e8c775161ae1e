// Metadata in an HTTP metadata server (http://, https://): the name is a label, what stands behind
// it lies in the server. See metadata.h for the contract.
//
// Threads: one of its own, which looks every `check_interval` whether the server still has what was
// published, and publishes it again if not: such servers keep everything in memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-transfer-engine/src/metadata/http_store.h"
#include "mooncake-transfer-engine/src/metadata/metadata.h"
#include "mooncake-transfer-engine/src/metadata/metadata_keys.h"
#include "mooncake-transfer-engine/src/metadata/peer_link.h"

namespace mooncake::transfer {

class HttpMetadata final : public Metadata {
 public:
  // Errors: kInvalidArgument for a connection that is no URL.
  [[nodiscard]] static Result<std::unique_ptr<Metadata>> Make(MetadataOptions options,
                                                              Reactor& reactor, Rng rng);
  HttpMetadata(MetadataOptions options, Reactor& reactor, Rng rng,
               std::unique_ptr<HttpStore> store);
  ~HttpMetadata() override;

  [[nodiscard]] Result<void> Start(DescribeLocal describe) override;
  void Interrupt() override { link_.Interrupt(); }
  void Stop() override;
  [[nodiscard]] std::string LocalName() const override { return name_; }
  [[nodiscard]] std::string DataHost() const override { return self_.host; }
  [[nodiscard]] std::uint16_t RpcPort() const override { return link_.port(); }
  [[nodiscard]] Result<void> PublishSegment(const SegmentDescriptor& descriptor) override;
  [[nodiscard]] Result<SegmentDescriptor> GetSegment(std::string_view name) override;
  [[nodiscard]] Result<void> RemoveSegment(std::string_view name) override;
  [[nodiscard]] Result<void> Republish() override;
  [[nodiscard]] Result<void> Probe(std::string_view name) override;
  [[nodiscard]] Result<void> Notify(std::string_view name,
                                    const Notification& notification) override;
  [[nodiscard]] std::vector<Notification> TakeNotifies() override { return link_.TakeNotifies(); }

 private:
  [[nodiscard]] Result<void> ChooseNames();
  [[nodiscard]] Result<void> PublishRpcMeta();
  [[nodiscard]] Result<void> ReplaceRpcMeta(const std::string& old_value);
  [[nodiscard]] bool IsAlive(const RpcMeta& other) const;
  [[nodiscard]] Result<RpcMeta> GetRpcMeta(std::string_view name);
  [[nodiscard]] Result<void> PutSegment();
  [[nodiscard]] Result<void> RepublishRpcMeta();
  [[nodiscard]] bool NameLost() const MC_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<std::string> Published() const MC_EXCLUDES(mutex_);
  void Keep() MC_EXCLUDES(mutex_);

  const MetadataOptions options_;
  Rng rng_;
  PeerLink link_;
  const std::unique_ptr<HttpStore> store_;
  // Set by Start().
  std::string name_;
  RpcMeta self_;
  bool rpc_meta_published_ = false;

  mutable Mutex mutex_;
  std::string told_name_ MC_GUARDED_BY(mutex_);   // To peers, which may ask while it is chosen.
  bool name_lost_ MC_GUARDED_BY(mutex_) = false;  // A living process has it.
  CondVar stop_;
  bool stopping_ MC_GUARDED_BY(mutex_) = false;
  // The text of the descriptor that the server should have.
  std::optional<std::string> published_ MC_GUARDED_BY(mutex_);
  Thread keeper_;
};

}  // namespace mooncake::transfer
