#pragma once
// A store as if it were empty and began with revision 1: for suites over all stores, since an etcd
// has revisions of its own and takes only keys under its folders.
//
// A key is shown without its root; a revision as the number of revisions up to it that changed one
// of the keys below the root.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/mutex.h"
#include "store/commons.h"
#include "store/stores.h"
#include "store/test_etcd.h"

namespace dibs::store::testing {

class RebasedStore : public Store {
 public:
  /// Outlives the store, for the next that is opened at the same place.
  struct Numbers {
    bool begun = false;
    Revision base = 0;
    std::vector<Revision> revisions = {};  // that of number n at n - 1
  };

  RebasedStore(std::unique_ptr<Store> store, std::shared_ptr<Numbers> numbers)
      : store_(std::move(store)), numbers_(std::move(numbers)) {
    if (!std::exchange(numbers_->begun, true)) numbers_->base = store_->revision();
    const Revision last = numbers_->revisions.empty() ? numbers_->base : numbers_->revisions.back();
    auto opened = store_->watch(kRoot, last, [] {});
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    if (opened.ok()) watch_ = std::move(opened).value();
    view_->numbers = numbers_;
    const MutexLock lock(view_->mutex);
    view_->watch = watch_.get();
  }
  ~RebasedStore() override {
    const MutexLock lock(view_->mutex);
    view_->watch = nullptr;
  }

  Result<Revision> commit(std::vector<Op> ops) override {
    auto done = store_->commit(with_roots(std::move(ops)));
    if (done.ok()) return number(*done);
    return done;
  }
  void commit_async(std::vector<Op> ops, Done done) override {
    store_->commit_async(with_roots(std::move(ops)),
                         [this, done = std::move(done)](Result<Revision> answer) {
                           if (answer.ok()) return done(number(*answer));
                           done(std::move(answer));
                         });
  }
  RecordPtr get(std::string_view key) const override { return shown(store_->get(cat(kRoot, key))); }
  Result<Listing> range(const RangeQuery& query) const override {
    RangeQuery rooted = query;
    rooted.prefix = cat(kRoot, query.prefix);
    if (!query.from.empty()) rooted.from = cat(kRoot, query.from);
    if (query.at != 0) rooted.at = revision_of(query.at);
    DIBS_TRY(Listing listing, store_->range(rooted));
    for (RecordPtr& record : listing.records) record = shown(record);
    listing.revision = number(listing.revision);
    return listing;
  }
  std::size_t count(std::string_view prefix) const override {
    return store_->count(cat(kRoot, prefix));
  }
  Result<std::unique_ptr<Watch>> watch(std::string_view prefix, Revision from,
                                       std::function<void()> ready) override {
    DIBS_TRY(auto watch, store_->watch(cat(kRoot, prefix), revision_of(from), std::move(ready)));
    return std::unique_ptr<Watch>(std::make_unique<RebasedWatch>(view_, std::move(watch)));
  }
  Revision revision() const override { return number(store_->revision()); }
  Revision compacted() const override { return number(store_->compacted()); }
  bool shared() const override { return store_->shared(); }
  bool expires() const override { return store_->expires(); }
  Result<> sync() override { return store_->sync(); }
  Result<> compact(Revision revision) override { return store_->compact(revision_of(revision)); }
  void close() override { store_->close(); }

 private:
  static constexpr std::string_view kRoot = "/registry/~";

  /// What a watch needs of the store that it may outlive.
  struct View {
    Mutex mutex;
    std::shared_ptr<Numbers> numbers;
    Watch* watch DIBS_GUARDED_BY(mutex) = nullptr;  // null: the store is gone
    Commons commons;

    Revision number(Revision revision) {
      const MutexLock lock(mutex);
      while (watch != nullptr) {
        auto events = watch->next(1000);
        if (!events.ok()) {
          ADD_FAILURE() << events.error().message();
          break;
        }
        if (events->empty()) break;
        for (const auto& event : *events) {
          auto& all = numbers->revisions;
          if (all.empty() || all.back() != event->revision) all.push_back(event->revision);
        }
      }
      const auto& all = numbers->revisions;
      return std::upper_bound(all.begin(), all.end(), revision) - all.begin();
    }
    RecordPtr shown(const RecordPtr& record) {
      if (!record) return nullptr;
      auto out =
          std::make_shared<const Record>(commons, record->key.substr(kRoot.size()), *record->value,
                                         number(record->created), number(record->modified));
      out->attach(record->attachment());
      return out;
    }
  };

  class RebasedWatch : public Watch {
   public:
    RebasedWatch(std::shared_ptr<View> view, std::unique_ptr<Watch> watch)
        : view_(std::move(view)), watch_(std::move(watch)) {}
    Result<std::vector<EventPtr>> next(std::size_t limit, Revision* revision) override {
      Revision complete = 0;
      DIBS_TRY(auto events, watch_->next(limit, &complete));
      for (EventPtr& event : events) {
        event = std::make_shared<const Event>(
            view_->number(event->revision), view_->shown(event->now), view_->shown(event->before));
      }
      if (revision != nullptr) *revision = view_->number(complete);
      return events;
    }

   private:
    const std::shared_ptr<View> view_;
    const std::unique_ptr<Watch> watch_;
  };

  Revision number(Revision revision) const { return view_->number(revision); }
  RecordPtr shown(const RecordPtr& record) const { return view_->shown(record); }

  /// Of a number that nobody has yet: what that may become, where nobody else writes.
  Revision revision_of(Revision number) const {
    const auto known = this->number(store_->revision());
    if (number == 0) return numbers_->base;
    if (number > known) return store_->revision() + number - known;
    const MutexLock lock(view_->mutex);
    return numbers_->revisions[static_cast<std::size_t>(number - 1)];
  }

  std::vector<Op> with_roots(std::vector<Op> ops) const {
    for (Op& op : ops) {
      if (!op.key.empty()) op.key = cat(kRoot, op.key);
      if (op.expected && *op.expected != 0) op.expected = revision_of(*op.expected);
    }
    return ops;
  }

  const std::unique_ptr<Store> store_;
  const std::shared_ptr<Numbers> numbers_;
  std::unique_ptr<Watch> watch_;
  std::shared_ptr<View> view_ = std::make_shared<View>();
};

/// Opens a store of the table for a suite that begins with an empty one. What one folder had, is
/// there again with the same `numbers`.
inline Result<std::unique_ptr<Store>> open_for_suite(
    const StoreKind& kind, StoreOptions options,
    std::shared_ptr<RebasedStore::Numbers> numbers = nullptr) {
  if (!kind.remote) return kind.open(options);
  options.etcd.endpoints = shared_etcd().endpoints();
  options.etcd.prefix = options.folder;
  // It would take revisions.
  options.etcd.compacts = false;
  DIBS_TRY(auto store, kind.open(options));
  if (!numbers) numbers = std::make_shared<RebasedStore::Numbers>();
  return std::unique_ptr<Store>(
      std::make_unique<RebasedStore>(std::move(store), std::move(numbers)));
}

inline bool can_open(const StoreKind& kind) { return !kind.remote || !etcd_program().empty(); }

}  // namespace dibs::store::testing
