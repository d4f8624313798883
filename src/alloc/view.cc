#include "alloc/view.h"

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace dibs::alloc {

/// Puts together the view of one node.
class ViewBuilder {
 public:
  ViewBuilder(Inventory& inventory, const Node& node) : inventory_(inventory), node_(node) {}

  NodeView build() {
    if (!gather()) return std::move(view_);
    std::sort(relevant_.begin(), relevant_.end(), [](const auto& a, const auto& b) {
      const Slice& x = a->slice;
      const Slice& y = b->slice;
      if (x.driver != y.driver) return x.driver < y.driver;
      if (x.pool != y.pool) return x.pool < y.pool;
      return a->arrival < b->arrival;
    });
    for (std::size_t first = 0; first < relevant_.size();) {
      std::size_t last = first + 1;
      while (last < relevant_.size() && relevant_[last]->pool == relevant_[first]->pool) ++last;
      add_pool({relevant_.begin() + static_cast<std::ptrdiff_t>(first),
                relevant_.begin() + static_cast<std::ptrdiff_t>(last)});
      first = last;
    }
    lay_out();
    return std::move(view_);
  }

 private:
  struct Gathered {
    PoolView pool;
    std::vector<const SliceRecord*> slices;
    bool binding_conditions = false;
  };

  bool gather() {
    const auto bucket = inventory_.by_node_.find(node_.name);
    if (bucket != inventory_.by_node_.end()) {
      for (const SliceRecord* record : bucket->second) {
        if (!record->unseen) relevant_.push_back(record);
      }
    }
    for (const SliceRecord* record : inventory_.elsewhere_) {
      Result<bool> relevant = is_relevant(*record);
      if (!relevant.ok()) {
        view_.error = cat("gather pool information: failed to perform node selection for ",
                          relevant.error().message());
        return false;
      }
      if (*relevant) relevant_.push_back(record);
    }
    return true;
  }

  Result<bool> is_relevant(const SliceRecord& record) const {
    const Slice& slice = record.slice;
    if (record.unseen) return false;
    if (slice.nodes.stated()) {
      Result<bool> matches = slice.nodes.matches(node_);
      if (!matches.ok()) return matches.error().within(cat("slice ", slice.name));
      return matches;
    }
    if (!slice.per_device) return false;
    for (const Device& device : slice.devices) {
      Result<bool> matches = device.nodes->matches(node_);
      if (!matches.ok()) {
        return matches.error().within(cat("device ", device.name, " in slice ", slice.name));
      }
      if (*matches) return true;
    }
    return false;
  }

  /// `slices` are those of one pool that are relevant for the node, by arrival.
  void add_pool(std::vector<const SliceRecord*> slices) {
    Gathered made;
    made.pool.pool = slices.front()->pool;
    std::int64_t newest = slices.front()->slice.generation;
    for (const SliceRecord* record : slices) {
      newest = std::max(newest, record->slice.generation);
    }
    for (const SliceRecord* record : slices) {
      if (record->slice.generation == newest) made.slices.push_back(record);
    }
    Generation& generation = *made.slices.front()->generation;
    made.pool.generation = &generation;
    const auto expected = static_cast<std::size_t>(
        std::max<std::int64_t>(0, made.slices.front()->slice.expected_slices));
    const bool all_here =
        made.slices.front()->slice.expected_slices < 0 || made.slices.size() == expected;
    if (!all_here) {
      if (made.pool.pool->generations.rbegin()->first > newest) return;  // obsolete
      if (generation.slices.size() != expected) made.pool.state = PoolView::State::incomplete;
    }
    for (const SliceRecord* record : made.slices) {
      if (record->has_devices() && record->slice.has_binding_conditions) {
        made.binding_conditions = true;
      }
    }
    if (made.pool.state == PoolView::State::complete) check(made, all_here);
    gathered_.push_back(std::move(made));
  }

  /// Whether names and counters of a complete pool add up.
  void check(Gathered& made, bool all_here) {
    const auto invalid = [&](std::string reason) {
      made.pool.state = PoolView::State::invalid;
      made.pool.reason = std::move(reason);
    };
    if (inventory_.resources_ == Resources::named) return;
    std::set<std::string_view> names;
    for (const SliceRecord* record : made.slices) {
      if (!record->has_devices()) continue;
      for (const Device& device : record->slice.devices) {
        if (!names.insert(device.name).second) {
          return invalid(cat("duplicate device name ", device.name));
        }
      }
    }
    if (!inventory_.features_.partitionable_devices) return;
    std::vector<const SliceRecord*> consulted = made.slices;
    if (!all_here) {
      consulted.assign(made.pool.generation->slices.begin(), made.pool.generation->slices.end());
    }
    std::map<std::string_view, const CounterSet*> sets;
    for (const SliceRecord* record : consulted) {
      for (const CounterSet& set : record->slice.counter_sets) {
        if (!sets.try_emplace(set.name, &set).second) {
          return invalid(cat("duplicate counter set name ", set.name));
        }
      }
    }
    for (const SliceRecord* record : consulted) {
      if (!record->has_devices()) continue;
      for (const Device& device : record->slice.devices) {
        for (const Consumption& consumption : device.consumptions) {
          const auto set = sets.find(consumption.set);
          if (set == sets.end()) return invalid(cat("counter set ", consumption.set, " not found"));
          for (const CounterAmount& counter : consumption.counters) {
            const auto& known = set->second->counters;
            if (std::none_of(known.begin(), known.end(), [&](const CounterAmount& candidate) {
                  return candidate.name == counter.name;
                })) {
              return invalid(
                  cat("counter ", counter.name, " not found in counter set ", consumption.set));
            }
          }
        }
      }
    }
  }

  void lay_out() {
    // Devices that must be made ready first are the last choice.
    std::stable_partition(gathered_.begin(), gathered_.end(),
                          [](const Gathered& pool) { return !pool.binding_conditions; });
    for (Gathered& gathered : gathered_) {
      PoolView& pool = gathered.pool;
      pool.first = static_cast<Slot>(view_.rows.size());
      if (pool.state == PoolView::State::invalid) ++view_.invalid_pools;
      if (pool.state == PoolView::State::complete) add_devices(gathered);
      pool.count = static_cast<Slot>(view_.rows.size()) - pool.first;
      view_.pools.push_back(std::move(pool));
    }
    if (view_.away.word_count() != 0) view_.away.resize(view_.rows.size());
  }

  void add_devices(Gathered& gathered) {
    std::stable_sort(
        gathered.slices.begin(), gathered.slices.end(),
        [](const SliceRecord* a, const SliceRecord* b) { return a->slice.name < b->slice.name; });
    // An instance may be in two slices while a driver moves it: the first one counts.
    std::set<std::string_view> names;
    for (const SliceRecord* record : gathered.slices) {
      if (!record->has_devices()) continue;
      for (std::size_t i = 0; i < record->slice.devices.size(); ++i) {
        const auto slot = static_cast<Slot>(view_.rows.size());
        view_.rows.push_back(record->first_row + static_cast<Row>(i));
        view_.pool_of.push_back(static_cast<std::uint32_t>(view_.pools.size()));
        if (inventory_.resources_ == Resources::named &&
            !names.insert(record->slice.devices[i].name).second) {
          set_away(slot);
        }
        if (!record->slice.per_device) continue;
        const Result<bool> here = record->slice.devices[i].nodes->matches(node_);
        if (here.ok() && *here) continue;
        set_away(slot);
      }
    }
  }

  void set_away(Slot slot) {
    view_.away.resize(slot + 1);
    view_.away.set(slot);
  }

  Inventory& inventory_;
  const Node& node_;
  NodeView view_;
  std::vector<const SliceRecord*> relevant_;
  std::vector<Gathered> gathered_;
};

const NodeView& Inventory::view(const Node& node) {
  std::unique_ptr<CachedView>& cached = views_[node.name];
  if (cached == nullptr) cached = std::make_unique<CachedView>();
  const bool same_node =
      (cached->node.labels.same_node(node.labels) || cached->node.labels == node.labels);
  if (!cached->stale && cached->shared_epoch == shared_epoch_ && same_node) return cached->view;
  cached->node = node;
  cached->shared_epoch = shared_epoch_;
  cached->stale = false;
  cached->view = ViewBuilder(*this, node).build();
  return cached->view;
}

void Inventory::forget_node(std::string_view name) { views_.erase(std::string(name)); }

}  // namespace dibs::alloc
