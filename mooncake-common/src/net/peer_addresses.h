// The addresses of a peer that is known by a name or a number: which to dial next, and asking for
// the name again when none of them could be reached.
//
// A name may have several addresses (one in each family, one for each replica) of which the peer
// listens on some, and may get others during our life, as that of a pod that moves. So an address
// that cannot be reached gives way to the next one, and what was reached stays the choice. When all
// have failed in turn, the name is looked up in the background; who dials meanwhile goes through
// the old addresses once more.
//
// Thread-safety: any thread. None but WaitUntilKnown() waits for a name server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/net/resolve.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {

class PeerAddresses : public std::enable_shared_from_this<PeerAddresses> {
 public:
  // An address to dial, to be handed back with what became of it.
  struct Choice {
    SocketAddress address;
    std::uint64_t turn = 0;
    bool last_of_round = false;  // All others have failed since one was reached or looked up.
  };

  // Begins to look up a host that is no number.
  [[nodiscard]] static std::shared_ptr<PeerAddresses> Create(std::string host, std::uint16_t port,
                                                             NameLookup lookup = ResolveAddresses);

  // Errors: kTimeout, and those of the lookup.
  [[nodiscard]] Result<void> WaitUntilKnown(Instant deadline) MC_EXCLUDES(mutex_);

  // The address whose turn it is; none while the first lookup is under way.
  //
  // Errors: those of a lookup that failed, when no address is known; the next call asks again.
  [[nodiscard]] Result<std::optional<Choice>> Next() MC_EXCLUDES(mutex_);

  // It could not be reached. Returns its last_of_round: false = the next one is worth a try now.
  bool OnFailure(const Choice& choice) MC_EXCLUDES(mutex_);
  // It was reached.
  void OnSuccess(const Choice& choice) MC_EXCLUDES(mutex_);

  // "db.example:4000", or with a choice "db.example:4000 (10.0.0.1:4000)"; a number stands alone.
  [[nodiscard]] std::string Describe() const;
  [[nodiscard]] std::string Describe(const SocketAddress& address) const;

 private:
  PeerAddresses(std::string host, std::uint16_t port, NameLookup lookup);

  void BeginLookup() MC_EXCLUDES(mutex_);
  void OnAnswer(Result<Addresses> found) MC_EXCLUDES(mutex_);

  const std::string host_;
  const std::uint16_t port_;
  const NameLookup lookup_;
  bool is_number_ = false;

  Mutex mutex_;
  CondVar changed_;
  Addresses addresses_ MC_GUARDED_BY(mutex_);
  std::size_t next_ MC_GUARDED_BY(mutex_) = 0;
  std::uint64_t turn_ MC_GUARDED_BY(mutex_) = 0;
  bool looking_ MC_GUARDED_BY(mutex_) = false;
  std::optional<Error> failure_ MC_GUARDED_BY(mutex_);  // Of the last lookup, until somebody heard.
};

}  // namespace mooncake
