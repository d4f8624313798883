// How values are kept on a real etcd: sealed, unreadable, of an old key, apart from others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "store/at_rest.h"
#include "store/etcd/test_etcd_store.h"
#include "store/etcd/test_raw_etcd.h"

namespace dibs::store {
namespace {

using Etcd = testing::EtcdStoreTest;
using testing::EtcdCluster;
using testing::eventually;
using testing::put;
using testing::RawEtcd;
using testing::removal;
using testing::show;

/// "apart:…" is nothing for others; what others wrote as "!" cannot be read.
class Spelled : public AtRest {
 public:
  Result<std::string> seal(std::string_view, std::string_view value) const override {
    return cat("<", value, ">");
  }
  Result<Opened> open(std::string_view, std::string_view bytes) const override {
    if (bytes == "!") return Error::invalid("no");
    return Opened{std::string(bytes.substr(1, bytes.size() - 2)), false};
  }
  bool may_be_apart(std::string_view key) const override { return key.starts_with("/registry/k/"); }
  bool is_apart(std::string_view, std::string_view value) const override {
    return value.starts_with("apart");
  }
};

TEST_F(Etcd, values_are_sealed_and_what_cannot_be_read_stays) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  raw.put("/registry/bad", "!");
  const auto store = open({.endpoints = cluster.endpoints()}, std::make_shared<Spelled>());
  commit(*store, {put("/registry/a", "1")});
  raw.put("/registry/b", "<2>");
  ASSERT_TRUE(store->sync().ok());
  EXPECT_EQ(raw.get("/registry/a"), "<1>");
  EXPECT_EQ(value(*store, "/registry/a"), "1");
  EXPECT_EQ(value(*store, "/registry/b"), "2");
  const std::string bad = value(*store, "/registry/bad");
  const auto unreadable = as_unreadable(bad);
  ASSERT_TRUE(unreadable) << bad;
  EXPECT_EQ(unreadable->why, "no");
  EXPECT_EQ(unreadable->bytes, "!");

  // Whoever copies it leaves it as it was.
  commit(*store, {put("/registry/copy", bad)});
  EXPECT_EQ(raw.get("/registry/copy"), "!");
}

/// "1:…" is of an old key, "2:…" of the first one.
class Renewed : public AtRest {
 public:
  Result<std::string> seal(std::string_view, std::string_view value) const override {
    return cat("2:", value);
  }
  Result<Opened> open(std::string_view, std::string_view bytes) const override {
    return Opened{std::string(bytes.substr(2)), !bytes.starts_with("2:")};
  }
};

TEST_F(Etcd, values_of_an_old_key_are_written_anew_at_the_start) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  constexpr int kKeys = 100;
  for (int i = 0; i < kKeys; ++i) raw.put(cat("/registry/secrets/", i), cat("1:", i));
  const Revision good = raw.put("/registry/secrets/good", "2:good");
  raw.put("/registry/secrets/changed", "1:before");
  raw.put("/registry/secrets/changed", "1:now");

  auto reader =
      open({.endpoints = cluster.endpoints(), .rewrites = false}, std::make_shared<Renewed>());
  EXPECT_EQ(value(*reader, "/registry/secrets/7"), "7");
  reader.reset();
  EXPECT_EQ(raw.get("/registry/secrets/7"), "1:7") << "who only reads changes nothing";

  const auto a = open({.endpoints = cluster.endpoints()}, std::make_shared<Renewed>());
  const auto b = open({.endpoints = cluster.endpoints()}, std::make_shared<Renewed>());
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = cat("/registry/secrets/", i);
    ASSERT_TRUE(eventually([&] { return raw.get(key) == cat("2:", i); })) << key;
  }
  EXPECT_TRUE(eventually([&] { return raw.get("/registry/secrets/changed") == "2:now"; }));
  ASSERT_TRUE(b->sync().ok());
  EXPECT_EQ(value(*b, "/registry/secrets/99"), "99");
  EXPECT_EQ(b->get("/registry/secrets/good")->modified, good) << "what is well is left alone";
}

TEST_F(Etcd, what_is_written_anew_keeps_its_lease) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  etcdserverpb::LeaseGrantRequest grant;
  grant.set_ttl(2);
  const auto lease = raw.call<etcdserverpb::LeaseGrantResponse>("Lease/LeaseGrant", grant);
  etcdserverpb::PutRequest event;
  event.set_key("/registry/events/x");
  event.set_value("1:x");
  event.set_lease(lease.id());
  raw.call<etcdserverpb::PutResponse>("KV/Put", event);

  const auto store = open({.endpoints = cluster.endpoints()}, std::make_shared<Renewed>());
  ASSERT_TRUE(eventually([&] { return raw.get("/registry/events/x") != "1:x"; }));
  EXPECT_TRUE(eventually([&] { return raw.get("/registry/events/x") == "-"; })) << "it still ends";
}

TEST_F(Etcd, a_name_is_in_one_of_two_places) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  const auto at_rest = std::make_shared<Spelled>();
  auto a = open({.endpoints = cluster.endpoints()}, at_rest);
  const auto b = open({.endpoints = cluster.endpoints()}, at_rest);

  Revision last = commit(*a, {put("/registry/k/x", "apart1", 0)});
  EXPECT_EQ(raw.get("/registry/k/x"), "-");
  EXPECT_EQ(raw.get("/registry.dibs/registry/k/x"), "<apart1>");
  EXPECT_EQ(b->commit({put("/registry/k/x", "public", 0)}).error().code(), Code::conflict);
  EXPECT_EQ(value(*b, "/registry/k/x"), "apart1");

  last = commit(*b, {put("/registry/k/x", "public", last)});
  EXPECT_EQ(raw.get("/registry/k/x"), "<public>");
  EXPECT_EQ(raw.get("/registry.dibs/registry/k/x"), "-");
  ASSERT_TRUE(a->sync().ok());
  EXPECT_EQ(value(*a, "/registry/k/x"), "public");
  last = commit(*a, {put("/registry/k/x", "apart2")});
  EXPECT_EQ(raw.get("/registry/k/x"), "-");
  a.reset();
  a = open({.endpoints = cluster.endpoints()}, at_rest);
  EXPECT_EQ(show(*a->range({})), "/registry/k/x=apart2");
  commit(*a, {removal("/registry/k/x", last)});
  EXPECT_EQ(raw.get("/registry.dibs/registry/k/x"), "-");
  ASSERT_TRUE(b->sync().ok());
  EXPECT_EQ(b->count(""), 0U);
}

std::vector<Op> group(std::size_t size, std::string_view text,
                      std::optional<Revision> expected = {}) {
  std::vector<Op> ops;
  for (std::size_t i = 0; i < size; ++i) {
    ops.push_back(put(cat("/registry/k/", i), cat(text, i), expected));
  }
  return ops;
}

TEST_F(Etcd, a_group_is_taken_wherever_its_keys_may_lie) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  const auto store = open({.endpoints = cluster.endpoints()}, std::make_shared<Spelled>());

  for (const char* text : {"public", "apart", "public"}) {
    auto ops = group(kGroupOps, text);
    ops.push_back(put("/registry.dibs/mark", text));
    commit(*store, std::move(ops));
    EXPECT_EQ(store->count("/registry/k/"), kGroupOps);
  }
  EXPECT_EQ(raw.get("/registry/k/7"), "<public7>");
  EXPECT_EQ(raw.get("/registry.dibs/registry/k/7"), "-");
  auto removals = group(kGroupOps, "");
  for (Op& op : removals) op.value = nullptr;
  const Revision removed = commit(*store, removals);
  EXPECT_EQ(store->count("/registry/k/"), 0U);
  EXPECT_EQ(commit(*store, removals), removed) << "nothing is left to remove";

  const Revision made = commit(*store, group(kGroupExpecting, "apart", 0));
  commit(*store, group(kGroupExpecting, "public", made));
  EXPECT_EQ(value(*store, "/registry/k/59"), "public59");
}

}  // namespace
}  // namespace dibs::store
