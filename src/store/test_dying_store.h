#pragma once
// For tests: the store as a server has it that is killed at a write. From then on it reads and
// writes nothing, and what lies behind it stays for the next server.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/store.h"

namespace dibs::store::testing {

class DyingStore : public Store {
 public:
  struct Hooks {
    /// After each write that has arrived, the last one too.
    std::function<void(const std::vector<std::string>& keys)> written = {};
    /// Once, in the midst of the write that it dies at.
    std::function<void()> died = {};
    /// Whether writes of this key count; not set: all do.
    std::function<bool(std::string_view key)> counts = {};
  };

  /// `inner` must outlive it.
  DyingStore(Store& inner, Hooks hooks) : inner_(inner), hooks_(std::move(hooks)) {}

  /// Dies at the n-th write from now, the first being 0. The write itself may still arrive
  /// (`arrives`): then nobody is told.
  void die_at(int write, bool arrives) {
    left_ = write;
    arrives_ = arrives;
  }

  Result<Revision> commit(std::vector<Op> ops) override {
    if (dead_) return killed();
    std::vector<std::string> keys;
    for (const Op& op : ops) keys.push_back(op.key);
    const bool counts = !hooks_.counts || std::any_of(keys.begin(), keys.end(), hooks_.counts);
    const bool last = counts && left_ == 0;
    if (counts && left_ >= 0) --left_;
    if (last && !arrives_) return die();
    auto done = inner_.commit(std::move(ops));
    if (done.ok() && hooks_.written) hooks_.written(keys);
    if (last) return die();
    return done;
  }

  void commit_async(std::vector<Op> ops, Done done) override {
    if (!inner_.shared()) return done(commit(std::move(ops)));
    if (dead_) return done(killed());
    const bool counts = !hooks_.counts || std::any_of(ops.begin(), ops.end(), [this](const Op& op) {
      return hooks_.counts(op.key);
    });
    const bool last = counts && left_ == 0;
    if (counts && left_ >= 0) --left_;
    if (last && arrives_) inner_.commit_async(std::move(ops), [](const Result<Revision>&) {});
    if (last) return done(die());
    inner_.commit_async(std::move(ops), [this, done = std::move(done)](Result<Revision> outcome) {
      done(dead_ ? Result<Revision>(killed()) : std::move(outcome));
    });
  }
  bool shared() const override { return inner_.shared(); }
  void sync_async(std::function<void(Result<>)> done) override {
    if (dead_) return done(killed());
    inner_.sync_async(std::move(done));
  }

  RecordPtr get(std::string_view key) const override { return inner_.get(key); }
  Result<Listing> range(const RangeQuery& query) const override {
    if (dead_) return killed();
    return inner_.range(query);
  }
  std::size_t count(std::string_view prefix) const override { return inner_.count(prefix); }
  Result<std::unique_ptr<Watch>> watch(std::string_view prefix, Revision from,
                                       std::function<void()> ready) override {
    if (dead_) return killed();
    return inner_.watch(prefix, from, std::move(ready));
  }
  Revision revision() const override { return inner_.revision(); }
  Revision compacted() const override { return inner_.compacted(); }
  Result<> sync() override {
    if (dead_) return killed();
    return inner_.sync();
  }
  Result<> compact(Revision revision) override {
    if (dead_) return killed();
    return inner_.compact(revision);
  }
  void close() override { dead_ = true; }

 private:
  static Error killed() { return Error::unavailable("killed"); }
  Error die() {
    dead_ = true;
    if (hooks_.died) hooks_.died();
    return killed();
  }

  Store& inner_;
  const Hooks hooks_;
  int left_ = -1;
  bool arrives_ = false;
  bool dead_ = false;
};

}  // namespace dibs::store::testing
