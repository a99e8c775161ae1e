#include "mooncake-store/tests/sim/owned_call.h"

#include <deque>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace mooncake::store {
namespace {

// Copies texts and lets views point to the copies.
class Keeper {
 public:
  void Own(std::string_view& view) { view = texts_.emplace_back(view); }
  void Own(std::vector<std::string_view>& views) {
    for (std::string_view& view : views) {
      Own(view);
    }
  }
  void Own(ReplicateConfigView& config) {
    Own(config.preferred_segment);
    Own(config.preferred_segments);
    Own(config.group_ids);
    Own(config.host_id);
  }

  template <typename Request>
  void OwnAll(Request& request) {
    Own(request.caller.tenant);
    if constexpr (requires { request.keys; }) {
      Own(request.keys);
    }
    if constexpr (requires { request.config; }) {
      Own(request.config);
    }
    if constexpr (requires { request.pattern; }) {
      Own(request.pattern);
    }
    if constexpr (requires { request.segment_name; }) {
      Own(request.segment_name);
    }
  }

 private:
  std::deque<std::string> texts_;  // Its elements stay where they are.
};

template <typename Exchange>
struct Held {
  typename Exchange::RequestType request;
  typename Exchange::ReplyType reply;
};

}  // namespace

struct OwnedCall::Body {
  virtual ~Body() = default;
  [[nodiscard]] virtual MasterCall call() = 0;
  virtual void GiveReply(const MasterCall& original) = 0;
  Keeper keeper;
};

OwnedCall::OwnedCall(const MasterCall& original) {
  std::visit(
      [this](const auto& exchange) {
        using Kind = std::decay_t<decltype(exchange)>;
        if constexpr (!std::is_same_v<Kind, std::monostate>) {
          struct Typed final : Body {
            MasterCall call() override { return Kind{&held.request, &held.reply}; }
            void GiveReply(const MasterCall& to) override {
              *std::get<Kind>(to).reply = held.reply;
            }
            Held<Kind> held;
          };
          auto typed = std::make_unique<Typed>();
          typed->held.request = *exchange.request;
          typed->keeper.OwnAll(typed->held.request);
          body_ = std::move(typed);
        }
      },
      original);
}

OwnedCall::~OwnedCall() = default;

MasterCall OwnedCall::call() const { return body_->call(); }

void OwnedCall::GiveReply(const MasterCall& original) const { body_->GiveReply(original); }

}  // namespace mooncake::store
