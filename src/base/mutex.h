#pragma once
// Locks that the compiler checks.
//
// A field says which mutex guards it, a function which mutex its caller holds; clang
// (-Wthread-safety, an error in the preset `clang`) then refuses an access without the lock, a lock
// that is taken twice and one that is not given back. g++ does not look. At run time these are the
// standard library's types.
//
//   mutable Mutex mutex_;
//   int count_ DIBS_GUARDED_BY(mutex_) = 0;
//   void grow() DIBS_REQUIRES(mutex_);
//
//   MutexLock lock(mutex_);
//   ready_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return count_ > 0; });
//
// What clang cannot see: constructors and destructors are not looked into, and a lambda is a
// function of its own, which says itself what it needs.

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#if defined(__clang__)
#define DIBS_THREAD_SAFETY(x) __attribute__((x))
#else
#define DIBS_THREAD_SAFETY(x)
#endif

/// A field that is touched only under the mutex; PT: what a pointer field points to.
#define DIBS_GUARDED_BY(mutex) DIBS_THREAD_SAFETY(guarded_by(mutex))
#define DIBS_PT_GUARDED_BY(mutex) DIBS_THREAD_SAFETY(pt_guarded_by(mutex))
/// A function whose caller holds the mutexes; whose caller must not hold them.
#define DIBS_REQUIRES(...) DIBS_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define DIBS_REQUIRES_SHARED(...) DIBS_THREAD_SAFETY(requires_shared_capability(__VA_ARGS__))
#define DIBS_EXCLUDES(...) DIBS_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
/// A function that takes a mutex, or gives it back.
#define DIBS_ACQUIRE(...) DIBS_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define DIBS_ACQUIRE_SHARED(...) DIBS_THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define DIBS_RELEASE(...) DIBS_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define DIBS_RELEASE_SHARED(...) DIBS_THREAD_SAFETY(release_shared_capability(__VA_ARGS__))
#define DIBS_RELEASE_GENERIC(...) DIBS_THREAD_SAFETY(release_generic_capability(__VA_ARGS__))
#define DIBS_CAPABILITY(name) DIBS_THREAD_SAFETY(capability(name))
#define DIBS_SCOPED_CAPABILITY DIBS_THREAD_SAFETY(scoped_lockable)
/// A function that gives a reference to a mutex under another name.
#define DIBS_RETURN_CAPABILITY(mutex) DIBS_THREAD_SAFETY(lock_returned(mutex))
/// A function that is not looked into. Needs a comment with the reason.
#define DIBS_NO_THREAD_SAFETY_ANALYSIS DIBS_THREAD_SAFETY(no_thread_safety_analysis)

namespace dibs {

class DIBS_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() DIBS_ACQUIRE() { mutex_.lock(); }
  void unlock() DIBS_RELEASE() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds the mutex as long as it lives. A function may give it back in between.
class DIBS_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) DIBS_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() DIBS_RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() DIBS_RELEASE() { lock_.unlock(); }
  void lock() DIBS_ACQUIRE() { lock_.lock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

/// Readers at the same time, or one writer; a waiting writer goes before new readers.
///
/// std::shared_mutex prefers readers on Linux: many of them in a tight loop keep a writer out for
/// good. A thread must not take the shared side twice.
class DIBS_CAPABILITY("mutex") SharedMutex {
 public:
  SharedMutex() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock_, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }
  ~SharedMutex() { pthread_rwlock_destroy(&lock_); }
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() DIBS_ACQUIRE() { pthread_rwlock_wrlock(&lock_); }
  void unlock() DIBS_RELEASE() { pthread_rwlock_unlock(&lock_); }
  void lock_shared() DIBS_ACQUIRE_SHARED() { pthread_rwlock_rdlock(&lock_); }
  void unlock_shared() DIBS_RELEASE_SHARED() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

class DIBS_SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) DIBS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~WriterLock() DIBS_RELEASE() { mutex_.unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class DIBS_SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) DIBS_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~ReaderLock() DIBS_RELEASE_GENERIC() { mutex_.unlock_shared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

  /// Lets a waiting writer go first. Not looked into: that the lock is held is known only outside.
  void yield() DIBS_NO_THREAD_SAFETY_ANALYSIS {
    mutex_.unlock_shared();
    mutex_.lock_shared();
  }

 private:
  SharedMutex& mutex_;
};

/// Waits under a MutexLock; the mutex is held again when a wait returns, and while `condition` is
/// asked. The waits with a limit tell whether it came true.
class CondVar {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  void wait(MutexLock& lock) { condition_.wait(lock.lock_); }
  template <typename Condition>
  void wait(MutexLock& lock, Condition condition) {
    condition_.wait(lock.lock_, std::move(condition));
  }
  template <typename Limit, typename Condition>
  bool wait_for(MutexLock& lock, Limit limit, Condition condition) {
    return condition_.wait_for(lock.lock_, limit, std::move(condition));
  }
  /// False when the limit passed.
  template <typename Limit>
  bool wait_for(MutexLock& lock, Limit limit) {
    return condition_.wait_for(lock.lock_, limit) == std::cv_status::no_timeout;
  }
  template <typename Deadline, typename Condition>
  bool wait_until(MutexLock& lock, Deadline deadline, Condition condition) {
    return condition_.wait_until(lock.lock_, deadline, std::move(condition));
  }
  template <typename Deadline>
  bool wait_until(MutexLock& lock, Deadline deadline) {
    return condition_.wait_until(lock.lock_, deadline) == std::cv_status::no_timeout;
  }

 private:
  std::condition_variable condition_;
};

}  // namespace dibs
