#include "store/etcd/barrier.h"

#include <gtest/gtest.h>

#include "store/etcd/test_etcd_store.h"
#include "store/etcd/test_raw_etcd.h"
#include "store/etcd/write.h"

namespace dibs::store::etcd {
namespace {

using EtcdBarrier = testing::EtcdStoreTest;
using testing::EtcdCluster;
using testing::put;
using testing::RawEtcd;

TEST_F(EtcdBarrier, is_moved_once_however_often_that_is_sent) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  const Keys keys("/registry");
  const auto move = [&](Revision from) {
    return Barrier::decode_move(raw.send("KV/Txn", Barrier::encode_move(keys, from)).bytes);
  };
  const auto first = move(0);
  EXPECT_TRUE(first.by_this);
  EXPECT_NE(first.cluster, 0U);
  EXPECT_EQ(first.at, first.answered);
  const auto again = move(0);
  EXPECT_FALSE(again.by_this);
  EXPECT_EQ(again.at, first.at);
  const auto next = move(first.at);
  EXPECT_TRUE(next.by_this);
  EXPECT_GT(next.at, first.at);
}

TEST_F(EtcdBarrier, what_was_sent_before_it_moved_and_comes_late_is_not_done) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  const Keys keys("/registry");
  Write write;
  write.ops = {put("/registry/a", "1", 0)};
  ASSERT_TRUE(seal(write, nullptr).ok());
  const auto not_apart = [](const std::string&) { return false; };
  const std::string late = encode(write, keys, nullptr, not_apart);

  const auto moved = Barrier::decode_move(raw.send("KV/Txn", Barrier::encode_move(keys, 0)).bytes);
  const Outcome outcome = decode(write, keys, raw.send("KV/Txn", late).bytes);
  EXPECT_EQ(outcome.kind, Outcome::Kind::behind_barrier);
  EXPECT_EQ(outcome.barrier, moved.at);
  EXPECT_EQ(raw.get("/registry/a"), "-");

  write.barrier = outcome.barrier;
  const auto sent = raw.send("KV/Txn", encode(write, keys, nullptr, not_apart));
  EXPECT_EQ(decode(write, keys, sent.bytes).kind, Outcome::Kind::done);
  EXPECT_EQ(raw.get("/registry/a"), "1");
}

TEST(EtcdBarrierKnown, is_what_the_newest_answer_showed) {
  Barrier barrier;
  EXPECT_EQ(barrier.at(), 0);
  barrier.learn(7, 9);
  barrier.learn(5, 6);
  EXPECT_EQ(barrier.at(), 7);
  barrier.learn(0, 10);
  EXPECT_EQ(barrier.at(), 0) << "somebody has removed it";
}

}  // namespace
}  // namespace dibs::store::etcd
