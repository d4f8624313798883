#include "alloc/flow.h"

#include <algorithm>
#include <bit>

namespace dibs::alloc {
namespace {

constexpr std::uint32_t kNoEdge = 0xffffffff;

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

}  // namespace

/// First come, first served; most of the time this is enough to say yes.
bool Flow::greedy(const std::vector<FlowRow>& rows, const FlowStock& stock, std::uint64_t& steps) {
  order_.clear();
  for (const FlowRow& row : rows) {
    std::int64_t total = 0;
    each(row.classes, [&](std::uint32_t c) {
      total += stock.units[c];
      ++steps;
      return true;
    });
    if (total < row.need) return false;
    order_.emplace_back(total - row.need, &row);
  }
  std::sort(order_.begin(), order_.end());
  left_.units = stock.units;
  left_.group_units = stock.group_units;
  for (const auto& entry : order_) {
    const FlowRow& row = *entry.second;
    std::int64_t left = row.need;
    each(row.classes, [&](std::uint32_t c) {
      ++steps;
      std::int64_t some = std::min({left, left_.units[c], stock.each[c] * row.requests});
      const std::uint32_t group = stock.group[c];
      if (group != kNoGroup) {
        some = std::min(some, left_.group_units[group]);
        left_.group_units[group] -= some;
      }
      left_.units[c] -= some;
      left -= some;
      return left > 0;
    });
    if (left > 0) return false;
  }
  return true;
}

void Flow::add(std::uint32_t from, std::uint32_t to, std::int64_t room) {
  edges_.push_back({to, first_[from], room});
  first_[from] = static_cast<std::uint32_t>(edges_.size() - 1);
  edges_.push_back({from, first_[to], 0});
  first_[to] = static_cast<std::uint32_t>(edges_.size() - 1);
}

/// Source, rows, classes, groups, sink.
void Flow::build(const std::vector<FlowRow>& rows, const FlowStock& stock) {
  const auto row_count = static_cast<std::uint32_t>(rows.size());
  const auto class_count = static_cast<std::uint32_t>(stock.units.size());
  const auto group_count = static_cast<std::uint32_t>(stock.group_units.size());
  sink_ = 1 + row_count + class_count + group_count;
  edges_.clear();
  first_.assign(sink_ + 1, kNoEdge);
  for (std::uint32_t r = 0; r < row_count; ++r) {
    add(0, 1 + r, rows[r].need);
    each(rows[r].classes, [&](std::uint32_t c) {
      add(1 + r, 1 + row_count + c, std::min(rows[r].need, stock.each[c] * rows[r].requests));
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

/// Dinic's algorithm.
std::int64_t Flow::greatest(std::uint64_t& steps) {
  std::int64_t total = 0;
  while (level(steps)) {
    at_ = first_;
    while (const std::int64_t pushed = push(0, ~std::uint64_t{0} >> 2, steps)) total += pushed;
  }
  return total;
}

bool Flow::level(std::uint64_t& steps) {
  levels_.assign(first_.size(), -1);
  levels_[0] = 0;
  queue_.assign(1, 0);
  for (std::size_t head = 0; head < queue_.size(); ++head) {
    for (std::uint32_t e = first_[queue_[head]]; e != kNoEdge; e = edges_[e].next) {
      ++steps;
      if (edges_[e].room <= 0 || levels_[edges_[e].to] >= 0) continue;
      levels_[edges_[e].to] = levels_[queue_[head]] + 1;
      queue_.push_back(edges_[e].to);
    }
  }
  return levels_[sink_] >= 0;
}

std::int64_t Flow::push(std::uint32_t at, std::int64_t most, std::uint64_t& steps) {
  if (at == sink_) return most;
  for (std::uint32_t& e = at_[at]; e != kNoEdge; e = edges_[e].next) {
    ++steps;
    if (edges_[e].room <= 0 || levels_[edges_[e].to] != levels_[at] + 1) continue;
    const std::int64_t pushed = push(edges_[e].to, std::min(most, edges_[e].room), steps);
    if (pushed == 0) continue;
    edges_[e].room -= pushed;
    edges_[e ^ 1].room += pushed;
    return pushed;
  }
  return 0;
}

bool Flow::can_serve(const std::vector<FlowRow>& rows, const FlowStock& stock,
                     std::uint64_t& steps) {
  if (greedy(rows, stock, steps)) return true;
  std::int64_t need = 0;
  for (const FlowRow& row : rows) need += row.need;
  // Building the network costs more than a walk over it.
  steps += 4 * (rows.size() + stock.units.size());
  build(rows, stock);
  return greatest(steps) == need;
}

}  // namespace dibs::alloc
