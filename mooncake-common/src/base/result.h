// Errors as values: Result<T> is a T or an Error that says what was tried, on what, and what to do.
//
// Thread-safety: values, no shared state.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace mooncake {

// What kind of failure it is, so that callers can branch. Public integer codes are made from these
// in the faces and bindings.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,
  kMalformed,  // Bytes from outside do not parse.
  kNotFound,
  kAlreadyExists,
  kAddressNotRegistered,
  kAddressOverlapped,
  kBusy,       // Try again once what is in flight has ended.
  kExhausted,  // A bounded resource is full.
  kPermissionDenied,
  kRejected,     // The peer understood and refused.
  kUnavailable,  // The peer cannot be reached, or the connection was lost.
  kTimeout,
  kCancelled,
  kDns,
  kIo,
  kNotSupported,
  kInternal,
};

// "kUnavailable" -> "UNAVAILABLE" and so on; never empty.
[[nodiscard]] std::string_view ErrorCodeName(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  // "UNAVAILABLE: connect to 10.0.0.1:15000: refused; is the peer running?"
  [[nodiscard]] std::string ToString() const;
};

template <typename T>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return std::unexpected<Error>(Error{code, std::move(message)});
}

// Aborts with file, line and text. For invariants of ours only; input from outside is never checked
// with it.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace mooncake

#define MC_CHECK(condition)                                    \
  do {                                                         \
    if (!(condition)) [[unlikely]] {                           \
      ::mooncake::CheckFailed(__FILE__, __LINE__, #condition); \
    }                                                          \
  } while (false)

#define MC_CONCAT_INNER(a, b) a##b
#define MC_CONCAT(a, b) MC_CONCAT_INNER(a, b)

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration and a fresh name cannot stand in
// parentheses. Passes an error up: MC_TRY(Register(buffer));
#define MC_TRY(expression) MC_TRY_INNER(MC_CONCAT(mc_try_, __LINE__), expression)
#define MC_TRY_INNER(name, expression)                \
  if (auto name = (expression); !name) [[unlikely]] { \
    return std::unexpected(std::move(name).error());  \
  }

// Passes an error up, else names the value: MC_TRY_ASSIGN(auto plan, PlanSlices(...));
#define MC_TRY_ASSIGN(declaration, expression) \
  MC_TRY_ASSIGN_INNER(MC_CONCAT(mc_try_, __LINE__), declaration, expression)
#define MC_TRY_ASSIGN_INNER(name, declaration, expression) \
  auto name = (expression);                                \
  if (!name) [[unlikely]] {                                \
    return std::unexpected(std::move(name).error());       \
  }                                                        \
  declaration = std::move(name).value()
// NOLINTEND(bugprone-macro-parentheses)
