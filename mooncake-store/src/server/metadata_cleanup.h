// Removes from the embedded metadata server what a client left there that fell silent, so that
// nobody is told about an engine that is gone.
//
// Thread-safety: any thread; leaf locks. Does IO nowhere: the metadata server is in this process.
// Ownership:     borrows the metadata server.
// Source:        docs/formats/metadata_keys.md.
#pragma once

#include <map>
#include <string>

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
  transfer::HttpMetadataServer& metadata_;
  const std::string cluster_id_;
  Mutex mutex_;
  std::map<SegmentNumber, std::string> names_ MC_GUARDED_BY(mutex_);  // Of mounted segments.
};

}  // namespace mooncake::store
