#pragma once
// What the records of one store have in common, so that each need not have it: bases of their
// values, locks, and what readers made of them lately. It outlives whoever asks a record for an
// attachment.
//
// Thread-safe.

#include <array>
#include <string>

#include "base/mutex.h"
#include "store/store.h"

namespace dibs::store {

class Commons {
 public:
  ValuePool values;

  /// One each would weigh more than most attachments, and most encoded forms, gain.
  Mutex& attachment_mutex(const Record& of) { return mutex_of(attachments_, &of); }
  Mutex& forms_mutex(const Event& of) { return mutex_of(forms_, &of); }

  AttachmentPtr recently_read(const Record& record);
  void keep_read(const Record& record, AttachmentPtr what);

 private:
  using Mutexes = std::array<Mutex, 64>;
  static Mutex& mutex_of(Mutexes& all, const void* of);

  /// Values that are read again and again though nobody has written them lately. One place per hash
  /// of the key, so it never grows.
  struct Place {
    Mutex mutex;
    std::string key DIBS_GUARDED_BY(mutex);
    Revision modified DIBS_GUARDED_BY(mutex) = 0;  // 0: free
    AttachmentPtr what DIBS_GUARDED_BY(mutex);
  };
  Place& place_of(std::string_view key);

  Mutexes attachments_;
  Mutexes forms_;
  std::array<Place, 1024> read_;
};

}  // namespace dibs::store
