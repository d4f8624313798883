#include "cel/cost/cost_estimate.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "cel/cost/cost.h"
#include "cel/environment.h"
#include "cel/operations.h"
#include "cel/recursion.h"

namespace dibs::cel {

namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kCidrBytes = 32;
constexpr std::uint64_t kIncludesCost = 48;
constexpr std::uint64_t kFormatBytes = 64;
constexpr double kFormatPattern = 128;
constexpr std::uint64_t kAuthorizationCost = 350'000;

/// How large a value may be.
struct Size {
  std::uint64_t min = 0;
  std::uint64_t max = kUnknown;
};

Size exactly(std::uint64_t size) { return {size, size}; }
Size either(Size a, Size b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

/// Sizes of what a list or map holds.
struct Entries {
  bool list = true;
  Size key;
  Size value;
};

/// What a node costs, how large its value may be, and where that came from.
struct Estimate {
  std::uint64_t cost = 0;
  std::optional<Size> size;  // known from the expression itself
  ValuePath path;
  std::optional<Entries> entries;
  /// Of a loop's or bind's variable, where neither path nor type tell.
  std::optional<Size> variable_size;
};

std::optional<Entries> either(const std::optional<Entries>& a, const std::optional<Entries>& b) {
  if (!a || !b) return std::nullopt;
  return Entries{a->list, either(a->key, b->key), either(a->value, b->value)};
}

ValuePath below(const ValuePath& path, std::string_view step) {
  ValuePath made = path;
  made.emplace_back(step);
  return made;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_text(const Type& type) { return type.is(TypeKind::string) || type.is(TypeKind::bytes); }

bool is_scalar(const Type& type) {
  switch (type.kind()) {
    case TypeKind::boolean:
    case TypeKind::integer:
    case TypeKind::uinteger:
    case TypeKind::real:
    case TypeKind::duration:
    case TypeKind::timestamp:
      return true;
    default:
      return type.is_optional() && is_scalar(type.parameter(0));
  }
}

std::uint64_t sum(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t total = 0;
  for (const std::uint64_t part : parts) total = saturated_add(total, part);
  return total;
}

class Estimator {
 public:
  Estimator(const Environment& environment, const Ast& ast, const CheckedAst& checked,
            const SizeBound& bound)
      : environment_(environment), ast_(ast), checked_(checked), bound_(bound) {}

  Estimate visit(NodeId id) {
    const AstNode& node = ast_.node(id);
    const NodeFacts& facts = checked_.nodes[id];
    switch (facts.reference) {
      case Reference::local: {
        const auto found = locals_.find(facts.index);
        Estimate made = found == locals_.end() ? Estimate{} : found->second;
        made.cost = 1;
        return made;
      }
      case Reference::variable:
        return at_path(1, {environment_.variable_name(facts.index)});
      case Reference::type:
        return at_path(1, {facts.text});
      default:
        break;
    }
    switch (node.kind) {
      case NodeKind::constant:
        return sized(0, exactly(cost_size(ast_.constant(node))));
      case NodeKind::select:
        return select(node);
      case NodeKind::call:
        return call(id, node);
      case NodeKind::list:
      case NodeKind::map:
        return aggregate(node);
      case NodeKind::fold:
        return fold(id, node);
      case NodeKind::bind:
        return bind(facts.slot, visit(ast_.child(node, 0)), node);
      case NodeKind::opt_map:
        return opt_map(id, node);
      default:
        return {};
    }
  }

 private:
  static Estimate at_path(std::uint64_t cost, ValuePath path) {
    Estimate made;
    made.cost = cost;
    made.path = std::move(path);
    return made;
  }
  static Estimate sized(std::uint64_t cost, std::optional<Size> size) {
    Estimate made;
    made.cost = cost;
    made.size = size;
    return made;
  }

  const Type& type(NodeId id) const { return checked_.nodes[id].type; }

  std::optional<Size> bounded(const ValuePath& path) const {
    if (path.empty() || !bound_) return std::nullopt;
    const std::optional<std::uint64_t> known = bound_(path);
    return known ? std::optional<Size>(Size{0, *known}) : std::nullopt;
  }

  /// A bound of the host comes before what the type says.
  std::optional<Size> known_size(const Estimate& of, NodeId id) const {
    if (of.size) return of.size;
    if (const std::optional<Size> known = bounded(of.path)) return known;
    if (is_scalar(type(id))) return exactly(1);
    return of.variable_size;
  }
  Size size(const Estimate& of, NodeId id) const { return known_size(of, id).value_or(Size{}); }

  DIBS_OWN_FRAME Estimate select(const AstNode& node) {
    const NodeId operand = ast_.child(node, 0);
    const Estimate of = visit(operand);
    if (node.test_only) return sized(of.cost, std::nullopt);
    if (node.optional) return sized(saturated_add(of.cost, 1), std::nullopt);
    const Type& from = type(operand);
    const bool counts =
        from.is(TypeKind::map) || from.is(TypeKind::object) || from.is(TypeKind::parameter);
    return at_path(saturated_add(of.cost, counts ? 1 : 0), below(of.path, ast_.name(node)));
  }

  DIBS_OWN_FRAME Estimate aggregate(const AstNode& node) {
    const bool list = node.kind == NodeKind::list;
    Estimate made = sized(list ? kListCost : kMapCost, exactly(list ? node.count : node.count / 2));
    Entries entries{list, list ? exactly(1) : Size{kUnknown, 0}, Size{kUnknown, 0}};
    if (node.count == 0) entries = {list, exactly(list ? 1 : 0), exactly(0)};
    for (std::size_t i = 0; i < node.count; ++i) {
      const NodeId child = ast_.child(node, i);
      const Estimate part = visit(child);
      made.cost = saturated_add(made.cost, part.cost);
      Size& of = !list && i % 2 == 0 ? entries.key : entries.value;
      of = either(of, size(part, child));
    }
    made.entries = entries;
    return made;
  }

  DIBS_OWN_FRAME Estimate bind(std::uint32_t slot, Estimate bound, const AstNode& node) {
    const std::uint64_t cost = saturated_add(kListCost, bound.cost);
    bound.variable_size = known_size(bound, ast_.child(node, 0));
    bound.size.reset();
    locals_[slot] = std::move(bound);
    const NodeId body = ast_.child(node, 1);
    Estimate of = visit(body);
    // There, what is known of the variable is gone by the time that the body's size is asked for.
    const NodeFacts& facts = checked_.nodes[body];
    if (facts.reference == Reference::local && facts.index == slot) {
      of.variable_size.reset();
      of.entries.reset();
    }
    Estimate made = sized(saturated_add(of.cost, cost), known_size(of, body));
    made.entries = of.entries;
    return made;
  }

  /// As its expansion: t.hasValue() ? optional.of(bind(x, t.value(), body)) : optional.none().
  DIBS_OWN_FRAME Estimate opt_map(NodeId id, const AstNode& node) {
    const Estimate target = visit(ast_.child(node, 0));
    const Estimate body =
        bind(checked_.nodes[id].slot, sized(saturated_add(target.cost, 1), std::nullopt), node);
    const std::uint64_t some = saturated_add(body.cost, node.flat ? 0 : 1);
    return sized(sum({std::max<std::uint64_t>(some, 1), target.cost, 1}), Size{});
  }

  void set_loop_variables(NodeId id, const AstNode& node, const Estimate& range) {
    const bool list =
        range.entries ? range.entries->list : type(ast_.child(node, 0)).is(TypeKind::list);
    const auto variable = [&](bool value, std::string_view step) {
      Estimate made = at_path(1, below(range.path, step));
      if (range.entries) made.variable_size = value ? range.entries->value : range.entries->key;
      return made;
    };
    const NodeFacts& facts = checked_.nodes[id];
    if (node.name2 == kNoName) {
      locals_[facts.slot] = variable(list, list ? "@items" : "@keys");
      return;
    }
    locals_[facts.slot] = variable(false, list ? "@indices" : "@keys");
    locals_[facts.slot2] = variable(true, list ? "@items" : "@values");
  }

  DIBS_OWN_FRAME Estimate fold(NodeId id, const AstNode& node) {
    const NodeId range_id = ast_.child(node, 0);
    const Estimate range = visit(range_id);
    const Size count = size(range, range_id);
    const std::uint64_t n = count.max;
    set_loop_variables(id, node, range);
    const auto part = [&](std::size_t i) {
      return ast_.child(node, i) == kNoNode ? Estimate{} : visit(ast_.child(node, i));
    };
    const std::uint64_t predicate = part(1).cost;
    const Estimate transformed = part(2);
    const std::uint64_t transform = transformed.cost;
    std::uint64_t init = 0;
    std::uint64_t step = 0;
    std::uint64_t result = 1;
    Size item;
    switch (node.fold) {
      case Fold::all:
        step = sum({2, 1, predicate});
        break;
      case Fold::exists:
        step = sum({3, 1, predicate});
        break;
      case Fold::exists_one:
        step = sum({predicate, 2});
        result = 2;
        break;
      case Fold::filter:
        init = kListCost;
        step = sum({predicate, kListCost, 3});
        item = loop_item(id, node);
        break;
      case Fold::transform_map:
        init = kMapCost;
        step = sum({predicate, 3, transform});
        break;
      case Fold::transform_map_entry:
        init = kMapCost;
        step = sum({predicate, 2, transform});
        break;
      default:
        init = kListCost;
        step = sum({predicate, kListCost, 2, transform});
        item = size(transformed, ast_.child(node, 2));
        break;
    }
    Estimate made;
    made.cost = sum({range.cost, init, saturated_multiply(n, step), result});
    if (init > 0) made.size = count;
    if (init == kListCost) made.entries = Entries{true, exactly(1), {0, item.max}};
    if (node.fold != Fold::sort_by) return made;
    // bind(list, list.sortByKeys(list.map(x, key)))
    const Size squared = {saturated_multiply(count.min, count.min), saturated_multiply(n, n)};
    made.cost = sum({made.cost, kListCost, 2, pairs(squared.max, type(ast_.child(node, 2)))});
    made.size = squared;
    made.entries.reset();
    return made;
  }

  /// The size of what filter() keeps.
  Size loop_item(NodeId id, const AstNode& node) const {
    const auto found = locals_.find(checked_.nodes[id].slot);
    const Type& over = type(ast_.child(node, 0));
    if (found == locals_.end()) return {};
    if (const std::optional<Size> known = bounded(found->second.path)) return *known;
    const std::size_t content = over.is(TypeKind::list) || over.is(TypeKind::map) ? 0 : 1;
    if (content == 0 && is_scalar(over.parameter(0))) return exactly(1);
    return found->second.variable_size.value_or(Size{});
  }

  static Type element(const Type& list) {
    return list.is(TypeKind::list) ? list.parameter(0) : Type();
  }

  /// Every element with every other, twice; text is read as well.
  static std::uint64_t pairs(std::uint64_t square, const Type& element) {
    const bool text = is_text(element) || element.is_dyn();
    return sum({1, kListCost, scaled(square, text ? 2 + kScanFactor : 2)});
  }

  struct Arguments {
    std::vector<NodeId> ids;
    std::vector<Estimate> estimates;
    std::vector<Size> sizes;
    std::uint64_t max(std::size_t i) const { return sizes[i].max; }
  };

  DIBS_OWN_FRAME Estimate call(NodeId id, const AstNode& node) {
    const std::string& name = ast_.name(node);
    const NodeFacts& facts = checked_.nodes[id];
    Arguments arguments;
    std::uint64_t cost = 0;
    for (std::size_t i = facts.namespaced ? 1 : 0; i < node.count; ++i) {
      const NodeId child = ast_.child(node, i);
      arguments.ids.push_back(child);
      arguments.estimates.push_back(visit(child));
      arguments.sizes.push_back(size(arguments.estimates.back(), child));
      cost = saturated_add(cost, arguments.estimates.back().cost);
    }
    if (name == "_&&_" || name == "_||_") return sized(cost, std::nullopt);
    if (name == "_?_:_") {
      const auto& parts = arguments.estimates;
      Estimate made = sized(saturated_add(parts[0].cost, std::max(parts[1].cost, parts[2].cost)),
                            either(arguments.sizes[1], arguments.sizes[2]));
      made.entries = either(parts[1].entries, parts[2].entries);
      return made;
    }
    const std::string& function = facts.function == nullptr ? name : facts.function->name;
    Estimate made = own(function, node, facts, arguments);
    made.cost = saturated_add(made.cost, cost);
    return made;
  }

  /// Of the call itself, without its arguments: the most of what its overloads may cost.
  DIBS_OWN_FRAME Estimate own(std::string_view name, const AstNode& node, const NodeFacts& facts,
                              const Arguments& arguments) {
    if (name == "dyn") {
      Estimate made = sized(1, known_size(arguments.estimates[0], arguments.ids[0]));
      made.entries = arguments.estimates[0].entries;
      return made;
    }
    if (std::optional<Estimate> known = of_library(name, node, arguments)) return *known;
    Estimate made;
    bool any = false;
    for (const Overload* overload : facts.overloads) {
      const Estimate one = of_overload(name, node, *overload, arguments);
      made.cost = std::max(made.cost, one.cost);
      if (one.size) made.size = made.size ? either(*made.size, *one.size) : one.size;
      any = true;
    }
    if (!any) made.cost = 1;
    if (name == "_+_")
      made.entries = either(arguments.estimates[0].entries, arguments.estimates[1].entries);
    if (name == "_[_]") step_into(facts, arguments, made);
    return made;
  }

  /// An index leads to the elements of where its operand came from.
  void step_into(const NodeFacts& facts, const Arguments& arguments, Estimate& made) {
    for (const Overload* overload : facts.overloads) {
      const bool list = overload->parameters[0].is(TypeKind::list);
      if (!list && !overload->parameters[0].is(TypeKind::map)) continue;
      const Estimate& from = arguments.estimates[0];
      made.path = below(from.path, list ? "@items" : "@values");
      if (from.entries) made.size = from.entries->value;
    }
  }

  static std::uint64_t scan(std::uint64_t size, double times = 1) {
    return scaled(size, times * kScanFactor);
  }

  /// The standard library, by the types of the overload.
  Estimate of_overload(std::string_view name, const AstNode& node, const Overload& overload,
                       const Arguments& arguments) const {
    const auto& sizes = arguments.sizes;
    const Type first = overload.parameters.empty() ? Type() : overload.parameters[0];
    const Type second = overload.parameters.size() < 2 ? Type() : overload.parameters[1];
    if (name == "_==_" || name == "_!=_" ||
        (is_one_of(name, {"_<_", "_<=_", "_>_", "_>=_"}) && is_text(first) && is_text(second)))
      return sized(scan(std::min(sizes[0].max, sizes[1].max)), std::nullopt);
    if (name == "_+_" && (is_text(first) || first.is(TypeKind::list))) {
      const Size total = {saturated_add(sizes[0].min, sizes[1].min),
                          saturated_add(sizes[0].max, sizes[1].max)};
      return sized(is_text(first) ? scan(total.max) : 1, total);
    }
    if (name == "@in" && second.is(TypeKind::list)) return sized(sizes[1].max, std::nullopt);
    if (is_one_of(name, {"startsWith", "endsWith"})) return sized(scan(sizes[1].max), std::nullopt);
    if (name == "contains")
      return sized(saturated_multiply(scan(sizes[0].max), scan(sizes[1].max)), std::nullopt);
    if (name == "matches" && overload.cost != nullptr) return sized(match(sizes), std::nullopt);
    if (name == "format" && node.receiver) return sized(scan(sizes[0].max), std::nullopt);
    if (name == "bytes" && first.is(TypeKind::string))
      return sized(scan(sizes[0].max), Size{sizes[0].min, saturated_multiply(sizes[0].max, 4)});
    if (name == "string" && first.is(TypeKind::bytes))
      return sized(scan(sizes[0].max), Size{sizes[0].min / 4, sizes[0].max});
    if (name == "strings.quote")
      return sized(scan(sizes[0].max), Size{saturated_add(sizes[0].min, 2),
                                            saturated_add(saturated_multiply(sizes[0].max, 2), 2)});
    return sized(1, std::nullopt);
  }

  static std::uint64_t match(const std::vector<Size>& sizes) {
    return saturated_multiply(scan(saturated_add(sizes[0].max, 1)),
                              scaled(sizes[1].max, kPatternFactor));
  }

  /// What has a rule by its name alone.
  std::optional<Estimate> of_library(std::string_view name, const AstNode& node,
                                     const Arguments& arguments) const {
    const auto& sizes = arguments.sizes;
    if (name == "_==_") return same_types(arguments);
    if (is_one_of(name, {"find", "findAll"})) return sized(match(sizes), Size{0, sizes[0].max});
    if (is_one_of(name,
                  {"lowerAscii", "upperAscii", "substring", "trim", "url", "jsonpatch.escapeKey"}))
      return sized(scan(sizes[0].max), sizes[0]);
    if (is_one_of(name,
                  {"quantity", "isQuantity", "semver", "isSemver", "cidr", "isIP", "isCIDR"}) ||
        (name == "ip" && !node.receiver))
      return sized(scan(sizes[0].max), std::nullopt);
    if (name == "ip.isCanonical") return sized(scan(sizes[0].max, 2), std::nullopt);
    if (name == "replace") return sized(scan(sizes[0].max, 2), replaced(sizes));
    if (name == "split") {
      const std::optional<std::int64_t> limit = literal(arguments, 2);
      return sized(scan(sizes[0].max, 2),
                   Size{0, limit ? static_cast<std::uint64_t>(*limit) : sizes[0].max});
    }
    if (name == "join") return join(arguments);
    if (is_one_of(name, {"isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"}) &&
        node.receiver) {
      const Type& over = type(arguments.ids[0]);
      if (over.parameters().empty()) return sized(scan(sizes[0].max), std::nullopt);
      const std::uint64_t each =
          is_text(over.parameter(0)) ? saturated_add(1, scan(item_size(arguments).max)) : 1;
      return sized(saturated_multiply(sizes[0].max, each), std::nullopt);
    }
    if (name == "containsIP" || name == "containsCIDR") {
      std::uint64_t cost = scan(kCidrBytes);
      if (name == "containsCIDR") cost += scan(kCidrBytes / 2) + 1;
      if (type(arguments.ids[1]).is(TypeKind::string))
        cost = saturated_add(cost, scan(sizes[1].max));
      return sized(cost, std::nullopt);
    }
    if (name == "includes") {
      // The first one, of devices alone, was bounded; one with a cost of its own goes by its
      // target.
      const Function* function = environment_.find_function("includes");
      if (function == nullptr || function->overloads.front().cost == nullptr)
        return sized(kIncludesCost, std::nullopt);
      const Type& over = type(arguments.ids[0]);
      const bool text = !over.parameters().empty() && is_text(over.parameter(0));
      const std::uint64_t each = text ? saturated_add(1, scan(item_size(arguments).max)) : 1;
      return sized(saturated_multiply(sizes[0].max, each), std::nullopt);
    }
    if (name == "validate")
      return sized(scaled(scan(sizes[1].max), kFormatPattern * kPatternFactor), std::nullopt);
    if (name == "check" && node.receiver) return sized(kAuthorizationCost, std::nullopt);
    if (is_one_of(name, {"fieldSelector", "labelSelector"})) {
      // A requirement takes two characters at least and makes a structure and a list.
      const std::uint64_t requirements =
          scaled(scaled(sizes[1].max, 0.5), static_cast<double>(kListCost + kStructCost));
      return sized(sum({kListCost, scan(sizes[1].max), requirements}), std::nullopt);
    }
    if (is_one_of(name, {"sets.contains", "sets.intersects", "sets.equivalent"})) {
      const std::uint64_t product = saturated_multiply(sizes[0].max, sizes[1].max);
      return sized(sum({1, saturated_multiply(product, name == "sets.equivalent" ? 2 : 1)}),
                   std::nullopt);
    }
    return of_lists(name, arguments);
  }

  /// Types of Kubernetes that compare at once.
  std::optional<Estimate> same_types(const Arguments& arguments) const {
    const Type& left = type(arguments.ids[0]);
    const bool known =
        is_one_of(left.name(), {"net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver",
                                "kubernetes.URL", "kubernetes.NamedFormat"}) ||
        left.name().starts_with("kubernetes.authorization.");
    if (!known || !(left == type(arguments.ids[1]))) return std::nullopt;
    if (left.name() == "kubernetes.URL") {
      const auto size = known_size(arguments.estimates[1], arguments.ids[1]).value_or(exactly(1));
      return sized(scan(size.max), std::nullopt);
    }
    if (left.name() == "kubernetes.NamedFormat") return sized(scan(kFormatBytes), std::nullopt);
    return sized(1, std::nullopt);
  }

  std::optional<Estimate> of_lists(std::string_view name, const Arguments& arguments) const {
    const auto& sizes = arguments.sizes;
    const auto new_list = [](std::uint64_t cost, Size size) {
      return sized(sum({1, kListCost, cost}), size);
    };
    const auto number = [&](std::size_t i, std::uint64_t otherwise) {
      const std::optional<std::int64_t> found = literal(arguments, i);
      return found ? static_cast<std::uint64_t>(std::max<std::int64_t>(*found, 0)) : otherwise;
    };
    if (name == "reverse") return new_list(sizes[0].max, sizes[0]);
    if (name == "slice") {
      // Wraps where the end is before the beginning.
      const std::uint64_t size = number(2, sizes[0].max) - number(1, 0);
      return new_list(size, exactly(size));
    }
    if (name == "lists.range") {
      const std::uint64_t size = number(0, kUnknown);
      return new_list(size, exactly(size));
    }
    if (name == "flatten")
      return new_list(
          scaled(sizes[0].max, static_cast<double>(sizes.size() > 1 ? number(1, kUnknown) : 1)),
          sizes[0]);
    if (name == "distinct" || name == "sort") {
      const Size squared = {saturated_multiply(sizes[0].min, sizes[0].min),
                            saturated_multiply(sizes[0].max, sizes[0].max)};
      const Type of = name == "sort" ? element(type(arguments.ids[0])) : Type(TypeKind::integer);
      return sized(pairs(squared.max, of), squared);
    }
    return std::nullopt;
  }

  /// Of the elements of the first argument, where a bound is known.
  Size item_size(const Arguments& arguments) const {
    const ValuePath& path = arguments.estimates[0].path;
    if (path.empty()) return {};
    return bounded(below(path, "@items")).value_or(Size{});
  }

  Estimate join(const Arguments& arguments) const {
    const Size list = arguments.sizes[0];
    Size total = exactly(0);
    if (!type(arguments.ids[0]).parameters().empty()) {
      const Size item = item_size(arguments);
      total = {saturated_multiply(list.min, item.min), saturated_multiply(list.max, item.max)};
    }
    if (arguments.sizes.size() > 1) {
      const Size separator = arguments.sizes[1];
      total.min = saturated_add(total.min,
                                saturated_multiply(separator.min, list.min > 0 ? list.min - 1 : 0));
      total.max = saturated_add(total.max,
                                saturated_multiply(separator.max, list.max > 0 ? list.max - 1 : 0));
    }
    return sized(scan(total.max), total);
  }

  /// At worst the smallest pieces are replaced by the largest text, as often as they fit.
  static Size replaced(const std::vector<Size>& sizes) {
    const auto often = [](std::uint64_t size, std::uint64_t piece) {
      return scaled(size, 1.0 / static_cast<double>(piece));
    };
    const Size &text = sizes[0], &from = sizes[1], &to = sizes[2];
    Size made = {text.min, text.max};
    if (from.min == 0)
      made.max = saturated_add(text.max, saturated_multiply(saturated_add(text.max, 1), to.max));
    else if (to.max > from.min)
      made.max = saturated_multiply(often(text.max, from.min), to.max);
    if (from.max == 0)
      made.min = saturated_add(text.min, saturated_multiply(saturated_add(text.min, 1), to.min));
    else if (from.max > to.min)
      made.min = saturated_multiply(often(text.min, from.max), to.min);
    return made;
  }

  std::optional<std::int64_t> literal(const Arguments& arguments, std::size_t i) const {
    if (i >= arguments.ids.size()) return std::nullopt;
    const AstNode& node = ast_.node(arguments.ids[i]);
    if (node.kind != NodeKind::constant || !ast_.constant(node).is(Kind::integer))
      return std::nullopt;
    return ast_.constant(node).as_integer();
  }

  const Environment& environment_;
  const Ast& ast_;
  const CheckedAst& checked_;
  const SizeBound& bound_;
  std::unordered_map<std::uint32_t, Estimate> locals_;
};

}  // namespace

std::uint64_t estimate_cost(const Environment& environment, const Ast& ast,
                            const CheckedAst& checked, const SizeBound& bound) {
  return Estimator(environment, ast, checked, bound).visit(ast.root).cost;
}

}  // namespace dibs::cel
