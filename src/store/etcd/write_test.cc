#include "store/etcd/write.h"

#include <gtest/gtest.h>

#include "proto/etcd.pb.h"
#include "store/at_rest.h"

namespace dibs::store::etcd {
namespace {

Write unsure(std::vector<Op> ops) {
  Write write;
  write.ops = std::move(ops);
  write.unsure = true;
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
  std::string value;
  Revision revision;
};

/// The answer when the compares failed: what is there of each key.
Outcome after_failed_compares(const Write& write, const std::vector<Kv>& there) {
  etcdserverpb::TxnResponse answer;
  answer.mutable_header()->set_revision(99);
  for (const Kv& each : there) {
    auto& kv = *answer.add_responses()->mutable_response_range()->add_kvs();
    kv.set_key(each.key);
    kv.set_value(each.value);
    kv.set_mod_revision(each.revision);
  }
  return decode(write, Keys("/registry"), answer.SerializeAsString());
}

using Kind = Outcome::Kind;

TEST(EtcdWrite, its_own_work_is_known_again) {
  const Write write = unsure({op("/registry/a", "new", 5)});
  const Outcome outcome = after_failed_compares(write, {{"/registry/a", "new", 8}});
  EXPECT_EQ(outcome.kind, Kind::done);
  EXPECT_EQ(outcome.revision, 8);
}

TEST(EtcdWrite, what_may_have_been_done_and_undone_is_unknown) {
  const Write changed = unsure({op("/registry/a", "new", 5)});
  EXPECT_EQ(after_failed_compares(changed, {{"/registry/a", "another's", 9}}).kind, Kind::unknown);
  EXPECT_EQ(after_failed_compares(changed, {}).kind, Kind::unknown);
  const Write made = unsure({op("/registry/a", "new", 0)});
  EXPECT_EQ(after_failed_compares(made, {{"/registry/a", "another's", 9}}).kind, Kind::unknown);
}

std::string tried(const Write& write) {
  return encode(write, Keys("/registry"), nullptr, [](const std::string&) { return false; });
}

TEST(EtcdWrite, what_only_creates_is_looked_for_and_not_written_again) {
  Write write = unsure({op("/registry/a", "new", 0), op("/registry/b", "new", 0)});
  etcdserverpb::TxnRequest txn;
  ASSERT_TRUE(txn.ParseFromString(tried(write)));
  EXPECT_EQ(txn.success_size(), 0);
  EXPECT_EQ(txn.failure_size(), 2);
  etcdserverpb::TxnResponse absent;
  absent.set_succeeded(true);
  EXPECT_EQ(decode(write, Keys("/registry"), absent.SerializeAsString()).kind, Kind::unknown);

  write.ops.push_back(op("/registry/c", "new", 7));  // with this it can be done once only
  write = unsure(write.ops);
  ASSERT_TRUE(txn.ParseFromString(tried(write)));
  EXPECT_EQ(txn.success_size(), 3);
  EXPECT_EQ(decode(write, Keys("/registry"), absent.SerializeAsString()).kind, Kind::done);
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

TEST(EtcdWrite, what_it_only_expects_is_compared_and_tells_nothing_of_its_own_work) {
  Write write = unsure({op("/registry/a", "new", 0), op("/registry/n", nullptr, 7)});
  write.ops[1].only_expects = true;
  etcdserverpb::TxnRequest txn;
  ASSERT_TRUE(txn.ParseFromString(tried(write)));
  EXPECT_EQ(txn.compare_size(), 2);
  EXPECT_EQ(txn.success_size(), 0) << "it still only creates";
  EXPECT_EQ(after_failed_compares(write, {{"/registry/a", "new", 8}, {"/registry/n", "x", 7}}).kind,
            Kind::done);
  EXPECT_EQ(after_failed_compares(write, {{"/registry/n", "x", 7}}).kind, Kind::unknown);

  write.unsure = false;
  ASSERT_TRUE(txn.ParseFromString(tried(write)));
  EXPECT_EQ(txn.success_size(), 1);
  EXPECT_EQ(after_failed_compares(write, {{"/registry/n", "x", 9}}).kind, Kind::conflict);
}

TEST(EtcdWrite, a_removal_shows_nobodys_hand) {
  const Write removed = unsure({op("/registry/a", nullptr, 5)});
  EXPECT_EQ(after_failed_compares(removed, {}).kind, Kind::unknown);
}

TEST(EtcdWrite, what_is_as_it_was_was_not_written) {
  const Write write = unsure({op("/registry/a", "new", 5), op("/registry/b", "new", 6)});
  const Outcome outcome =
      after_failed_compares(write, {{"/registry/a", "another's", 9}, {"/registry/b", "old", 6}});
  EXPECT_EQ(outcome.kind, Kind::conflict);
}

TEST(EtcdWrite, a_first_try_that_is_beaten_is_a_conflict) {
  Write write = unsure({op("/registry/a", "new", 5)});
  write.unsure = false;
  EXPECT_EQ(after_failed_compares(write, {{"/registry/a", "another's", 9}}).kind, Kind::conflict);
}

}  // namespace
}  // namespace dibs::store::etcd
