// A mutex that clang's thread-safety analysis understands: mark state with MC_GUARDED_BY(mutex_),
// lock with MutexLock.
//
// Never held across a callback or a blocking call.
#pragma once

#include <mutex>

#if defined(__clang__)
#define MC_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define MC_THREAD_ANNOTATION(x)
#endif
#define MC_GUARDED_BY(x) MC_THREAD_ANNOTATION(guarded_by(x))
#define MC_PT_GUARDED_BY(x) MC_THREAD_ANNOTATION(pt_guarded_by(x))
#define MC_REQUIRES(...) MC_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define MC_EXCLUDES(...) MC_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define MC_CAPABILITY(x) MC_THREAD_ANNOTATION(capability(x))
#define MC_SCOPED_CAPABILITY MC_THREAD_ANNOTATION(scoped_lockable)
#define MC_ACQUIRE(...) MC_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define MC_TRY_ACQUIRE(...) MC_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define MC_RELEASE(...) MC_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define MC_NO_THREAD_SAFETY_ANALYSIS MC_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace mooncake {

class MC_CAPABILITY("mutex") Mutex {
 public:
  void lock() MC_ACQUIRE() { mutex_.lock(); }
  void unlock() MC_RELEASE() { mutex_.unlock(); }
  bool try_lock() MC_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

class MC_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MC_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() MC_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace mooncake
