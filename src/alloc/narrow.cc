#include <algorithm>
#include <iterator>

#include "alloc/bounds.h"

namespace dibs::alloc {
namespace {

/// The classes that were counted with their values in the column.
Bits& counted_under(std::vector<std::pair<ColumnId, Bits>>& counted, ColumnId column) {
  for (auto& [known, classes] : counted) {
    if (known == column) return classes;
  }
  return counted.emplace_back(column, Bits()).second;
}

}  // namespace

std::size_t Bounds::number_of(std::uint32_t alternative, std::uint32_t constraint) const {
  const std::vector<BoundConstraint>& bound = demand_.alternatives[alternative].constraints;
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (bound[i].constraint == constraint) return i;
  }
  return kNotBound;
}

bool Bounds::alike(const Need& a, const Need& b) const {
  return a.count == b.count && a.admin == b.admin && a.classes == b.classes &&
         std::equal(a.alternatives.begin(), a.alternatives.end(), b.alternatives.begin(),
                    b.alternatives.end(), [this](std::uint32_t x, std::uint32_t y) {
                      return model_.kind(x) == model_.kind(y);
                    });
}

bool Bounds::held_values(std::uint32_t constraint, std::vector<std::uint32_t>& out) const {
  bool some = false;
  std::vector<std::uint32_t> common;
  for (const Picked& picked : attempt_.picked()) {
    const std::size_t i = number_of(picked.alternative, constraint);
    if (i == kNotBound) continue;
    const auto& own =
        model_.alternative(picked.alternative).singles[i][model_.class_of(picked.slot)];
    if (!some) {
      out.assign(own.begin(), own.end());
    } else {
      common.clear();
      std::set_intersection(out.begin(), out.end(), own.begin(), own.end(),
                            std::back_inserter(common));
      out.swap(common);
    }
    some = true;
    steps_ += 1 + own.size() / 4;
  }
  return some;
}

bool Bounds::narrow(std::uint32_t constraint, bool& changed) {
  const std::uint32_t count = model_.single_count(constraint);
  std::vector<Need*> under;
  for (Need& need : needs_) {
    if (std::all_of(need.alternatives.begin(), need.alternatives.end(),
                    [&](std::uint32_t a) { return number_of(a, constraint) != kNotBound; })) {
      under.push_back(&need);
    }
  }
  if (under.empty()) return true;
  Bits& allowed = allowed_[constraint];
  allowed = Bits(count);
  std::vector<std::uint32_t> held;
  if (held_values(constraint, held)) {
    for (const std::uint32_t value : held) allowed.set(value);
  } else {
    for (std::uint32_t value = 0; value < count; ++value) allowed.set(value);
  }
  // All these devices have a value in common: one that has enough for each, and for all together.
  std::int64_t needed = 0;
  std::vector<std::int64_t> together(count);
  std::vector<std::pair<ColumnId, Bits>> counted;
  std::vector<std::int64_t> found;
  for (std::size_t n = 0; n < under.size(); ++n) {
    const Need& need = *under[n];
    if (!need.admin) needed += need.count;
    ++steps_;
    if (n > 0 && alike(need, *under[n - 1])) continue;
    found.assign(count, 0);
    for (const std::uint32_t a : need.alternatives) {
      const std::size_t i = number_of(a, constraint);
      const auto& singles = model_.alternative(a).singles[i];
      Bits& known = counted_under(counted, demand_.alternatives[a].constraints[i].column);
      known.resize(model_.classes().size());
      each_in(need.classes, [&](std::uint32_t c) {
        steps_ += 1 + singles[c].size();
        const bool again = need.admin || singles[c].empty() || known.test(c);
        if (!again) known.set(c);
        // Alternatives may derive the value in different ways; counting twice errs on the safe
        // side.
        for (const std::uint32_t value : singles[c]) {
          found[value] += units(need, c);
          if (!again) together[value] += stock_.units[c];
        }
      });
    }
    for (std::uint32_t value = 0; value < count; ++value) {
      if (found[value] < need.count) allowed.reset(value);
    }
    steps_ += count / 4;
  }
  for (std::uint32_t value = 0; value < count; ++value) {
    if (together[value] < needed) allowed.reset(value);
  }
  if (allowed.none()) return false;
  Bits before;
  for (std::size_t n = 0; n < under.size(); ++n) {
    Need& need = *under[n];
    Bits classes = need.classes;
    if (n > 0 && classes == before) {
      // What was struck out of the one before is struck out of one like it.
      need.classes = under[n - 1]->classes;
      ++steps_;
      if (alike(need, *under[n - 1])) continue;
      need.classes = classes;
    }
    before = std::move(classes);
    std::int64_t total = 0;
    Bits kept(model_.classes().size());
    each_in(need.classes, [&](std::uint32_t c) {
      for (const std::uint32_t a : need.alternatives) {
        const auto& singles = model_.alternative(a).singles[number_of(a, constraint)][c];
        steps_ += 1 + singles.size();
        if (std::any_of(singles.begin(), singles.end(),
                        [&](std::uint32_t value) { return allowed.test(value); })) {
          kept.set(c);
          total += units(need, c);
          return;
        }
      }
      changed = true;
    });
    need.classes = std::move(kept);
    if (total < need.count) return false;
  }
  return true;
}

bool Bounds::reserve(bool& changed) {
  for (std::size_t n = 0; n < needs_.size(); ++n) {
    const Need& whole = needs_[n];
    if (whole.admin || (n > 0 && whole.classes == needs_[n - 1].classes)) continue;
    std::int64_t left = 0;
    each_in(whole.classes, [&](std::uint32_t c) { left += stock_.units[c]; });
    for (const Need& need : needs_) {
      if (!need.admin && need.classes.within(whole.classes)) left -= need.count;
    }
    steps_ += 2 + needs_.size() / 4 + whole.classes.word_count();
    if (left < 0) return false;
    if (left > 0) continue;
    const Bits taken = whole.classes;
    for (Need& need : needs_) {
      if (need.admin || need.classes.within(taken) || !need.classes.remove(taken)) continue;
      changed = true;
      std::int64_t total = 0;
      each_in(need.classes, [&](std::uint32_t c) { total += units(need, c); });
      steps_ += 4;
      if (total < need.count) return false;
    }
  }
  return true;
}

bool Bounds::narrow() {
  constexpr int kRounds = 64;
  bool changed = true;
  for (int round = 0; changed && round < kRounds; ++round) {
    changed = false;
    for (std::uint32_t k = 0; k < demand_.constraints.size(); ++k) {
      if (demand_.constraints[k]->kind != Constraint::Kind::match) continue;
      if (!narrow(k, changed)) return false;
    }
    if (!reserve(changed)) return false;
  }
  return true;
}

}  // namespace dibs::alloc
