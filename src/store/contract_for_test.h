#pragma once
// A store of any kind, for what all of them promise (stores.h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/strings.h"
#include "store/stores.h"
#include "store/test_rebased_store.h"
#include "store/test_support.h"

namespace dibs::store {

/// A semaphore that a watch's `ready` posts to.
class Signal {
 public:
  void post() {
    MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void wait() {
    MutexLock lock(mutex_);
    changed_.wait(lock, [this] { return count_ > 0; });
    --count_;
  }
  int count() {
    MutexLock lock(mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ = 0;
};

inline int number(const Record& record) { return std::stoi(*record.value); }

class Contract : public ::testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override {
    if (!testing::can_open(GetParam())) GTEST_SKIP() << testing::kNoEtcd;
    open({});
  }

  void open(const HistoryLimits& limits) {
    store_.reset();
    StoreOptions options;
    options.folder = directory_.file(cat("store", ++opened_));
    std::filesystem::create_directory(options.folder);
    options.first_revision = 1;
    options.history = limits;
    options.max_transaction_bytes = 1 << 20;
    auto opened = testing::open_for_suite(GetParam(), options);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    store_ = std::move(opened).value();
  }

  Revision commit(std::vector<Op> ops) {
    auto done = store_->commit(std::move(ops));
    EXPECT_TRUE(done.ok()) << done.error().message();
    return done.ok() ? *done : -1;
  }
  Revision commit(Op op) {
    std::vector<Op> ops;
    ops.push_back(std::move(op));
    return commit(std::move(ops));
  }
  /// As many transactions as the store needs for it.
  void commit_parts(std::vector<Op> ops) {
    const std::size_t most = GetParam().max_ops;
    for (std::size_t at = 0; at < ops.size(); at += most) {
      const std::size_t end = std::min(ops.size(), at + most);
      commit(std::vector<Op>(ops.begin() + static_cast<std::ptrdiff_t>(at),
                             ops.begin() + static_cast<std::ptrdiff_t>(end)));
    }
  }
  Code failure(std::vector<Op> ops) {
    auto done = store_->commit(std::move(ops));
    EXPECT_FALSE(done.ok());
    return done.ok() ? Code::plain : done.error().code();
  }
  std::string list(const RangeQuery& query) {
    auto listing = store_->range(query);
    return listing.ok() ? testing::show(*listing) : "error: " + listing.error().message();
  }
  std::unique_ptr<Watch> watch(
      std::string_view prefix, Revision from, std::function<void()> ready = [] {}) {
    auto opened = store_->watch(prefix, from, std::move(ready));
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return opened.ok() ? std::move(opened).value() : nullptr;
  }
  static std::string next(Watch& watch, std::size_t limit = 100, Revision* revision = nullptr) {
    auto events = watch.next(limit, revision);
    return events.ok() ? testing::show(*events) : "error: " + events.error().message();
  }

  testing::TemporaryDirectory directory_;
  int opened_ = 0;
  std::unique_ptr<Store> store_;
};

inline std::string name_of_store(const ::testing::TestParamInfo<StoreKind>& info) {
  return std::string(info.param.name);
}

}  // namespace dibs::store
