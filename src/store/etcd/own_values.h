#pragma once
// What writes in flight put, by key: the watch brings it back as bytes, and so shows which of them
// were done. A removal's hand is under itself. Thread-safe.

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "store/etcd/digest.h"
#include "store/etcd/write.h"

namespace dibs::store::etcd {

class OwnValues {
 public:
  void add(const Write& write) {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < write.ops.size(); ++i) {
      const Op& op = write.ops[i];
      if (!op.value) continue;
      values_.emplace(
          op.key,
          Entry{&write, write.sealed[i], {op.value, op.attachment}, op.expected.value_or(0)});
    }
    if (write.hand) values_.emplace(*write.hand, Entry{&write, write.hand, {}});
  }
  void remove(const Write& write) {
    const MutexLock lock(mutex_);
    for (const Op& op : write.ops) {
      if (op.value) values_.erase(of(write, op.key));
    }
    if (write.hand) values_.erase(of(write, *write.hand));
  }
  OwnValue find(const std::string& key, const std::string& bytes, Revision modified) {
    const MutexLock lock(mutex_);
    OwnValue own;
    const auto [first, end] = values_.equal_range(key);
    for (auto each = first; each != end; ++each) {
      Entry& entry = each->second;
      if (*entry.sealed != bytes) continue;
      // It may put what was there before.
      if (modified > entry.expected) entry.shown.push_back(modified);
      if (!own.value) own = entry.own;
    }
    return own;
  }
  /// The revision at which all of it was shown; 0: it was not. Of a part others may write the same.
  Revision shown(const Write& write) const {
    const MutexLock lock(mutex_);
    std::optional<std::vector<Revision>> all;
    const auto narrow = [&](const std::vector<Revision>& part) {
      if (!all) all = part;
      std::erase_if(*all, [&](Revision one) { return std::ranges::count(part, one) == 0; });
    };
    for (const Op& op : write.ops) {
      if (op.value) narrow(of(write, op.key)->second.shown);
    }
    if (write.hand) narrow(of(write, *write.hand)->second.shown);
    return all && !all->empty() ? all->front() : 0;
  }

 private:
  struct Entry {
    const Write* write;
    SharedBytes sealed;
    OwnValue own;
    Revision expected = 0;
    std::vector<Revision> shown = {};
  };
  using Values = std::unordered_multimap<std::string, Entry>;

  /// Which must be there.
  Values::const_iterator of(const Write& write, const std::string& key) const
      DIBS_REQUIRES(mutex_) {
    auto at = values_.equal_range(key).first;
    while (at->second.write != &write) ++at;
    return at;
  }

  mutable Mutex mutex_;
  Values values_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::store::etcd
