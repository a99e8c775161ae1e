// Removes from the embedded metadata server what a client left there that fell silent, so that
// nobody is told about an engine that is gone. Entries of an engine that has taken the name over,
// as a process restarted on its old address has, stay: it has mounted a segment by that name, or
// rpc_meta is not any more what it was when the silent one mounted its own.
//
// Thread-safety: any thread; leaf locks. Does IO nowhere: the metadata server is in this process.
// Ownership:     borrows the metadata server.
// Source:        docs/formats/metadata_keys.md.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "mooncake-common/src/base/uuid.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/master/event.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/http_metadata_server.h"

namespace mooncake::store {

class MetadataCleanup final : public EventSink {
 public:
  // `cluster_id`: the prefix of all keys, MC_METADATA_CLUSTER_ID; empty = none.
  MetadataCleanup(transfer::HttpMetadataServer& metadata, std::string cluster_id)
      : metadata_(metadata), cluster_id_(std::move(cluster_id)) {}

  void OnSegment(const SegmentEvent& event) override MC_EXCLUDES(mutex_);
  void OnObject(const ObjectEvent&) override {}
  void OnClient(const ClientEvent&) override {}
  void OnHealth(const HealthEvent&) override {}
  void OnRecency(const RecencyEvent&) override {}
  void OnRested(Instant) override {}

 private:
  struct Engine {
    std::string name;
    Uuid owner;
    std::optional<std::string> rpc_meta;  // When the segment was mounted.
    bool leaving = false;
  };

  [[nodiscard]] std::string RpcMetaKey(const std::string& name) const;
  [[nodiscard]] bool TakenOver(const Engine& lost) const MC_REQUIRES(mutex_);

  transfer::HttpMetadataServer& metadata_;
  const std::string cluster_id_;
  Mutex mutex_;
  // Whose segments are mounted.
  std::map<SegmentNumber, Engine> engines_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::store
