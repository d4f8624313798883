// Filters: leaves are answered code by code and remembered, logic runs over words of 64 rows.

#include <algorithm>
#include <bit>

#include "cel/columns/column.h"
#include "cel/columns/columns.h"
#include "cel/columns/plan.h"
#include "cel/cost/cost.h"
#include "cel/evaluate/operators.h"

namespace dibs::cel {

namespace {

using Words = std::vector<std::uint64_t>;

// What is known of a code: a set bit is a fact, none of them an error.
constexpr std::uint8_t kYes = 1;
constexpr std::uint8_t kNo = 2;
constexpr std::uint8_t kUnknown = 4;

/// Combinations of codes are forgotten once they are this much more than rows.
constexpr std::size_t kCombinationsPerRow = 4;
constexpr std::size_t kCombinationsKept = 65536;

/// Numbers for pairs of numbers, in the order in which they turn up.
class Pairs {
 public:
  std::uint32_t number(std::uint32_t a, std::uint32_t b) {
    const std::uint64_t key = std::uint64_t{a} << 32 | b;
    if (2 * (count_ + 1) > slots_.size()) grow();
    for (std::size_t i = place(key);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.number == kEmpty) {
        slot = {key, count_};
        return count_++;
      }
      if (slot.key == key) return slot.number;
    }
  }
  std::uint32_t size() const { return count_; }
  void clear() {
    slots_.clear();
    count_ = 0;
  }

 private:
  static constexpr std::uint32_t kEmpty = ~std::uint32_t{0};
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t number = kEmpty;
  };

  std::size_t place(std::uint64_t key) const {
    key *= 0x9e3779b97f4a7c15;
    return static_cast<std::size_t>(key >> 32) & (slots_.size() - 1);
  }

  void grow() {
    std::vector<Slot> old(std::max<std::size_t>(16, 2 * slots_.size()));
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == kEmpty) continue;
      std::size_t i = place(slot.key);
      while (slots_[i].number != kEmpty) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::uint32_t count_ = 0;
};

std::uint8_t outcome_of(const Value& value) {
  if (!value.is(Kind::boolean)) return 0;
  return value.as_boolean() ? kYes : kNo;
}

/// As the result of a program, an optional counts as what is in it.
std::uint8_t outcome_of_result(const Value& value) {
  const Value* at = &value;
  while (at->is(Kind::optional) && at->has_content()) at = &at->content();
  return outcome_of(*at);
}

}  // namespace

class Filter::Engine {
 public:
  Engine(Table& table, const Program& program, std::uint64_t cost)
      : table_(table), program_(program) {
    limits_.cost = cost;
    prepare(make_plan(program));
  }

  std::uint64_t evaluations() const { return evaluations_; }

  /// Answers for these words of rows; false: everything must be asked again, by the words of all
  /// rows.
  bool run(const std::vector<std::uint32_t>& words, Filter& out) {
    words_ = &words;
    Words mask(words.size());
    for (std::size_t i = 0; i < words.size(); ++i)
      mask[i] = table_.rows_.word(words[i]) & ~table_.failed_.word(words[i]);
    Words yes;
    Words no;
    visit(plan_.root, mask, yes, no);
    if (!exact_ && cost_bound() > limits_.cost) {
      // Some row may pass the limit, so costs must be counted from the first operation to the last.
      exact_ = true;
      prepare(make_plan_of_one_leaf(program_));
      update_columns();
      return false;
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t word = words[i];
      out.yes_.set_word(word, yes[i]);
      out.no_.set_word(word, no[i]);
      out.failed_.set_word(word, table_.rows_.word(word) & ~(yes[i] | no[i]));
    }
    return true;
  }

  void update_columns() {
    Column::update(columns_, table_);
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (plan_.nodes[i].code == PlanCode::leaf) renew(plan_.nodes[i], memos_[i]);
    }
  }

 private:
  /// What is known about a leaf.
  struct Memo {
    std::vector<std::uint8_t> outcomes;  // by code, or by the number of a combination of codes
    std::vector<Pairs> pairs;            // for the second column, the third, ...
    std::vector<std::uint64_t> epochs;   // of the columns
    std::uint64_t cost = 0;              // at most, so far
  };

  void prepare(Plan plan) {
    plan_ = std::move(plan);
    memos_.clear();
    columns_.clear();
    for (const ColumnPath& path : plan_.paths) columns_.push_back(table_.column(path));
    memos_.resize(plan_.nodes.size());
    for (std::size_t i = 0; i < memos_.size(); ++i) {
      const std::size_t count = plan_.nodes[i].columns.size();
      memos_[i].cost = plan_.nodes[i].cost;
      memos_[i].pairs.resize(count > 1 ? count - 1 : 0);
      memos_[i].epochs.resize(count);
    }
  }

  /// Forgets what no longer holds or is too much, and makes room for new codes.
  void renew(const PlanNode& node, Memo& memo) {
    bool forget = memo.outcomes.size() > kCombinationsKept + kCombinationsPerRow * table_.end_;
    for (std::size_t i = 0; i < node.columns.size(); ++i) {
      const std::uint64_t epoch = columns_[node.columns[i]]->epoch();
      if (std::exchange(memo.epochs[i], epoch) != epoch) forget = true;
    }
    if (forget) {
      memo.outcomes.clear();
      for (Pairs& pairs : memo.pairs) pairs.clear();
    }
    if (node.columns.empty()) memo.outcomes.resize(1, kUnknown);
    if (node.columns.size() == 1)
      memo.outcomes.resize(columns_[node.columns[0]]->codes(), kUnknown);
  }

  std::uint64_t cost_bound() const {
    // A negation costs one; within a leaf the cost may for a moment be one more than at its end.
    std::uint64_t sum = plan_.nodes.size();
    for (const Memo& memo : memos_) sum = saturated_add(sum, memo.cost);
    return sum;
  }

  void visit(std::uint32_t id, const Words& mask, Words& yes, Words& no) {
    const PlanNode& node = plan_.nodes[id];
    switch (node.code) {
      case PlanCode::leaf:
        yes.assign(mask.size(), 0);
        no.assign(mask.size(), 0);
        if (node.columns.empty())
          constant_leaf(node, memos_[id], mask, yes, no);
        else if (node.columns.size() == 1)
          leaf(node, memos_[id], mask, yes, no);
        else
          combined_leaf(node, memos_[id], mask, yes, no);
        break;
      case PlanCode::logical_and:
        terms(node, mask, yes, no);
        break;
      case PlanCode::logical_or:
        terms(node, mask, no, yes);
        break;
      case PlanCode::logical_not:
        visit(node.children[0], mask, no, yes);
        break;
      case PlanCode::conditional:
        conditional(node, mask, yes, no);
        break;
    }
  }

  /// `all`: rows where every term is so; `any`: where one is the opposite, which decides. Later
  /// terms are asked only about rows that are not decided.
  void terms(const PlanNode& node, const Words& mask, Words& all, Words& any) {
    const bool is_and = node.code == PlanCode::logical_and;
    all = mask;
    any.assign(mask.size(), 0);
    Words open = mask;
    Words yes;
    Words no;
    for (const std::uint32_t child : node.children) {
      visit(child, open, is_and ? yes : no, is_and ? no : yes);
      bool some = false;
      for (std::size_t i = 0; i < mask.size(); ++i) {
        all[i] &= yes[i];
        any[i] |= no[i];
        open[i] &= ~no[i];
        some = some || open[i] != 0;
      }
      if (!some) break;
    }
  }

  void conditional(const PlanNode& node, const Words& mask, Words& yes, Words& no) {
    Words when;
    Words otherwise;
    visit(node.children[0], mask, when, otherwise);
    visit(node.children[1], when, yes, no);
    Words other_yes;
    Words other_no;
    visit(node.children[2], otherwise, other_yes, other_no);
    for (std::size_t i = 0; i < mask.size(); ++i) {
      yes[i] |= other_yes[i];
      no[i] |= other_no[i];
    }
  }

  void constant_leaf(const PlanNode& node, Memo& memo, const Words& mask, Words& yes, Words& no) {
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) continue;
      if (memo.outcomes[0] == kUnknown)
        memo.outcomes[0] = evaluated(node, memo, row_of(i, mask[i]));
      yes[i] = (memo.outcomes[0] & kYes) != 0 ? mask[i] : 0;
      no[i] = (memo.outcomes[0] & kNo) != 0 ? mask[i] : 0;
    }
  }

  void leaf(const PlanNode& node, Memo& memo, const Words& mask, Words& yes, Words& no) {
    const Column& column = *columns_[node.columns[0]];
    std::uint8_t* outcomes = memo.outcomes.data();
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) continue;
      const std::uint32_t* codes = column.word((*words_)[i]);
      std::uint64_t unknown = 0;
      gather(outcomes, codes, yes[i], no[i], unknown);
      unknown &= mask[i];
      if (unknown != 0) {
        for (; unknown != 0; unknown &= unknown - 1) {
          const std::uint32_t code = codes[std::countr_zero(unknown)];
          if (outcomes[code] == kUnknown)
            outcomes[code] = outcome(node, memo, column.entry(code), row_of(i, unknown));
        }
        gather(outcomes, codes, yes[i], no[i], unknown);
      }
      yes[i] &= mask[i];
      no[i] &= mask[i];
    }
  }

  static void gather(const std::uint8_t* outcomes, const std::uint32_t* codes, std::uint64_t& yes,
                     std::uint64_t& no, std::uint64_t& unknown) {
    std::uint64_t bits[3] = {0, 0, 0};
    for (std::size_t row = 0; row < RowSet::kWordBits; ++row) {
      const std::uint64_t known = outcomes[codes[row]];
      bits[0] |= (known & 1) << row;
      bits[1] |= (known >> 1 & 1) << row;
      bits[2] |= (known >> 2) << row;
    }
    yes = bits[0];
    no = bits[1];
    unknown = bits[2];
  }

  void combined_leaf(const PlanNode& node, Memo& memo, const Words& mask, Words& yes, Words& no) {
    for (std::size_t i = 0; i < mask.size(); ++i) {
      for (std::uint64_t left = mask[i]; left != 0; left &= left - 1) {
        const Row row = row_of(i, left);
        std::uint32_t number = columns_[node.columns[0]]->code(row);
        for (std::size_t j = 1; j < node.columns.size(); ++j)
          number = memo.pairs[j - 1].number(number, columns_[node.columns[j]]->code(row));
        if (number >= memo.outcomes.size()) memo.outcomes.resize(number + 1, kUnknown);
        std::uint8_t& known = memo.outcomes[number];
        if (known == kUnknown) known = evaluated(node, memo, row);
        const std::uint64_t bit = left & ~(left - 1);
        if ((known & kYes) != 0) yes[i] |= bit;
        if ((known & kNo) != 0) no[i] |= bit;
      }
    }
  }

  /// The row of the lowest bit.
  Row row_of(std::size_t i, std::uint64_t bits) const {
    return static_cast<Row>((*words_)[i] * RowSet::kWordBits +
                            static_cast<std::size_t>(std::countr_zero(bits)));
  }

  std::uint8_t outcome(const PlanNode& node, Memo& memo, const Column::Entry& entry, Row row) {
    if (exact_ || node.kind == LeafKind::evaluated) return evaluated(node, memo, row);
    const bool ends = entry.state == ReadState::value;
    if (node.kind == LeafKind::present) {
      if (ends) return kYes;
      const std::size_t last = plan_.paths[node.columns[0]].steps.size() - 1;
      if (entry.state == ReadState::no_key && entry.step == last) return kNo;
      return evaluated(node, memo, row);
    }
    if (!ends) return 0;
    if (!entry.has_value) return evaluated(node, memo, row);
    if (entry.value.is_error()) return 0;
    if (node.kind == LeafKind::read) return outcome_of(entry.value);
    const OpCode code = program_.ops[node.op].code;
    return outcome_of(node.kind == LeafKind::compared
                          ? apply_operator(code, entry.value, *node.constant)
                          : apply_operator(code, *node.constant, entry.value));
  }

  std::uint8_t evaluated(const PlanNode& node, Memo& memo, Row row) {
    ++evaluations_;
    const Evaluation made =
        program_.evaluate_part(node.op, node.binds, table_.variables(row), limits_);
    memo.cost = std::max(memo.cost, made.cost);
    return node.is_result ? outcome_of_result(made.value) : outcome_of(made.value);
  }

  Table& table_;
  const Program& program_;
  Limits limits_;
  bool exact_ = false;
  Plan plan_;
  std::vector<Memo> memos_;  // by node of the plan
  std::vector<std::shared_ptr<Column>> columns_;
  const std::vector<std::uint32_t>* words_ = nullptr;  // at work
  std::uint64_t evaluations_ = 0;
};

Filter::Filter(Table& table, std::shared_ptr<const Program> program, std::uint64_t cost)
    : table_(table),
      program_(std::move(program)),
      cost_(cost),
      engine_(std::make_unique<Engine>(table, *program_, cost)) {}

Filter::~Filter() = default;

void Filter::update() {
  if (version_ == table_.version()) return;
  const std::size_t count = table_.words();
  for (RowSet* set : {&yes_, &no_, &failed_}) set->reserve_words(count);
  engine_->update_columns();
  std::vector<std::uint32_t> words;
  std::span<const Row> changed;
  const auto all = [&] {
    words.resize(count);
    for (std::size_t i = 0; i < count; ++i) words[i] = static_cast<std::uint32_t>(i);
  };
  if (table_.changes_since(version_, changed)) {
    for (const Row row : changed) words.push_back(row / RowSet::kWordBits);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
  } else {
    all();
  }
  if (!engine_->run(words, *this)) {
    all();
    engine_->run(words, *this);
  }
  version_ = table_.version();
}

Evaluation Filter::explain(Row row) const {
  Evaluation made;
  if (const std::string* failure = table_.failure(row)) {
    made.value = Value::error(*failure);
    return made;
  }
  Limits limits;
  limits.cost = cost_;
  return program_->evaluate(table_.variables(row), limits);
}

std::uint64_t Filter::evaluations() const { return engine_->evaluations(); }

}  // namespace dibs::cel
