#include <string>
#include <utility>

#include "mooncake-store/include/mooncake/store/client.h"

namespace mooncake::store {
namespace {

thread_local StoreError last_error;

}  // namespace

const StoreError& LastError() { return last_error; }

StoreCode RememberError(StoreCode code, std::string text) {
  last_error = {.code = code, .text = std::move(text)};
  return code;
}

}  // namespace mooncake::store
