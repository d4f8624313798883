// Evaluation by recursion over the operations; their depth was bounded when they were parsed.
//
// Costs are counted as the Go implementation counts them, for its limits are part of the API: one
// for a variable and for each step into it, ten for a list, thirty for a map, a function by the
// size of what it reads. Loops pay for the accumulator and the condition of the loop into which the
// macro expands there.

#include <algorithm>

#include "base/strings.h"
#include "cel/cost/cost.h"
#include "cel/evaluate/call_refusals.h"
#include "cel/evaluate/operators.h"
#include "cel/evaluate/program.h"
#include "cel/operations.h"
#include "cel/recursion.h"

namespace dibs::cel {

namespace {

constexpr std::size_t kInlineArguments = 4;
constexpr std::size_t kInlineSlots = 4;

struct Slot {
  Value value;
  std::uint32_t pending = Program::kNoOp;  // what to evaluate at the first use
};

class Evaluator {
 public:
  Evaluator(const Program& program, std::span<const Value> variables, const Limits& limits)
      : program_(program), variables_(variables), limits_(limits) {
    if (program.slots <= kInlineSlots) return;
    more_slots_.resize(program.slots);
    slots_ = more_slots_.data();
  }

  void bind(const Binding& bind) { slots_[bind.slot].pending = bind.op; }

  Evaluation run(std::uint32_t root) {
    Evaluation made;
    const WorkShare share;
    made.value = eval(root);
    made.cost = cost_;
    made.interrupted = interrupted_;
    if (cancelled_)
      made.value = Value::error("operation interrupted");
    else if (interrupted_)
      made.value = Value::error("operation cancelled: actual cost limit exceeded");
    return made;
  }

 private:
  void charge(std::uint64_t cost) {
    if (interrupted_) return;
    cost_ = saturated_add(cost_, cost);
    if (cost_ > limits_.cost) interrupted_ = true;
  }

  std::uint32_t child(const Op& op, std::size_t i) const { return program_.children[op.first + i]; }

  /// As eval(), without a copy of what exists already; `room` is for what does not.
  const Value& see(std::uint32_t id, Value& room, bool part = false) {
    const Op& op = program_.ops[id];
    switch (op.code) {
      case OpCode::constant:
        return program_.constants[op.index];
      case OpCode::folded:
        charge(op.slot2);
        return program_.constants[op.index];
      case OpCode::variable:
        if (op.index >= variables_.size()) break;
        if (!part) charge(1);
        return variables_[op.index];
      case OpCode::local:
        if (!part) charge(1);
        return local(op.index);
      case OpCode::select:
      case OpCode::index:
        return see_step(op, room, part);
      default:
        break;
    }
    room = eval(id, part);
    return room;
  }

  /// `part`: this is a piece of a larger attribute, whose root is not paid for.
  Value eval(std::uint32_t id, bool part = false) {
    const Op& op = program_.ops[id];
    switch (op.code) {
      case OpCode::constant:
        return program_.constants[op.index];
      case OpCode::failure:
        return program_.constants[op.index];
      case OpCode::folded:
        charge(op.slot2);
        return program_.constants[op.index];
      case OpCode::variable:
        if (!part) charge(1);
        if (op.index < variables_.size()) return variables_[op.index];
        return Value::borrow("no such attribute", Kind::error);
      case OpCode::local:
        if (!part) charge(1);
        return local(op.index);
      case OpCode::select:
      case OpCode::index: {
        Value room;
        const Value& found = see_step(op, room, part);
        return &found == &room ? std::move(room) : found;
      }
      case OpCode::has:
      case OpCode::select_optional:
      case OpCode::index_optional:
        return step(op, part);
      case OpCode::logical_and:
        return logical(op, false);
      case OpCode::logical_or:
        return logical(op, true);
      case OpCode::conditional:
        return conditional(op);
      case OpCode::optional_or:
      case OpCode::optional_or_value:
        return optional_or(op);
      case OpCode::call:
        return call(op);
      case OpCode::list:
        return list(op);
      case OpCode::map:
        return map(op);
      case OpCode::message:
        return message(op);
      case OpCode::fold:
        return fold(op);
      case OpCode::bind:
        slots_[op.index].pending = child(op, 0);
        return eval(child(op, 1));
      case OpCode::optional_map:
        return optional_map(op);
      default:
        return op.count == 1 ? unary(op) : binary(op);
    }
  }

  const Value& local(std::uint32_t slot) {
    const std::uint32_t pending = std::exchange(slots_[slot].pending, Program::kNoOp);
    if (pending != Program::kNoOp) slots_[slot].value = eval(pending);
    return slots_[slot].value;
  }

  /// A select or index. Steps into variables are paid one by one; into the result of anything else
  /// the first step pays for the way in as well. What lies in a container that someone else keeps
  /// alive is not copied.
  const Value& see_step(const Op& op, Value& room, bool part) {
    const std::uint32_t operand_id = child(op, 0);
    const bool chain = program_.ops[operand_id].attribute;
    Value operand_room;
    const Value& operand = see(operand_id, operand_room, part && chain);
    if (!chain && !part) charge(1);
    Value key_room;
    const Value& key = key_of(op, key_room);
    if (operand.is(Kind::map) && !key.is_error()) {
      charge(1);
      if (&operand != &operand_room) {
        if (const Value* found = operand.as_map().peek(key)) return *found;
      }
      if (operand.as_map().find(key, room)) return room;
      room = at(operand, key);
      return room;
    }
    room = stepped(op, operand, key);
    return room;
  }

  const Value& key_of(const Op& op, Value& room) {
    const bool computed = op.code == OpCode::index || op.code == OpCode::index_optional;
    return computed ? see(child(op, 1), room, true) : program_.constants[op.index];
  }

  /// has() and the optional steps.
  Value step(const Op& op, bool part) {
    const std::uint32_t operand_id = child(op, 0);
    const bool chain = program_.ops[operand_id].attribute;
    Value operand_room;
    const Value& operand = see(operand_id, operand_room, part && chain);
    if (!chain && !part) charge(1);
    Value key_room;
    const Value& key = key_of(op, key_room);
    return op.code == OpCode::has ? tested(operand, key, part) : stepped(op, operand, key);
  }

  Value stepped(const Op& op, const Value& operand, const Value& key) {
    if (operand.is_error()) return operand;
    if (key.is_error()) {
      if (op.code == OpCode::index) charge(1);
      return key;
    }
    const bool optional = op.code == OpCode::select_optional || op.code == OpCode::index_optional ||
                          operand.is(Kind::optional);
    Value made = optional                    ? at_optional(operand, key, program_.as_in_go)
                 : op.code == OpCode::select ? select(operand, key)
                                             : at(operand, key);
    if (!optional || (made.is(Kind::optional) && made.has_content())) charge(1);
    return made;
  }

  Value tested(const Value& operand, const Value& field, bool part) {
    Value made = operand.is_error() ? operand : has_field(operand, field);
    const bool reached = !operand.is_error() && (!operand.is(Kind::optional) || made.is_true());
    // The test is free; where it is not reached, the step before it is. As a branch of a condition
    // it is a step like any other.
    if (part) {
      if (reached) charge(1);
    } else if (!reached && !interrupted_ && cost_ > 0) {
      --cost_;
    }
    return made;
  }

  Value logical(const Op& op, bool decides) {
    Value first_error;
    bool failed = false;
    for (std::size_t i = 0; i < op.count && !interrupted_; ++i) {
      Value term = eval(child(op, i));
      if (term.is(Kind::boolean)) {
        if (term.as_boolean() == decides) return term;
      } else if (!failed) {
        failed = true;
        first_error = term.is_error() ? std::move(term) : Value::no_such_overload();
      }
    }
    return failed ? first_error : Value::boolean(!decides);
  }

  Value conditional(const Op& op) {
    Value condition = eval(child(op, 0));
    if (condition.is_error()) return condition;
    if (!condition.is(Kind::boolean)) return Value::no_such_overload();
    const std::uint32_t branch = child(op, condition.as_boolean() ? 1 : 2);
    return eval(branch, program_.ops[branch].attribute);
  }

  Value unary(const Op& op) {
    const Value operand = eval(child(op, 0));
    charge(1);
    if (operand.is_error()) return operand;
    if (op.code == OpCode::negate) return apply_negation(operand);
    if (!operand.is(Kind::boolean)) return Value::no_such_overload();
    return Value::boolean(!operand.as_boolean());
  }

  Value binary(const Op& op) {
    Value left_room;
    const Value& left = see(child(op, 0), left_room);
    Value right_room;
    const Value& right = see(child(op, 1), right_room);
    charge(operator_cost(op, left, right));
    if (left.is_error()) return left;
    if (right.is_error()) return right;
    if (interrupted_) return {};
    return apply_operator(op.code, left, right);
  }

  Value optional_or(const Op& op) {
    Value target = eval(child(op, 0));
    if (target.is_error()) return target;
    if (!target.is(Kind::optional))
      return program_.or_of_anything ? target : Value::no_such_overload();
    const bool unwraps = op.code == OpCode::optional_or_value;
    if (target.has_content()) return unwraps ? target.content() : target;
    Value other = eval(child(op, 1));
    if (!unwraps && !other.is(Kind::optional) && !other.is_error() && !program_.as_in_go)
      return Value::no_such_overload();
    return other;
  }

  DIBS_OWN_FRAME Value call(const Op& op) {
    Value inline_arguments[kInlineArguments];
    std::vector<Value> more;
    Value* arguments = inline_arguments;
    if (op.count > kInlineArguments) {
      more.resize(op.count);
      arguments = more.data();
    }
    const Value* failed = nullptr;
    for (std::size_t i = 0; i < op.count; ++i) {
      const Op& argument = program_.ops[child(op, i)];
      if (argument.code == OpCode::constant &&
          program_.constants[argument.index].is(Kind::string)) {
        arguments[i] = Value::borrow(program_.constants[argument.index].text());
        continue;
      }
      arguments[i] = eval(child(op, i));
      if (!arguments[i].is_error() || failed != nullptr) continue;
      failed = &arguments[i];
      if (op.count > 2) return *failed;
    }
    const Program::Call& target = program_.calls[op.index];
    if (failed != nullptr) {
      // A pattern that is constant is planned there as an operation of its own.
      const bool planned = failed == arguments && op.count > 1 &&
                           is_pattern_function(target.name) &&
                           program_.ops[child(op, 1)].code == OpCode::constant;
      if (!planned) charge(cost_of_failure(target, arguments, op.count, *failed));
      return *failed;
    }
    for (const Overload* overload : target.overloads) {
      if (!overload->accepts(arguments, op.count)) continue;
      if (!overload->is_implemented())
        return Value::error(cat("no implementation of function ", target.name));
      // Costs of the standard library go by the overload, where the types left one.
      const bool goes_by_size =
          overload->cost != nullptr && (target.overloads.size() == 1 || target.cost_by_name);
      if (interrupted_ || (goes_by_size && is_large(arguments[0]) &&
                           exceeds(overload->cost(arguments, op.count, {}))))
        return {};
      Value made = overload->invoke(arguments, op.count);
      charge(goes_by_size ? overload->cost(arguments, op.count, made) : 1);
      return made;
    }
    charge(cost_of_mismatch(target, arguments, op.count));
    const bool planned = op.count > 1 && program_.ops[child(op, 1)].code == OpCode::constant;
    return call_refusal(target.name, planned, arguments, op.count);
  }

  static bool is_large(const Value& value) {
    constexpr std::size_t kLarge = 256;
    return value.is(Kind::list) ? value.as_list().size() > kLarge
                                : value.is(Kind::string) && value.text().size() > 4 * kLarge;
  }

  /// What alone the arguments cost would pass the limit: then there is no call.
  bool exceeds(std::uint64_t cost) {
    if (saturated_add(cost_, cost) <= limits_.cost) return false;
    charge(cost);
    return true;
  }

  DIBS_OWN_FRAME Value list(const Op& op) {
    std::vector<Value> items;
    items.reserve(op.count);
    for (std::size_t i = 0; i < op.count; ++i) {
      Value item = eval(child(op, i));
      if (item.is_error()) {
        charge(kListCost);
        return item;
      }
      if (!program_.optional_children[op.first + i]) {
        items.push_back(std::move(item));
        continue;
      }
      if (!item.is(Kind::optional)) return not_optional(item);
      if (item.has_content()) items.push_back(item.content());
    }
    charge(kListCost);
    return Value::list(std::move(items));
  }

  static Value not_optional(const Value& value) {
    return Value::error(cat("cannot initialize optional entry from non-optional value of type ",
                            value.type_name()));
  }

  DIBS_OWN_FRAME Value map(const Op& op) {
    MapBuilder builder;
    for (std::size_t i = 0; i < op.count; i += 2) {
      Value key = eval(child(op, i));
      Value value = key.is_error() ? key : eval(child(op, i + 1));
      if (value.is_error()) {
        charge(kMapCost);
        return value;
      }
      if (!is_key(key) && !program_.as_in_go)
        return Value::error(cat("unsupported key type: ", key.type_name()));
      if (program_.optional_children[op.first + i]) {
        if (!value.is(Kind::optional)) return not_optional(value);
        if (!value.has_content()) continue;
        value = Value(value.content());
      }
      if (!program_.as_in_go && builder.contains(key))
        return Value::error(cat("Failed with repeated key: ", show_key(key)));
      builder.set(std::move(key), std::move(value));
    }
    charge(kMapCost);
    return builder.build();
  }

  DIBS_OWN_FRAME Value message(const Op& op) {
    const Program::Message& target = program_.messages[op.index];
    std::vector<Value> fields;
    for (std::size_t i = 0; i < op.count; ++i) {
      Value value = eval(child(op, i));
      if (value.is_error()) {
        charge(kStructCost);
        return value;
      }
      if (program_.optional_children[op.first + i]) {
        if (!value.is(Kind::optional)) return not_optional(value);
        if (!value.has_content()) continue;
        value = Value(value.content());
      }
      fields.push_back(target.fields[i]);
      fields.push_back(std::move(value));
    }
    charge(kStructCost);
    return target.construct(target.type, fields.data(), fields.size());
  }

  DIBS_OWN_FRAME Value optional_map(const Op& op) {
    const std::uint64_t before = cost_;
    const Value target = eval(child(op, 0));
    const std::uint64_t target_cost = cost_ - before;
    charge(1);
    if (target.is_error()) return target;
    if (!target.is(Kind::optional)) return no_such_overload("hasValue", &target, 1);
    if (!target.has_content()) {
      charge(1);
      return target;
    }
    // The macro names its receiver twice, so the second evaluation is paid for.
    charge(saturated_add(target_cost, op.flag ? 1 : 2));
    slots_[op.index].value = target.content();
    Value made = eval(child(op, 1));
    if (op.flag || made.is_error()) return made;
    return Value::some(std::move(made));
  }

  // Loops.

  struct Range {
    const List* list = nullptr;
    const Map* map = nullptr;
    std::size_t size = 0;
  };

  void set_variables(const Op& op, const Range& range, std::size_t i) {
    Value& first = slots_[op.index].value;
    if (range.list != nullptr) {
      if (op.flag) {
        first = Value::integer(static_cast<std::int64_t>(i));
        slots_[op.slot2].value = range.list->at(i);
      } else {
        first = range.list->at(i);
      }
      return;
    }
    first = range.map->key_at(i);
    if (op.flag) slots_[op.slot2].value = range.map->value_at(i);
  }

  bool keep_going() {
    if (++iterations_ % 100 == 0 && limits_.cancelled != nullptr && limits_.cancelled->load())
      cancelled_ = interrupted_ = true;
    return !interrupted_;
  }

  Value fold(const Op& op) {
    const Value over = eval(child(op, 0));
    const bool iterates = over.is(Kind::list) || over.is(Kind::map);
    // It is a call with a loop in it, which is paid for also where there is nothing to sort.
    if (!iterates && op.fold == Fold::sort_by) charge(3);
    if (over.is_error()) return over;
    Range range;
    if (over.is(Kind::list)) {
      range.list = &over.as_list();
      range.size = range.list->size();
    } else if (over.is(Kind::map)) {
      range.map = &over.as_map();
      range.size = range.map->size();
    } else {
      return Value::error(op.flag ? cat("unsupported comprehension range type: ", go_name(over))
                                  : cat("got '", go_name(over), "', expected iterable type"));
    }
    switch (op.fold) {
      case Fold::all:
        return all_or_exists(op, range, false);
      case Fold::exists:
        return all_or_exists(op, range, true);
      case Fold::exists_one:
        return exists_one(op, range);
      case Fold::transform_map:
      case Fold::transform_map_entry:
        return transform_map(op, range);
      case Fold::sort_by:
        return sort_by(op, range);
      default:
        return transform(op, range);
    }
  }

  DIBS_OWN_FRAME Value all_or_exists(const Op& op, const Range& range, bool decides) {
    Value error;
    bool failed = false;
    bool decided = false;
    for (std::size_t i = 0; i < range.size && !decided && keep_going(); ++i) {
      charge(decides ? 3 : 2);  // the condition
      charge(1);                // the accumulator in the step
      set_variables(op, range, i);
      Value found = eval(child(op, 1));
      if (found.is(Kind::boolean)) {
        decided = found.as_boolean() == decides;
        if (decided && i + 1 < range.size) charge(decides ? 3 : 2);
      } else if (!failed) {
        failed = true;
        error = found.is_error() ? std::move(found) : Value::no_such_overload();
      }
    }
    charge(1);
    if (decided) return Value::boolean(decides);
    return failed ? error : Value::boolean(!decides);
  }

  // The loops below go on after an error, and pay for it: there the accumulator is the error then,
  // which a predicate that fails replaces, and all else leaves as it is.

  /// Evaluates a predicate; `error` is set where it fails.
  bool passes(std::uint32_t predicate, Value& error) {
    if (predicate == Program::kNoOp) return true;
    Value found = eval(predicate);
    if (found.is(Kind::boolean)) return found.as_boolean();
    error = found.is_error() ? std::move(found) : Value::no_such_overload();
    return false;
  }

  DIBS_OWN_FRAME Value exists_one(const Op& op, const Range& range) {
    std::size_t count = 0;
    Value error;
    for (std::size_t i = 0; i < range.size && keep_going(); ++i) {
      set_variables(op, range, i);
      if (!passes(child(op, 1), error)) continue;
      ++count;
      charge(2);
    }
    charge(2);
    return error.is_error() ? error : Value::boolean(count == 1);
  }

  /// Of adding an item to what a loop builds: the item is a list of its own, which is made anew
  /// unless it is constant.
  std::uint64_t item_cost(std::uint32_t made) const {
    const bool constant = made != Program::kNoOp && program_.ops[made].code == OpCode::constant;
    return constant ? 2 : kListCost + 2;
  }

  DIBS_OWN_FRAME Value transform(const Op& op, const Range& range) {
    std::vector<Value> items;
    Value error;
    for (std::size_t i = 0; i < range.size && keep_going(); ++i) {
      set_variables(op, range, i);
      if (!passes(child(op, 1), error)) continue;
      const std::uint32_t made = child(op, 2);
      charge(item_cost(made));
      if (made == Program::kNoOp) charge(1);
      Value item = made == Program::kNoOp ? slots_[op.index].value : eval(made);
      if (error.is_error()) continue;
      if (item.is_error())
        error = std::move(item);
      else
        items.push_back(std::move(item));
    }
    charge(1);
    return error.is_error() ? error : Value::list(std::move(items));
  }

  DIBS_OWN_FRAME Value transform_map(const Op& op, const Range& range) {
    MapBuilder builder;
    Value error;
    for (std::size_t i = 0; i < range.size && keep_going(); ++i) {
      set_variables(op, range, i);
      if (!passes(child(op, 1), error)) continue;
      // A function of three arguments does not look at those behind one that failed.
      if (error.is_error() && op.fold == Fold::transform_map) {
        charge(1);
        continue;
      }
      Value made = eval(child(op, 2));
      charge(op.fold == Fold::transform_map ? 3 : 2);
      if (!error.is_error()) error = insert(builder, op, std::move(made));
    }
    charge(1);
    return error.is_error() ? error : builder.build();
  }

  /// Null, or the error.
  Value insert(MapBuilder& builder, const Op& op, Value made) {
    if (made.is_error()) return made;
    if (op.fold == Fold::transform_map) {
      builder.add(slots_[op.index].value, std::move(made));
      return {};
    }
    if (!made.is(Kind::map)) return Value::no_such_overload();
    const Map& entries = made.as_map();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!builder.add(entries.key_at(i), entries.value_at(i)))
        return Value::error(
            cat("insert failed: key ", show_key(entries.key_at(i)), " already exists"));
    }
    return {};
  }

  DIBS_OWN_FRAME Value sort_by(const Op& op, const Range& range) {
    std::vector<std::pair<Value, Value>> keyed;
    for (std::size_t i = 0; i < range.size && keep_going(); ++i) {
      set_variables(op, range, i);
      charge(item_cost(child(op, 2)));
      Value key = eval(child(op, 2));
      if (key.is_error()) return key;
      keyed.emplace_back(std::move(key), range.list == nullptr ? Value() : range.list->at(i));
    }
    // By size only where the type of the keys is known.
    const Value first = keyed.empty() ? Value() : keyed.front().first;
    charge(3);
    charge(op.slot2 != 0 && range.list != nullptr ? sort_cost(range.size, first) : 1);
    if (interrupted_) return {};
    if (range.list == nullptr)
      return Value::borrow("no such overload: @sortByAssociatedKeys", Kind::error);
    for (const auto& [key, item] : keyed) {
      if (key.kind() != first.kind()) return Value::error("list elements must have the same type");
      if (order(key, first) == Order::no_overload)
        return Value::error("list elements must be comparable");
    }
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) {
      return order(a.first, b.first) == Order::less;
    });
    std::vector<Value> items;
    for (auto& [key, item] : keyed) items.push_back(std::move(item));
    return Value::list(std::move(items));
  }

  const Program& program_;
  std::span<const Value> variables_;
  const Limits& limits_;
  Slot inline_slots_[kInlineSlots];
  std::vector<Slot> more_slots_;
  Slot* slots_ = inline_slots_;
  std::uint64_t cost_ = 0;
  std::uint64_t iterations_ = 0;
  bool interrupted_ = false;
  bool cancelled_ = false;
};

}  // namespace

Evaluation Program::evaluate(std::span<const Value> variables, const Limits& limits) const {
  return Evaluator(*this, variables, limits).run(root);
}

Evaluation Program::evaluate_part(std::uint32_t op, std::span<const Binding> binds,
                                  std::span<const Value> variables, const Limits& limits) const {
  Evaluator evaluator(*this, variables, limits);
  for (const Binding& bind : binds) evaluator.bind(bind);
  return evaluator.run(op);
}

}  // namespace dibs::cel
