#include "store/etcd/barrier.h"

#include "proto/etcd.pb.h"

namespace dibs::store::etcd {

Revision Barrier::at() const {
  const MutexLock lock(mutex_);
  return at_;
}

void Barrier::learn(Revision at, Revision answered) {
  const MutexLock lock(mutex_);
  if (answered < answered_) return;  // answers overtake each other
  answered_ = answered;
  at_ = at;
}

std::string Barrier::encode_move(const Keys& keys, Revision from) {
  etcdserverpb::TxnRequest txn;
  auto& compare = *txn.add_compare();
  compare.set_target(etcdserverpb::Compare::MOD);
  compare.set_key(keys.barrier());
  compare.set_mod_revision(from);
  txn.add_success()->mutable_request_put()->set_key(keys.barrier());
  txn.add_failure()->mutable_request_range()->set_key(keys.barrier());
  return txn.SerializeAsString();
}

Barrier::Moved Barrier::decode_move(std::string_view bytes) {
  Moved out;
  etcdserverpb::TxnResponse answer;
  if (!answer.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return out;
  out.cluster = answer.header().cluster_id();
  out.answered = answer.header().revision();
  out.by_this = answer.succeeded();
  if (out.by_this) {
    out.at = out.answered;
  } else if (answer.responses_size() == 1 && answer.responses(0).response_range().kvs_size() == 1) {
    out.at = answer.responses(0).response_range().kvs(0).mod_revision();
  }
  return out;
}

}  // namespace dibs::store::etcd
