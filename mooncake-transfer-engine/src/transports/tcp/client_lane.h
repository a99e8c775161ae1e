// One long-lived connection to a peer's data port: moves what the ledger holds, by a ClientStream
// over a Lane. Whoever polls drives; else the reactor does.
//
// When the connection ends, what was not answered goes back to the ledger for another one. What
// stood first in line may be the reason (a v1 peer refuses a request by closing): it fails when it
// ends a second connection, one that was opened after the first had ended. Those that were open by
// then do not count, since they may have ended with the first, when the peer went.
//
// Thread-safety: Poll, Release, Close, closed: any thread. It never tells a sink; it puts what has
//                ended into the ledger, and who drove calls SliceLedger::Report(). After the
//                reactor drove, `on_ended` is called.
// Ownership:     ledger and reactor outlive it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mooncake-common/src/net/lane.h"
#include "mooncake-transfer-engine/src/transports/slice_ledger.h"
#include "mooncake-transfer-engine/src/transports/tcp/client_stream.h"

namespace mooncake::transfer {

class ClientLane final : private LaneDriver {
 public:
  struct Hooks {
    std::function<void()> on_connected;  // Once, from within the driver.
    std::function<void()> on_ended;      // On the reactor's thread, from within the driver.
    // The connection is over. `failed_to_connect`: it never came about.
    std::function<void(bool failed_to_connect, const Error& why)> on_closed;
  };

  // Begins to connect.
  //
  // Errors: kUnavailable, kIo, kExhausted.
  [[nodiscard]] static Result<std::shared_ptr<ClientLane>> Open(Reactor& reactor,
                                                                SliceLedger& ledger,
                                                                TcpProtocol protocol,
                                                                const SocketAddress& address,
                                                                Hooks hooks);
  ~ClientLane() override;

  bool Poll() { return lane_->Poll(); }
  void Release() { lane_->Release(); }
  // See Endpoint::CutOff(). Drives once.
  [[nodiscard]] bool CutOff();
  void Close(const Error& why) { lane_->Close(why); }
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }

 private:
  ClientLane(Reactor& reactor, SliceLedger& ledger, TcpProtocol protocol,
             const SocketAddress& address, Hooks hooks);

  Result<Progress> Drive(int fd) override;
  bool HasPending() override { return !stream_.empty() || ledger_.HasUnclaimed(); }
  bool WantsWrite() override {
    return stream_.HasUnsent() || (ledger_.HasUnclaimed() && stream_.HasRoom());
  }
  void OnClosed(const Error& why) override;

  [[nodiscard]] Result<bool> Send(int fd);  // Whether anything moved.
  [[nodiscard]] Result<bool> Receive(int fd);
  [[nodiscard]] Result<void> NoticeEnd(int fd);
  [[nodiscard]] std::unexpected<Error> Ended(const IoOutcome& outcome);
  void NoteConnected();
  void FillWindow();
  bool FinishAnswered();
  void AskHost(int fd);
  // Whether what stood first in line when the connection ended is the reason, by all that is known.
  [[nodiscard]] bool Suspect(Claim& first) const;

  Reactor& reactor_;
  SliceLedger& ledger_;
  const SocketAddress address_;
  const Instant opened_at_;
  const Hooks hooks_;
  // All below but lane_ and the atomics is the holder's.
  ClientStream stream_;
  std::vector<std::unique_ptr<ClientFrame>> spare_frames_;  // To be used again.
  bool connected_ = false;
  bool first_is_blameless_ = false;  // The connection ends for a known reason.
  bool asks_host_often_ = false;
  std::atomic<bool> ask_host_ = false;
  std::atomic<bool> host_silent_ = false;
  std::atomic<bool> closed_ = false;
  std::unique_ptr<Lane> lane_;
};

}  // namespace mooncake::transfer
