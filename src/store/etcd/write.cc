#include "store/etcd/write.h"

#include <algorithm>
#include <unordered_map>

#include "proto/etcd.pb.h"
#include "store/batch.h"

namespace dibs::store::etcd {
namespace {

/// Builds the Txn, key by key of etcd.
class Builder {
 public:
  explicit Builder(etcdserverpb::TxnRequest& txn) : txn_(txn) {}

  void expect(const std::string& key, Revision revision) {
    auto& compare = *txn_.add_compare();
    compare.set_target(etcdserverpb::Compare::MOD);
    compare.set_key(key);
    compare.set_mod_revision(revision);
    auto& read = *txn_.add_failure()->mutable_request_range();
    read.set_key(key);
    read.set_keys_only(true);
  }
  void put(const std::string& key, const std::string& value, std::int64_t lease, bool keeps_lease) {
    auto& put = *txn_.add_success()->mutable_request_put();
    put.set_key(key);
    put.set_value(value);
    put.set_lease(lease);
    put.set_ignore_lease(keeps_lease);
  }
  void remove(const std::string& key) {
    txn_.add_success()->mutable_request_delete_range()->set_key(key);
  }
  /// The last operation becomes one of two, which etcd counts as one: as many changes fit as it
  /// takes operations, wherever their keys may lie.
  void and_remove(const std::string& key) {
    etcdserverpb::RequestOp& last = *txn_.mutable_success()->rbegin();
    etcdserverpb::TxnRequest both;
    both.add_success()->Swap(&last);
    both.add_success()->mutable_request_delete_range()->set_key(key);
    last.mutable_request_txn()->Swap(&both);
  }

 private:
  etcdserverpb::TxnRequest& txn_;
};

bool changed_nothing(const etcdserverpb::TxnResponse& answer) {
  return std::all_of(answer.responses().begin(), answer.responses().end(), [](const auto& each) {
    if (each.has_response_txn()) return changed_nothing(each.response_txn());
    return each.has_response_delete_range() && each.response_delete_range().deleted() == 0;
  });
}

/// What was read of the keys that were compared.
class Found {
 public:
  explicit Found(const etcdserverpb::TxnResponse& answer) {
    for (const auto& each : answer.responses()) {
      for (const auto& kv : each.response_range().kvs()) revisions_[kv.key()] = kv.mod_revision();
    }
  }
  /// 0: it is in neither place.
  Revision of(const Keys& keys, const std::string& key) const {
    const Revision at = on_etcd(keys.on_etcd(key, false));
    return at != 0 ? at : on_etcd(keys.on_etcd(key, true));
  }
  Revision on_etcd(const std::string& key) const {
    const auto at = revisions_.find(key);
    return at == revisions_.end() ? 0 : at->second;
  }

 private:
  std::unordered_map<std::string, Revision> revisions_;
};

}  // namespace

bool Write::can_be_settled() const {
  return std::all_of(ops.begin(), ops.end(), [](const Op& op) { return op.expected.has_value(); });
}

bool Write::puts() const {
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.value != nullptr; });
}

bool Write::removes() const {
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) {
    return !op.only_expects && !op.value && op.expected.value_or(0) != 0;
  });
}

Result<> seal(Write& write, const AtRest* at_rest) {
  for (const Op& op : write.ops) {
    write.apart.push_back(at_rest != nullptr && op.value && at_rest->may_be_apart(op.key) &&
                          at_rest->is_apart(op.key, *op.value));
    write.leases.push_back(0);
    if (!op.value || at_rest == nullptr) {
      write.sealed.push_back(op.value);
      continue;
    }
    if (const auto unreadable = as_unreadable(*op.value)) {
      write.sealed.push_back(share(std::string(unreadable->bytes)));
      continue;
    }
    DIBS_TRY(auto bytes, at_rest->seal(op.key, *op.value));
    write.sealed.push_back(share(std::move(bytes)));
  }
  return success();
}

std::string encode(const Write& write, const Keys& keys, const AtRest* at_rest,
                   const std::function<bool(const std::string&)>& is_apart) {
  etcdserverpb::TxnRequest txn;
  Builder builder(txn);
  for (std::size_t i = 0; i < write.ops.size(); ++i) {
    const Op& op = write.ops[i];
    const bool two_places = at_rest != nullptr && at_rest->may_be_apart(op.key);
    const bool now = two_places && is_apart(op.key);
    const bool then = op.value ? write.apart[i] : now;
    const std::string target = keys.on_etcd(op.key, then);
    const std::string other = two_places ? keys.on_etcd(op.key, !then) : std::string();
    if (op.expected) {
      builder.expect(target, now == then ? *op.expected : 0);
      // A name is in one place only.
      if (two_places) builder.expect(other, now == then ? 0 : *op.expected);
    }
    if (op.only_expects) continue;
    if (op.value) {
      builder.put(target, *write.sealed[i], write.leases[i], write.keeps_leases);
    } else {
      builder.remove(target);
    }
    const bool leaves_other = now != then && op.expected.value_or(1) != 0;
    if (two_places && (leaves_other || !op.expected)) builder.and_remove(other);
  }
  if (write.hand) builder.put(keys.hand(), *write.hand, 0, false);
  if (write.can_be_settled()) builder.expect(keys.barrier(), write.barrier);
  return txn.SerializeAsString();
}

Outcome decode(const Write& write, const Keys& keys, std::string_view bytes) {
  Outcome out;
  etcdserverpb::TxnResponse answer;
  if (!answer.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return out;
  out.cluster = answer.header().cluster_id();
  out.answered = answer.header().revision();
  out.revision = out.answered;
  if (answer.succeeded()) {
    out.kind = Outcome::Kind::done;
    out.ask = changed_nothing(answer);
    return out;
  }
  const Found found(answer);
  out.barrier = found.on_etcd(keys.barrier());
  if (write.can_be_settled() && out.barrier != write.barrier) {
    out.kind = Outcome::Kind::behind_barrier;
  }
  Revision beaten_by = 0;
  for (const Op& op : write.ops) {
    const Revision is = found.of(keys, op.key);
    if (!op.expected || *op.expected == is) continue;
    if (out.kind != Outcome::Kind::conflict) out.conflict = conflict_error(op, is);
    out.kind = Outcome::Kind::conflict;
    // The revision of a removal is not told.
    if (is == 0) out.ask = true;
    beaten_by = std::max(beaten_by, is);
  }
  if (!out.ask) out.revision = beaten_by;
  return out;
}

}  // namespace dibs::store::etcd
