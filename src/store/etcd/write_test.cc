#include "store/etcd/write.h"

#include <gtest/gtest.h>

#include "proto/etcd.pb.h"
#include "store/at_rest.h"

namespace dibs::store::etcd {
namespace {

Write write_of(std::vector<Op> ops) {
  Write write;
  write.ops = std::move(ops);
  write.barrier = 3;
  EXPECT_TRUE(seal(write, nullptr).ok());
  return write;
}

Op op(std::string key, const char* value, Revision expected) {
  Op made;
  made.key = std::move(key);
  if (value != nullptr) made.value = share(std::string(value));
  made.expected = expected;
  return made;
}

struct Kv {
  std::string key;
  Revision revision;
};

/// The answer when the compares failed: what is there of each key.
Outcome after_failed_compares(const Write& write, const std::vector<Kv>& there) {
  etcdserverpb::TxnResponse answer;
  answer.mutable_header()->set_revision(99);
  for (const Kv& each : there) {
    auto& kv = *answer.add_responses()->mutable_response_range()->add_kvs();
    kv.set_key(each.key);
    kv.set_mod_revision(each.revision);
  }
  return decode(write, Keys("/registry"), answer.SerializeAsString());
}

using Kind = Outcome::Kind;
constexpr const char* kBarrier = "/registry.dibs/barrier";

etcdserverpb::TxnRequest tried(const Write& write) {
  etcdserverpb::TxnRequest txn;
  EXPECT_TRUE(txn.ParseFromString(
      encode(write, Keys("/registry"), nullptr, [](const std::string&) { return false; })));
  return txn;
}

TEST(EtcdWrite, what_expects_something_is_done_before_the_barrier_moves_or_never) {
  const auto txn = tried(write_of({op("/registry/a", "new", 0)}));
  ASSERT_EQ(txn.compare_size(), 2);
  EXPECT_EQ(txn.compare(1).key(), kBarrier);
  EXPECT_EQ(txn.compare(1).mod_revision(), 3);
  EXPECT_EQ(txn.failure(1).request_range().key(), kBarrier);
  EXPECT_EQ(txn.success_size(), 1);

  Write anything = write_of({op("/registry/a", "new", 0)});
  anything.ops[0].expected.reset();
  EXPECT_FALSE(anything.can_be_settled());
  EXPECT_EQ(tried(anything).compare_size(), 0);
}

TEST(EtcdWrite, what_was_not_done_for_the_barrier_alone_learns_where_it_is) {
  const Write write = write_of({op("/registry/a", "new", 5)});
  const Outcome outcome = after_failed_compares(write, {{"/registry/a", 5}, {kBarrier, 8}});
  EXPECT_EQ(outcome.kind, Kind::behind_barrier);
  EXPECT_EQ(outcome.barrier, 8);
  EXPECT_EQ(after_failed_compares(write, {{"/registry/a", 5}}).kind, Kind::behind_barrier)
      << "somebody has removed it";
}

TEST(EtcdWrite, what_is_beaten_is_a_conflict_wherever_the_barrier_is) {
  const Write write = write_of({op("/registry/a", "new", 5), op("/registry/b", "new", 6)});
  for (const Revision barrier : {3, 8}) {
    const Outcome outcome =
        after_failed_compares(write, {{"/registry/a", 9}, {"/registry/b", 6}, {kBarrier, barrier}});
    EXPECT_EQ(outcome.kind, Kind::conflict);
    EXPECT_EQ(outcome.revision, 9);
    EXPECT_FALSE(outcome.ask);
  }
  const Outcome removed = after_failed_compares(write, {{"/registry/b", 6}, {kBarrier, 3}});
  EXPECT_EQ(removed.kind, Kind::conflict);
  EXPECT_EQ(removed.revision, 99);
  EXPECT_TRUE(removed.ask) << "nobody tells the revision of a removal";
}

/// Every key may lie in two places.
class Twofold : public AtRest {
 public:
  Result<std::string> seal(std::string_view, std::string_view value) const override {
    return std::string(value);
  }
  Result<Opened> open(std::string_view, std::string_view bytes) const override {
    return Opened{std::string(bytes), false};
  }
  bool may_be_apart(std::string_view) const override { return true; }
};

TEST(EtcdWrite, a_change_is_one_operation_though_its_key_may_lie_in_two_places) {
  const Twofold at_rest;
  Write write;
  write.ops = {{"/registry/a", share(std::string("new")), std::nullopt},
               {"/registry/b", nullptr, std::nullopt}};
  ASSERT_TRUE(seal(write, &at_rest).ok());
  etcdserverpb::TxnRequest txn;
  ASSERT_TRUE(txn.ParseFromString(
      encode(write, Keys("/registry"), &at_rest, [](const std::string&) { return false; })));

  ASSERT_EQ(txn.success_size(), 2);
  const auto& made = txn.success(0).request_txn();
  EXPECT_EQ(made.success(0).request_put().key(), "/registry/a");
  EXPECT_EQ(made.success(1).request_delete_range().key(), "/registry.dibs/registry/a");
  const auto& removed = txn.success(1).request_txn();
  EXPECT_EQ(removed.success(0).request_delete_range().key(), "/registry/b");
  EXPECT_EQ(removed.success(1).request_delete_range().key(), "/registry.dibs/registry/b");
}

TEST(EtcdWrite, what_it_only_expects_is_compared_and_not_written) {
  Write write = write_of({op("/registry/a", "new", 0), op("/registry/n", nullptr, 7)});
  write.ops[1].only_expects = true;
  const auto txn = tried(write);
  EXPECT_EQ(txn.compare_size(), 3);
  EXPECT_EQ(txn.success_size(), 1);
  EXPECT_FALSE(write.removes());
  EXPECT_EQ(after_failed_compares(write, {{"/registry/n", 9}, {kBarrier, 3}}).kind, Kind::conflict);
}

TEST(EtcdWrite, a_removal_may_show_whose_it_is) {
  Write write = write_of({op("/registry/a", nullptr, 5)});
  EXPECT_TRUE(write.removes());
  EXPECT_EQ(tried(write).success_size(), 1);
  write.hand = share(std::string("mine/1"));
  const auto txn = tried(write);
  ASSERT_EQ(txn.success_size(), 2);
  EXPECT_EQ(txn.success(0).request_delete_range().key(), "/registry/a");
  EXPECT_EQ(txn.success(1).request_put().key(), "/registry.dibs/hand");
  EXPECT_EQ(txn.success(1).request_put().value(), "mine/1");
}

}  // namespace
}  // namespace dibs::store::etcd
