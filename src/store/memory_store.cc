#include "store/memory_store.h"

#include <utility>

#include "base/mutex.h"
#include "store/batch.h"

namespace dibs::store {
namespace {

class MemoryStore : public Store {
 public:
  explicit MemoryStore(const MemoryOptions& options)
      : max_bytes_(options.max_transaction_bytes), mvcc_(std::make_shared<Mvcc>(options.history)) {
    mvcc_->start_at(options.first_revision - 1);
  }

  Result<Revision> commit(std::vector<Op> ops) override {
    DIBS_CHECK(check_ops(ops, max_bytes_));
    MutexLock lock(mutex_);
    if (closed_) return Error::unavailable("the store is closed");
    Batch batch(*mvcc_);
    DIBS_TRY(const Revision revision, batch.add(std::move(ops)));
    auto wakeups = mvcc_->apply(batch.take_changes(), batch.revision());
    if (const Revision due = mvcc_->compaction_due(); due != 0) {
      DIBS_CHECK(mvcc_->compact(due));
    }
    lock.unlock();
    wakeups.fire();
    return revision;
  }

  RecordPtr get(std::string_view key) const override { return mvcc_->get(key); }
  Result<Listing> range(const RangeQuery& query) const override { return mvcc_->range(query); }
  std::size_t count(std::string_view prefix) const override { return mvcc_->count(prefix); }
  Result<std::unique_ptr<Watch>> watch(std::string_view prefix, Revision from,
                                       std::function<void()> ready) override {
    return mvcc_->watch(prefix, from, std::move(ready));
  }
  Revision revision() const override { return mvcc_->revision(); }
  Revision compacted() const override { return mvcc_->compacted(); }
  Result<> sync() override { return success(); }

  Result<> compact(Revision revision) override {
    const MutexLock lock(mutex_);
    DIBS_CHECK(mvcc_->compact(revision));
    return success();
  }

  void close() override {
    const MutexLock lock(mutex_);
    closed_ = true;
  }

 private:
  const std::size_t max_bytes_;
  const std::shared_ptr<Mvcc> mvcc_;
  Mutex mutex_;  // one writer at a time
  bool closed_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<Store> make_memory_store(const MemoryOptions& options) {
  return std::make_unique<MemoryStore>(options);
}

}  // namespace dibs::store
