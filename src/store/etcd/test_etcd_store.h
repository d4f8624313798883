#pragma once
// For tests: stores over an etcd, and waiting for what others do.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/etcd/etcd_store.h"
#include "store/test_etcd.h"

namespace dibs::store::testing {

template <typename Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(30)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

/// Tests of the store over real etcd processes; skipped where there is no etcd.
class EtcdStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (etcd_program().empty()) GTEST_SKIP() << kNoEtcd;
  }

  static Result<std::unique_ptr<Store>> try_open(const EtcdOptions& etcd,
                                                 std::shared_ptr<const AtRest> at_rest = {}) {
    StoreOptions options;
    options.etcd = etcd;
    options.at_rest = std::move(at_rest);
    return open_etcd_store(options);
  }
  static std::unique_ptr<Store> open(const EtcdOptions& etcd,
                                     std::shared_ptr<const AtRest> at_rest = {}) {
    auto opened = try_open(etcd, std::move(at_rest));
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return opened.ok() ? std::move(opened).value() : nullptr;
  }
  static std::string value(const Store& store, std::string_view key) {
    const RecordPtr record = store.get(key);
    return record ? *record->value : std::string("-");
  }
  static Revision commit(Store& store, std::vector<Op> ops) {
    auto done = store.commit(std::move(ops));
    EXPECT_TRUE(done.ok()) << done.error().message();
    return done.ok() ? *done : -1;
  }
};

}  // namespace dibs::store::testing
