// Where environment variables come from: the process, or a map in tests and in the simulator.
//
// Thread-safety: reading may happen on any thread as long as nobody calls setenv meanwhile (a rule
// of POSIX); so read at set-up and keep the values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mooncake {

class EnvSource {
 public:
  virtual ~EnvSource() = default;
  // The value as it is set; nullopt if the variable is not.
  [[nodiscard]] virtual std::optional<std::string> Find(std::string_view name) const = 0;
  // The names of all variables that are set, in any order.
  [[nodiscard]] virtual std::vector<std::string> Names() const = 0;
};

// This process's environment.
class ProcessEnv final : public EnvSource {
 public:
  [[nodiscard]] std::optional<std::string> Find(std::string_view name) const override;
  [[nodiscard]] std::vector<std::string> Names() const override;
  // One for all; it has no state.
  static const ProcessEnv& Get();
};

// Just these variables.
class MapEnv final : public EnvSource {
 public:
  MapEnv() = default;
  explicit MapEnv(std::map<std::string, std::string, std::less<>> values)
      : values_(std::move(values)) {}
  void Set(std::string name, std::string value) {
    values_.insert_or_assign(std::move(name), std::move(value));
  }
  [[nodiscard]] std::optional<std::string> Find(std::string_view name) const override;
  [[nodiscard]] std::vector<std::string> Names() const override;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace mooncake
