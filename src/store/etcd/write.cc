#include "store/etcd/write.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "proto/etcd.pb.h"
#include "store/batch.h"

namespace dibs::store::etcd {
namespace {

/// Builds the Txn, key by key of etcd.
class Builder {
 public:
  Builder(etcdserverpb::TxnRequest& txn, bool with_values) : txn_(txn), with_values_(with_values) {}

  void expect(const std::string& key, Revision revision) {
    auto& compare = *txn_.add_compare();
    compare.set_target(etcdserverpb::Compare::MOD);
    compare.set_key(key);
    compare.set_mod_revision(revision);
    auto& read = *txn_.add_failure()->mutable_request_range();
    read.set_key(key);
    read.set_keys_only(!with_values_);
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
  const bool with_values_;
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
      for (const auto& kv : each.response_range().kvs()) kvs_[kv.key()] = &kv;
    }
  }
  /// Null: it is in neither place.
  const etcdserverpb::KeyValue* of(const Keys& keys, const std::string& key) const {
    for (const bool apart : {false, true}) {
      if (const auto at = kvs_.find(keys.on_etcd(key, apart)); at != kvs_.end()) return at->second;
    }
    return nullptr;
  }

 private:
  std::unordered_map<std::string, const etcdserverpb::KeyValue*> kvs_;
};

/// Whether what is there is what the write left, at one revision. A removal shows nobody's hand: a
/// write that only removes is never known again.
bool is_own_work(const Write& write, const Keys& keys, const Found& found, Revision& revision) {
  revision = 0;
  for (std::size_t i = 0; i < write.ops.size(); ++i) {
    if (write.ops[i].only_expects) continue;
    const auto* kv = found.of(keys, write.ops[i].key);
    if (!write.sealed[i]) {
      if (kv != nullptr) return false;
      continue;
    }
    if (kv == nullptr || kv->value() != *write.sealed[i]) return false;
    if (revision != 0 && revision != kv->mod_revision()) return false;
    revision = kv->mod_revision();
  }
  return revision != 0;
}

/// Whether something that the write would have changed is still as it was.
bool was_not_done(const Write& write, const Keys& keys, const Found& found) {
  return std::any_of(write.ops.begin(), write.ops.end(), [&](const Op& op) {
    const auto* kv = found.of(keys, op.key);
    return !op.only_expects && kv != nullptr && op.expected && *op.expected == kv->mod_revision();
  });
}

}  // namespace

bool Write::can_be_repeated() const {
  return std::all_of(ops.begin(), ops.end(), [](const Op& op) { return op.expected.has_value(); });
}

bool Write::puts() const {
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.value != nullptr; });
}

bool Write::only_looks() const {
  return unsure && std::none_of(ops.begin(), ops.end(), [](const Op& op) {
           return !op.only_expects && op.expected.value_or(0) != 0;
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
  Builder builder(txn, write.unsure);
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
    if (write.only_looks() || op.only_expects) continue;
    if (op.value) {
      builder.put(target, *write.sealed[i], write.leases[i], write.keeps_leases);
    } else {
      builder.remove(target);
    }
    const bool leaves_other = now != then && op.expected.value_or(1) != 0;
    if (two_places && (leaves_other || !op.expected)) builder.and_remove(other);
  }
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
    out.kind = write.only_looks() ? Outcome::Kind::unknown : Outcome::Kind::done;
    out.ask = changed_nothing(answer);
    return out;
  }
  const Found found(answer);
  Revision revision = 0;
  if (write.unsure && is_own_work(write, keys, found, revision)) {
    out.kind = Outcome::Kind::done;
    out.revision = revision;
    return out;
  }
  if (write.unsure && !was_not_done(write, keys, found)) {
    out.kind = Outcome::Kind::unknown;
    out.ask = true;
    return out;
  }
  Revision beaten_by = 0;
  for (const Op& op : write.ops) {
    const auto* kv = found.of(keys, op.key);
    const Revision is = kv == nullptr ? 0 : kv->mod_revision();
    if (!op.expected || *op.expected == is) continue;
    if (out.kind != Outcome::Kind::conflict) out.conflict = conflict_error(op, is);
    out.kind = Outcome::Kind::conflict;
    // The revision of a removal is not told.
    if (kv == nullptr) out.ask = true;
    beaten_by = std::max(beaten_by, is);
  }
  if (!out.ask) out.revision = beaten_by;
  return out;
}

}  // namespace dibs::store::etcd
