#include "alloc/flow.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace dibs::alloc {
namespace {

template <typename Visit>
void each(const Bits& bits, Visit visit) {
  for (std::size_t w = 0; w < bits.word_count(); ++w) {
    for (std::uint64_t left = bits.word(w); left != 0; left &= left - 1) {
      if (!visit(static_cast<std::uint32_t>(w * 64) +
                 static_cast<std::uint32_t>(std::countr_zero(left)))) {
        return;
      }
    }
  }
}

/// First come, first served; most of the time this is enough to say yes.
bool greedy(const std::vector<FlowRow>& rows, FlowStock stock, std::uint64_t& steps) {
  std::vector<std::pair<std::int64_t, const FlowRow*>> order;
  for (const FlowRow& row : rows) {
    std::int64_t total = 0;
    each(row.classes, [&](std::uint32_t c) {
      total += stock.units[c];
      ++steps;
      return true;
    });
    if (total < row.need) return false;
    order.emplace_back(total - row.need, &row);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [slack, row] : order) {
    std::int64_t left = row->need;
    each(row->classes, [&](std::uint32_t c) {
      ++steps;
      std::int64_t some = std::min(left, stock.units[c]);
      const std::uint32_t group = stock.group[c];
      if (group != kNoGroup) {
        some = std::min(some, stock.group_units[group]);
        stock.group_units[group] -= some;
      }
      stock.units[c] -= some;
      left -= some;
      return left > 0;
    });
    if (left > 0) return false;
  }
  return true;
}

/// Dinic's algorithm on source, rows, classes, groups, sink.
class Network {
 public:
  Network(const std::vector<FlowRow>& rows, const FlowStock& stock, std::uint64_t& steps)
      : steps_(steps) {
    const auto row_count = static_cast<std::uint32_t>(rows.size());
    const auto class_count = static_cast<std::uint32_t>(stock.units.size());
    const auto group_count = static_cast<std::uint32_t>(stock.group_units.size());
    sink_ = 1 + row_count + class_count + group_count;
    edges_of_.resize(sink_ + 1);
    for (std::uint32_t r = 0; r < row_count; ++r) {
      add(0, 1 + r, rows[r].need);
      each(rows[r].classes, [&](std::uint32_t c) {
        add(1 + r, 1 + row_count + c, rows[r].need);
        return true;
      });
    }
    for (std::uint32_t c = 0; c < class_count; ++c) {
      const std::uint32_t group = stock.group[c];
      const std::uint32_t to = group == kNoGroup ? sink_ : 1 + row_count + class_count + group;
      if (stock.units[c] > 0) add(1 + row_count + c, to, stock.units[c]);
    }
    for (std::uint32_t g = 0; g < group_count; ++g) {
      add(1 + row_count + class_count + g, sink_, std::max<std::int64_t>(0, stock.group_units[g]));
    }
  }

  std::int64_t greatest() {
    std::int64_t total = 0;
    while (level()) {
      next_.assign(edges_of_.size(), 0);
      while (const std::int64_t pushed = push(0, ~std::uint64_t{0} >> 2)) total += pushed;
    }
    return total;
  }

 private:
  struct Edge {
    std::uint32_t to;
    std::int64_t room;
  };

  void add(std::uint32_t from, std::uint32_t to, std::int64_t room) {
    edges_of_[from].push_back(static_cast<std::uint32_t>(edges_.size()));
    edges_.push_back({to, room});
    edges_of_[to].push_back(static_cast<std::uint32_t>(edges_.size()));
    edges_.push_back({from, 0});
  }

  bool level() {
    levels_.assign(edges_of_.size(), -1);
    levels_[0] = 0;
    queue_.assign(1, 0);
    for (std::size_t head = 0; head < queue_.size(); ++head) {
      for (const std::uint32_t e : edges_of_[queue_[head]]) {
        ++steps_;
        if (edges_[e].room <= 0 || levels_[edges_[e].to] >= 0) continue;
        levels_[edges_[e].to] = levels_[queue_[head]] + 1;
        queue_.push_back(edges_[e].to);
      }
    }
    return levels_[sink_] >= 0;
  }

  std::int64_t push(std::uint32_t at, std::int64_t most) {
    if (at == sink_) return most;
    for (std::size_t& i = next_[at]; i < edges_of_[at].size(); ++i) {
      const std::uint32_t e = edges_of_[at][i];
      ++steps_;
      if (edges_[e].room <= 0 || levels_[edges_[e].to] != levels_[at] + 1) continue;
      const std::int64_t pushed = push(edges_[e].to, std::min(most, edges_[e].room));
      if (pushed == 0) continue;
      edges_[e].room -= pushed;
      edges_[e ^ 1].room += pushed;
      return pushed;
    }
    return 0;
  }

  std::uint64_t& steps_;
  std::uint32_t sink_ = 0;
  std::vector<Edge> edges_;
  std::vector<std::vector<std::uint32_t>> edges_of_;
  std::vector<int> levels_;
  std::vector<std::uint32_t> queue_;
  std::vector<std::size_t> next_;
};

}  // namespace

bool can_serve(const std::vector<FlowRow>& rows, const FlowStock& stock, std::uint64_t& steps) {
  if (greedy(rows, stock, steps)) return true;
  std::int64_t need = 0;
  for (const FlowRow& row : rows) need += row.need;
  // Building the network costs more than a walk over it.
  steps += 4 * (rows.size() + stock.units.size());
  return Network(rows, stock, steps).greatest() == need;
}

}  // namespace dibs::alloc
