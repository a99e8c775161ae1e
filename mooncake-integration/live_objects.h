// Objects of this process that stand on threads, which must have ended when the process takes its
// libraries down: whatever Python has not let go of by then is closed. A forked process has none of
// its parent's.
//
// Thread-safety: any thread; needs no interpreter lock.
#pragma once

#include <map>
#include <memory>

#include "mooncake-common/src/concurrency/per_process.h"

namespace mooncake::integration {

template <typename T>
class LiveObjects {
 public:
  static void Add(const std::shared_ptr<T>& object) {
    All().With([&](auto& objects) { objects[object.get()] = object; });
  }
  // Nothing if it is not there.
  static void Remove(T* object) {
    All().With([&](auto& objects) { objects.erase(object); });
  }
  // Calls Close() of each that nobody removed yet.
  static void CloseAll() {
    while (const std::shared_ptr<T> object = TakeOne()) {
      object->Close();
    }
  }

 private:
  using Objects = std::map<T*, std::weak_ptr<T>>;

  // Never destroyed: objects may end after it would be.
  static PerProcess<Objects>& All() {
    static auto& all = *new PerProcess<Objects>();
    return all;
  }

  // Null when there is none left; what is being destroyed closes by itself.
  static std::shared_ptr<T> TakeOne() {
    return All().With([](Objects& objects) {
      std::shared_ptr<T> object;
      while (!object && !objects.empty()) {
        object = objects.begin()->second.lock();
        objects.erase(objects.begin());
      }
      return object;
    });
  }
};

}  // namespace mooncake::integration
