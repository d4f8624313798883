#pragma once
// A view of the objects below a prefix of the store, brought up to date when it is asked for.
//
// catch_up() takes in every write whose commit had returned before the call: it reads on from where
// it stopped, so a write costs its one event. Where the history has been compacted meanwhile it
// starts over from a listing. Not thread-safe.

#include <functional>
#include <memory>
#include <string>

#include "store/store.h"

namespace dibs::server {

class StoreFollower {
 public:
  /// `ready` is called, once after each catch_up(), when there is something new; it must not block.
  StoreFollower(
      store::Store& store, std::string prefix, std::function<void()> ready = [] {})
      : store_(store), prefix_(std::move(prefix)), ready_(std::move(ready)) {}

  /// `reset`: forget everything, all objects follow. `take`: the key is what stands behind the
  /// prefix ("namespace/name"); `now` is null for a removal.
  using Take = std::function<void(const std::string& key, const store::Record* now)>;
  void catch_up(const std::function<void()>& reset, const Take& take) {
    for (;;) {
      if (!watch_ && !start(reset, take)) return;
      auto events = watch_->next(256);
      if (!events.ok()) {
        watch_.reset();
        continue;
      }
      if (events->empty()) return;
      for (const auto& event : *events) take(rest(event->key()), event->now.get());
    }
  }

 private:
  std::string rest(std::string_view key) const {
    std::size_t from = prefix_.size();
    if (from < key.size() && key[from] == '/') ++from;
    return std::string(key.substr(from));
  }

  bool start(const std::function<void()>& reset, const Take& take) {
    store::RangeQuery query;
    query.prefix = prefix_;
    auto listing = store_.range(query);
    if (!listing.ok()) return false;
    auto watch = store_.watch(prefix_, listing->revision, ready_);
    if (!watch.ok()) return false;
    reset();
    for (const auto& record : listing->records) take(rest(record->key), record.get());
    watch_ = std::move(watch).value();
    return true;
  }

  store::Store& store_;
  std::string prefix_;
  std::function<void()> ready_;
  std::unique_ptr<store::Watch> watch_;
};

}  // namespace dibs::server
