#include "store/commons.h"

#include <functional>

namespace dibs::store {
namespace {

/// Larger ones are parsed again: they would keep a thousand times more in memory than they save.
constexpr std::size_t kLargestRead = 16 * 1024;

}  // namespace

Mutex& Commons::mutex_of(Mutexes& all, const void* of) {
  return all[(std::hash<const void*>()(of) >> 6) % all.size()];
}

Commons::Place& Commons::place_of(std::string_view key) {
  return read_[std::hash<std::string_view>()(key) % read_.size()];
}

AttachmentPtr Commons::recently_read(const Record& record) {
  Place& place = place_of(record.key);
  const MutexLock lock(place.mutex);
  const bool same = place.modified == record.modified && place.key == record.key;
  return same ? place.what : nullptr;
}

void Commons::keep_read(const Record& record, AttachmentPtr what) {
  if (record.value->size() > kLargestRead) return;
  Place& place = place_of(record.key);
  const MutexLock lock(place.mutex);
  place.key = record.key;
  place.modified = record.modified;
  place.what.swap(what);  // what it was is freed after unlocking
}

}  // namespace dibs::store
