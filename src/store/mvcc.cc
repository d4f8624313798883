#include "store/mvcc.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::store {
namespace {

/// Keys looked at, and events forgotten, between two releases of the lock.
constexpr std::size_t kReadPiece = 1024;
constexpr std::size_t kTrimPiece = 256;
constexpr std::size_t kEventOverhead = 256;
/// Records that keep their attachment.
constexpr std::size_t kMostAttached = 4096;
/// Events that keep their encoded forms: watchers that are further behind are few.
constexpr std::size_t kMostMemos = 4096;

std::size_t cost_of(const Event& event) {
  return kEventOverhead + (event.before ? event.before->value->memory() : 0);
}

Error compacted_error() { return Error::expired("required revision has been compacted"); }

}  // namespace

/// One watcher: its place in a channel.
class Mvcc::Cursor : public Watch {
 public:
  Cursor(std::shared_ptr<Mvcc> mvcc, Channel& channel, Revision from, std::int64_t place,
         WakerPtr waker)
      : mvcc_(std::move(mvcc)),
        channel_(channel),
        from_(from),
        place_(place),
        waker_(std::move(waker)) {}

  ~Cursor() override {
    waker_->close();
    const WriterLock lock(mvcc_->lock_);
    {
      const MutexLock waiting_lock(channel_.mutex);
      if (waker_->waiting) std::erase(channel_.waiting, waker_);
    }
    mvcc_->hub_.leave(channel_);
  }

  Result<std::vector<EventPtr>> next(std::size_t limit, Revision* revision) override {
    std::vector<EventPtr> events;
    const ReaderLock lock(mvcc_->lock_);
    if (place_ < channel_.first) {
      return Error::expired(
          cat("too old resource version: ", seen_, " (", mvcc_->compacted(), ")"));
    }
    const auto& all = channel_.events;
    auto index = static_cast<std::size_t>(place_ - channel_.first);
    for (; index < all.size() && events.size() < limit; ++index) {
      if (all[index]->revision > from_) events.push_back(all[index]);
    }
    place_ = channel_.first + static_cast<std::int64_t>(index);
    const Revision complete = index < all.size() ? all[index]->revision - 1 : mvcc_->revision();
    seen_ = std::max(seen_, complete);
    if (revision != nullptr) *revision = complete;
    if (events.empty() && index == all.size()) {
      const MutexLock waiting_lock(channel_.mutex);
      if (!std::exchange(waker_->waiting, true)) channel_.waiting.push_back(waker_);
    }
    return events;
  }

 private:
  const std::shared_ptr<Mvcc> mvcc_;
  Channel& channel_;
  const Revision from_;
  std::int64_t place_;
  Revision seen_ = from_;
  const WakerPtr waker_;
};

RecordPtr Mvcc::get(std::string_view key) const {
  const ReaderLock lock(lock_);
  const KeyEntry* entry = index_.find(key);
  return entry == nullptr ? nullptr : entry->latest();
}

bool Mvcc::read_piece(const RangeQuery& query, Revision at, std::string& from,
                      Listing& listing) const {
  std::size_t seen = 0;
  bool done = true;
  const KeyEntry* first_left = nullptr;
  index_.walk(query.prefix, from, [&](const KeyEntry& entry) {
    if (++seen > kReadPiece) {
      from = entry.key();
      done = false;
      return false;
    }
    const RecordPtr& record = entry.visible(at);
    if (!record) return true;
    if (query.limit != 0 && listing.records.size() == query.limit) {
      first_left = &entry;
      return false;
    }
    listing.records.push_back(record);
    return true;
  });
  if (first_left != nullptr) {
    listing.more = true;
    listing.remaining = index_.count(query.prefix, first_left->key(), at);
  }
  return done;
}

Result<Listing> Mvcc::range(const RangeQuery& query) const {
  // A compaction that overtakes a listing of the current state makes it start again, so the last
  // try keeps the lock.
  for (int tries = 0;; ++tries) {
    Listing listing;
    std::string from = query.from;
    ReaderLock lock(lock_);
    listing.revision = query.at == 0 ? revision() : query.at;
    if (listing.revision > revision()) {
      return Error::timeout(
          cat("Too large resource version: ", listing.revision, ", current: ", revision()));
    }
    bool overtaken = false;
    while (true) {
      if (listing.revision < compacted()) {
        overtaken = true;
        break;
      }
      if (read_piece(query, listing.revision, from, listing)) return listing;
      if (tries < 3) lock.yield();
    }
    if (overtaken && query.at != 0) return compacted_error();
  }
}

std::size_t Mvcc::count(std::string_view prefix) const {
  const ReaderLock lock(lock_);
  return index_.count(prefix, {}, revision());
}

Result<std::unique_ptr<Watch>> Mvcc::watch(std::string_view prefix, Revision from,
                                           std::function<void()> ready) {
  auto waker = std::make_shared<Waker>(std::move(ready));
  const WriterLock lock(lock_);
  if (from < compacted()) {
    return Error::expired(cat("too old resource version: ", from, " (", compacted(), ")"));
  }
  Channel& channel = hub_.open(prefix, from, history_);
  const auto begin = channel.events.begin();
  const auto at =
      std::upper_bound(begin, channel.events.end(), from,
                       [](Revision r, const EventPtr& event) { return r < event->revision; });
  return std::unique_ptr<Watch>(std::make_unique<Cursor>(
      shared_from_this(), channel, from, channel.first + (at - begin), std::move(waker)));
}

Wakeups Mvcc::apply(std::vector<Change> changes, Revision revision) {
  Wakeups wakeups;
  std::vector<RecordPtr> plain;
  {
    const WriterLock lock(lock_);
    for (Change& change : changes) {
      if (change.now && change.now->attachment()) attached_.push_back(change.now);
      apply_one(std::move(change), wakeups);
    }
    revision_.store(std::max(this->revision(), revision), std::memory_order_release);
    while (attached_.size() > kMostAttached) {
      plain.push_back(std::move(attached_.front()));
      attached_.pop_front();
    }
  }
  for (const RecordPtr& record : plain) record->attach(nullptr);
  return wakeups;
}

void Mvcc::apply_one(Change change, Wakeups& wakeups) {
  KeyEntry* entry = index_.find(change.key());
  RecordPtr before = entry == nullptr ? nullptr : entry->latest();
  revision_.store(std::max(revision(), change.revision), std::memory_order_release);
  if (!change.now && !before) return;
  auto event = std::make_shared<const Event>(change.revision, change.now, std::move(before));
  index_.add(entry, {change.revision, std::move(change.now)});
  history_bytes_ += cost_of(*event);
  history_.push_back(std::move(event));
  if (history_.size() > kMostMemos) history_[history_.size() - kMostMemos - 1]->forget_encoded();
  hub_.feed(history_.back(), wakeups);
}

void Mvcc::start_at(Revision compacted) {
  const WriterLock lock(lock_);
  compacted_ = compacted;
  revision_ = compacted;
}

bool Mvcc::load(Change change, std::vector<Garbage>& garbage) {
  const WriterLock lock(lock_);
  KeyEntry* entry = index_.find(change.key());
  if (change.revision > compacted()) {
    const RecordPtr before = entry == nullptr ? nullptr : entry->latest();
    const Revision created = change.now ? change.now->created : 0;
    // What it follows on was not compacted: it must be there.
    const bool fits = before ? !change.now || created == before->created
                             : change.now && created == change.revision;
    Wakeups none;
    apply_one(std::move(change), none);
    return fits;
  }
  const std::string key(change.key());
  if (entry != nullptr) garbage.push_back({entry->newest().revision, key});
  const Revision revision = change.revision;
  if (!change.now) garbage.push_back({revision, key});
  if (!change.now && entry == nullptr) return true;
  index_.add(entry, {revision, std::move(change.now)});
  std::vector<RecordPtr> dropped;
  index_.trim(key, revision, dropped);
  return true;
}

Result<std::vector<Garbage>> Mvcc::compact(Revision revision) {
  std::vector<Garbage> garbage;
  {
    const WriterLock lock(lock_);
    if (revision > this->revision()) {
      return Error::invalid(
          cat("revision ", revision, " lies in the future, the current one is ", this->revision()));
    }
    if (revision <= compacted()) return garbage;
    compacted_.store(revision, std::memory_order_release);
  }
  while (true) {
    Trimmed trimmed;
    const WriterLock lock(lock_);
    trim(revision, kTrimPiece, trimmed, garbage);
    if (trimmed.events.empty()) return garbage;
  }
}

void Mvcc::trim(Revision revision, std::size_t limit, Trimmed& trimmed,
                std::vector<Garbage>& garbage) {
  while (!history_.empty() && history_.front()->revision <= revision &&
         trimmed.events.size() < limit) {
    const Event& event = *history_.front();
    index_.trim(event.key(), event.revision, trimmed.dropped);
    hub_.trim(event);
    history_bytes_ -= cost_of(event);
    if (event.before) garbage.push_back({event.before->modified, std::string(event.key())});
    if (!event.now) garbage.push_back({event.revision, std::string(event.key())});
    trimmed.events.push_back(std::move(history_.front()));
    history_.pop_front();
  }
}

Wakeups Mvcc::jump(std::vector<Change> changes, Revision revision) {
  Wakeups wakeups;
  Trimmed trimmed;
  std::vector<Garbage> garbage;
  const WriterLock lock(lock_);
  for (Change& change : changes) apply_one(std::move(change), wakeups);
  revision_.store(std::max(this->revision(), revision), std::memory_order_release);
  compacted_.store(this->revision(), std::memory_order_release);
  trim(this->revision(), history_.size(), trimmed, garbage);
  return wakeups;
}

Revision Mvcc::compaction_due() const {
  const ReaderLock lock(lock_);
  if (history_.empty()) return 0;
  if (history_.size() <= limits_.events && history_bytes_ <= limits_.bytes) return 0;
  // Down to seven eighths, so that it is not due again at once.
  std::size_t events = history_.size();
  std::size_t bytes = history_bytes_;
  Revision due = 0;
  for (const auto& event : history_) {
    if (events <= limits_.events / 8 * 7 && bytes <= limits_.bytes / 8 * 7) break;
    --events;
    bytes -= cost_of(*event);
    due = event->revision;
  }
  return due;
}

}  // namespace dibs::store
