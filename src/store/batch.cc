#include "store/batch.h"

#include <set>
#include <utility>

#include "base/strings.h"

namespace dibs::store {
namespace {

bool has_duplicate(const std::vector<Op>& ops) {
  if (ops.size() <= 8) {
    for (std::size_t i = 1; i < ops.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (ops[i].key == ops[k].key) return true;
      }
    }
    return false;
  }
  std::set<std::string_view> keys;
  for (const Op& op : ops) {
    if (!keys.insert(op.key).second) return true;
  }
  return false;
}

}  // namespace

Error conflict_error(const Op& op, Revision is) {
  const std::string there = is != 0 ? cat("is at revision ", is) : "does not exist";
  const std::string want =
      *op.expected == 0 ? "it must not exist" : cat("revision ", *op.expected, " was expected");
  return Error::conflict(cat("key ", op.key, " ", there, ", ", want));
}

std::size_t bytes_of(const std::vector<Op>& ops) {
  std::size_t bytes = 0;
  for (const Op& op : ops) bytes += op.key.size() + (op.value ? op.value->size() : 0);
  return bytes;
}

Result<> check_ops(const std::vector<Op>& ops, std::size_t max_bytes) {
  if (ops.empty()) return Error::invalid("a transaction needs an operation");
  if (ops.size() > kMaxOps) {
    return Error::too_large(cat("a transaction of ", ops.size(), " operations: at most ", kMaxOps));
  }
  if (const auto bytes = bytes_of(ops); bytes > max_bytes) {
    return Error::too_large(cat("a transaction of ", bytes, " bytes: at most ", max_bytes));
  }
  for (const Op& op : ops) {
    if (op.key.empty()) return Error::invalid("a key must not be empty");
  }
  if (has_duplicate(ops)) return Error::invalid("a transaction may name a key once only");
  return success();
}

RecordPtr Batch::find(const std::string& key) const {
  auto found = changed_.find(key);
  return found == changed_.end() ? state_.get(key) : found->second;
}

Result<Revision> Batch::add(std::vector<Op> ops) {
  std::vector<RecordPtr> current;
  current.reserve(ops.size());
  bool changes = false;
  for (const Op& op : ops) {
    current.push_back(find(op.key));
    const RecordPtr& record = current.back();
    const Revision is = record ? record->modified : 0;
    if (op.expected && *op.expected != is) return conflict_error(op, is);
    changes = changes || (!op.only_expects && (op.value || record));
  }
  if (!changes) return revision_;

  ++revision_;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Op& op = ops[i];
    if (op.only_expects || (!op.value && !current[i])) continue;
    Change change;
    change.revision = revision_;
    if (op.value) {
      auto record =
          std::make_shared<const Record>(state_.commons(), op.key, *op.value,
                                         current[i] ? current[i]->created : revision_, revision_);
      if (op.attachment) record->attach(std::move(op.attachment));
      change.now = std::move(record);
    } else {
      change.removed = std::move(op.key);
    }
    changed_[std::string(change.key())] = change.now;
    changes_.push_back(std::move(change));
  }
  return revision_;
}

}  // namespace dibs::store
