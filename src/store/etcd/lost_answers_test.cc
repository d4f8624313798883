// Writes to a real etcd whose request or answer is lost on the way.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <semaphore>

#include "store/etcd/etcd_store.h"
#include "store/etcd/test_etcd_store.h"
#include "store/etcd/test_raw_etcd.h"

namespace dibs::store {
namespace {

using EtcdLostAnswers = testing::EtcdStoreTest;
using testing::EtcdCluster;
using testing::eventually;
using testing::Proxy;
using testing::put;
using testing::RawEtcd;
using testing::removal;
using testing::show;

/// Writes under way together, by name.
class Outcomes {
 public:
  explicit Outcomes(Store& store) : store_(store) {}

  void commit(const std::string& name, std::vector<Op> ops) {
    ++open_;
    store_.commit_async(std::move(ops), [this, name](Result<Revision> outcome) {
      {
        const MutexLock lock(mutex_);
        outcomes_.emplace(name, std::move(outcome));
      }
      ended_.release();
    });
  }
  void wait() {
    for (; open_ > 0; --open_) ended_.acquire();
  }
  /// Its revision; -1 with a failure where there is none.
  Revision of(const std::string& name) const {
    const MutexLock lock(mutex_);
    const auto& outcome = outcomes_.at(name);
    EXPECT_TRUE(outcome.ok()) << name << ": " << outcome.error().message();
    return outcome.ok() ? *outcome : -1;
  }
  Code fault_of(const std::string& name) const {
    const MutexLock lock(mutex_);
    const auto& outcome = outcomes_.at(name);
    EXPECT_FALSE(outcome.ok()) << name;
    return outcome.ok() ? Code::internal : outcome.error().code();
  }

 private:
  Store& store_;
  int open_ = 0;
  std::counting_semaphore<> ended_{0};
  mutable Mutex mutex_;
  std::map<std::string, Result<Revision>> outcomes_ DIBS_GUARDED_BY(mutex_);
};

TEST_F(EtcdLostAnswers, a_write_whose_answer_was_lost_is_known_again) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  Proxy proxy(cluster.port());
  const auto store = open({.endpoints = {proxy.endpoint()}});
  const Revision before = commit(*store, {put("/registry/a", "1"), put("/registry/b", "1")});

  proxy.swallow_answers();
  Outcomes outcomes(*store);
  outcomes.commit("both", {put("/registry/new", "mine", 0), put("/registry/a", "2", before)});
  outcomes.commit("made", {put("/registry/made", "mine", 0)});
  outcomes.commit("removed", {removal("/registry/b", before)});
  outcomes.commit("unconditional", {put("/registry/c", "1")});
  outcomes.wait();

  EXPECT_EQ(store->get("/registry/new")->modified, outcomes.of("both"));
  EXPECT_EQ(store->get("/registry/made")->modified, outcomes.of("made"));
  EXPECT_EQ(store->get("/registry/made")->created, outcomes.of("made"));
  EXPECT_EQ(value(*store, "/registry/a"), "2");
  EXPECT_EQ(value(*store, "/registry/b"), "-");
  EXPECT_GT(outcomes.of("removed"), before);
  // Somebody else's write in between would be lost by doing it again.
  EXPECT_EQ(outcomes.fault_of("unconditional"), Code::timeout);
  EXPECT_TRUE(store->health().ok());
}

TEST_F(EtcdLostAnswers, what_was_done_and_undone_by_another_was_done_and_is_not_done_again) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  Proxy proxy(cluster.port());
  const auto store = open({.endpoints = {proxy.endpoint()}});
  const Revision before = commit(*store, {put("/registry/a", "1"), put("/registry/b", "1")});

  proxy.swallow_answers();
  Outcomes outcomes(*store);
  outcomes.commit("made", {put("/registry/made", "mine", 0)});
  outcomes.commit("changed", {put("/registry/a", "2", before)});
  outcomes.commit("removed", {removal("/registry/b", before)});
  ASSERT_TRUE(eventually([&] {
    return raw.get("/registry/made") == "mine" && raw.get("/registry/a") == "2" &&
           raw.get("/registry/b") == "-";
  }));
  const Revision after = raw.remove("/registry/made");
  raw.put("/registry/a", "3");
  raw.put("/registry/b", "again");
  outcomes.wait();

  for (const char* name : {"made", "changed", "removed"}) {
    EXPECT_GT(outcomes.of(name), before);
    EXPECT_LT(outcomes.of(name), after);
  }
  EXPECT_EQ(show(*store->range({})), "/registry/a=3 /registry/b=again");
}

TEST_F(EtcdLostAnswers, a_write_that_never_arrived_is_sent_again) {
  const EtcdCluster cluster;
  Proxy proxy(cluster.port());
  const auto store = open({.endpoints = {proxy.endpoint()}});
  const Revision before = commit(*store, {put("/registry/a", "1"), put("/registry/b", "1")});

  proxy.swallow_requests();
  Outcomes outcomes(*store);
  outcomes.commit("made", {put("/registry/made", "mine", 0)});
  outcomes.commit("changed", {put("/registry/a", "2", before)});
  outcomes.commit("removed", {removal("/registry/b", before)});
  outcomes.wait();

  EXPECT_EQ(store->get("/registry/made")->modified, outcomes.of("made"));
  EXPECT_EQ(store->get("/registry/a")->modified, outcomes.of("changed"));
  EXPECT_GT(outcomes.of("removed"), before);
  EXPECT_EQ(show(*store->range({})), "/registry/a=2 /registry/made=mine");
}

TEST_F(EtcdLostAnswers, a_write_that_never_arrived_is_beaten_by_what_came_before_it) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  Proxy proxy(cluster.port());
  const auto store = open({.endpoints = {proxy.endpoint()}});
  const Revision before = commit(*store, {put("/registry/a", "1"), put("/registry/b", "1")});

  proxy.swallow_requests();
  Outcomes outcomes(*store);
  outcomes.commit("made", {put("/registry/made", "mine", 0)});
  outcomes.commit("changed", {put("/registry/a", "2", before)});
  outcomes.commit("removed", {removal("/registry/b", before)});
  raw.put("/registry/made", "another's");
  raw.put("/registry/a", "another's");
  raw.remove("/registry/b");
  outcomes.wait();

  for (const char* name : {"made", "changed", "removed"}) {
    EXPECT_EQ(outcomes.fault_of(name), Code::conflict);
  }
  EXPECT_EQ(show(*store->range({})), "/registry/a=another's /registry/made=another's");
}

TEST_F(EtcdLostAnswers, who_settles_lost_writes_holds_up_nobody_else) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  const auto store = open({.endpoints = cluster.endpoints()});
  for (int i = 0; i < 20; ++i) {
    raw.put("/registry.dibs/barrier", "");
    commit(*store, {put(cat("/registry/", i), "x", 0)});
  }
  raw.remove("/registry.dibs/barrier");
  commit(*store, {put("/registry/last", "x", 0)});
  EXPECT_EQ(store->count(""), 21U) << "the barrier is nobody's object";
}

}  // namespace
}  // namespace dibs::store
