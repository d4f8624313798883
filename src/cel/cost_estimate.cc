#include "cel/cost_estimate.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "cel/cost.h"
#include "cel/environment.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kCidrBytes = 32;
constexpr std::uint64_t kIncludesCost = 48;

/// What a node costs, how large its value may be, and where that came from.
struct Estimate {
  std::uint64_t cost = 0;
  std::optional<std::uint64_t> size;
  ValuePath path;
};

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
    case TypeKind::null:
      return true;
    default:
      return false;
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
        return {1, {}, {environment_.variable_name(facts.index)}};
      case Reference::type:
        return {1, {}, {}};
      default:
        break;
    }
    switch (node.kind) {
      case NodeKind::constant:
        return {0, cost_size(ast_.constant(node)), {}};
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
        return bind(facts.slot, visit(ast_.child(node, 0)), ast_.child(node, 1));
      case NodeKind::opt_map:
        return opt_map(id, node);
      default:
        return {};
    }
  }

 private:
  const Type& type(NodeId id) const { return checked_.nodes[id].type; }

  std::uint64_t size(const Estimate& of, NodeId id) const {
    if (of.size) return *of.size;
    if (!of.path.empty() && bound_) {
      if (const std::optional<std::uint64_t> known = bound_(of.path)) return *known;
    }
    return is_scalar(type(id)) ? 1 : kUnknown;
  }

  Estimate select(const AstNode& node) {
    const NodeId operand = ast_.child(node, 0);
    Estimate made = visit(operand);
    made.size.reset();
    if (node.test_only) {
      made.path.clear();
      return made;
    }
    if (!made.path.empty()) made.path.push_back(ast_.name(node));
    const Type& of = type(operand);
    const bool counts =
        node.optional || of.is(TypeKind::map) || of.is(TypeKind::object) || of.is_optional();
    if (counts) made.cost = saturated_add(made.cost, 1);
    return made;
  }

  Estimate aggregate(const AstNode& node) {
    const bool list = node.kind == NodeKind::list;
    Estimate made{list ? kListCost : kMapCost, list ? node.count : node.count / 2, {}};
    for (std::size_t i = 0; i < node.count; ++i)
      made.cost = saturated_add(made.cost, visit(ast_.child(node, i)).cost);
    return made;
  }

  Estimate bind(std::uint32_t slot, Estimate bound, NodeId body) {
    const std::uint64_t cost = saturated_add(kListCost, bound.cost);
    locals_[slot] = std::move(bound);
    Estimate made = visit(body);
    made.cost = saturated_add(made.cost, cost);
    return made;
  }

  /// As its expansion: t.hasValue() ? optional.of(bind(x, t.value(), body)) : optional.none().
  Estimate opt_map(NodeId id, const AstNode& node) {
    const Estimate target = visit(ast_.child(node, 0));
    Estimate bound = target;
    bound.cost = saturated_add(target.cost, 1);
    Estimate made = bind(checked_.nodes[id].slot, std::move(bound), ast_.child(node, 1));
    made.cost = std::max<std::uint64_t>(saturated_add(made.cost, node.flat ? 0 : 1), 1);
    made.cost = sum({made.cost, target.cost, 1});
    made.path.clear();
    return made;
  }

  void set_loop_variables(NodeId id, const AstNode& node, const Estimate& range) {
    const Type& over = type(ast_.child(node, 0));
    const auto below = [&](std::string_view step) {
      Estimate made;
      if (!range.path.empty()) {
        made.path = range.path;
        made.path.emplace_back(step);
      }
      return made;
    };
    const NodeFacts& facts = checked_.nodes[id];
    const bool map = over.is(TypeKind::map);
    if (node.name2 == kNoName) {
      locals_[facts.slot] = below(map ? "@keys" : "@items");
      return;
    }
    locals_[facts.slot] = map ? below("@keys") : Estimate{};
    locals_[facts.slot2] = below(map ? "@values" : "@items");
  }

  Estimate fold(NodeId id, const AstNode& node) {
    const NodeId range_id = ast_.child(node, 0);
    const Estimate range = visit(range_id);
    const std::uint64_t n = size(range, range_id);
    set_loop_variables(id, node, range);
    const auto cost_of = [&](std::size_t i) {
      return ast_.child(node, i) == kNoNode ? 0 : visit(ast_.child(node, i)).cost;
    };
    const std::uint64_t predicate = cost_of(1);
    const std::uint64_t transform = cost_of(2);
    std::uint64_t init = 0;
    std::uint64_t step = 0;
    std::uint64_t result = 1;
    Estimate made;
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
        break;
    }
    made.cost = sum({range.cost, init, saturated_multiply(n, step), result});
    if (init > 0) made.size = n;
    if (node.fold != Fold::sort_by) return made;
    // bind(list, list.sortByKeys(list.map(x, key)))
    made.cost = sum({made.cost, kListCost, 2, pairs(n, element(type(range_id)))});
    return made;
  }

  static Type element(const Type& list) {
    return list.is(TypeKind::list) ? list.parameter(0) : Type();
  }

  /// Every element with every other, twice; text is read as well.
  static std::uint64_t pairs(std::uint64_t n, const Type& element) {
    const std::uint64_t square = saturated_multiply(n, n);
    return sum(
        {1, kListCost, is_text(element) ? scaled(square, 2.1) : saturated_multiply(square, 2)});
  }

  struct Arguments {
    std::vector<NodeId> ids;
    std::vector<Estimate> estimates;
    std::vector<std::uint64_t> sizes;
  };

  Estimate call(NodeId id, const AstNode& node) {
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
    if (name == "_&&_" || name == "_||_") return {cost, {}, {}};
    if (name == "_?_:_") {
      const std::uint64_t branches =
          std::max(arguments.estimates[1].cost, arguments.estimates[2].cost);
      return {saturated_add(arguments.estimates[0].cost, branches),
              std::max(arguments.sizes[1], arguments.sizes[2]),
              {}};
    }
    const std::string& function = facts.function == nullptr ? name : facts.function->name;
    Estimate made = own(function, node, facts, arguments);
    made.cost = saturated_add(made.cost, cost);
    return made;
  }

  /// Of the call itself, without its arguments.
  Estimate own(std::string_view name, const AstNode& node, const NodeFacts& facts,
               const Arguments& arguments) {
    const auto& sizes = arguments.sizes;
    const auto scan = [](std::uint64_t size, double times = 1) {
      return scaled(size, times * kScanFactor);
    };
    const auto any_overload = [&](auto test) {
      return std::any_of(facts.overloads.begin(), facts.overloads.end(),
                         [&](const Overload* overload) { return test(*overload); });
    };
    const bool text_overload = any_overload(
        [](const Overload& o) { return !o.parameters.empty() && is_text(o.parameters[0]); });
    if (name == "_==_" || name == "_!=_") {
      const Type& left = type(arguments.ids[0]);
      if (left.is(TypeKind::opaque) && !left.is_optional() && left == type(arguments.ids[1]) &&
          left.name() != "kubernetes.URL")
        return {1, 1, {}};
      return {scan(std::min(sizes[0], sizes[1])), 1, {}};
    }
    if (is_one_of(name, {"_<_", "_<=_", "_>_", "_>=_"})) {
      const std::uint64_t other = facts.overloads.size() > 1 || !text_overload ? 1 : 0;
      return {text_overload ? std::max(other, scan(std::min(sizes[0], sizes[1]))) : 1, 1, {}};
    }
    if (name == "_+_") {
      const std::uint64_t total = saturated_add(sizes[0], sizes[1]);
      const bool list =
          any_overload([](const Overload& o) { return o.parameters[0].is(TypeKind::list); });
      Estimate made{text_overload ? std::max<std::uint64_t>(scan(total), list ? 1 : 0) : 1, {}, {}};
      if (text_overload || list) made.size = total;
      return made;
    }
    if (name == "@in") {
      const bool list =
          any_overload([](const Overload& o) { return o.parameters[1].is(TypeKind::list); });
      const bool map =
          any_overload([](const Overload& o) { return o.parameters[1].is(TypeKind::map); });
      return {std::max<std::uint64_t>(list ? sizes[1] : 0, map ? 1 : 0), 1, {}};
    }
    if (name == "_[_]" || name == "_[?_]") {
      Estimate made{1, {}, arguments.estimates[0].path};
      if (!made.path.empty())
        made.path.emplace_back(type(arguments.ids[0]).is(TypeKind::list) ? "@items" : "@values");
      return made;
    }
    if (name == "dyn" || name == "optional.of")
      return {1,
              arguments.estimates[0].size ? arguments.estimates[0].size
                                          : std::optional<std::uint64_t>(sizes[0]),
              arguments.estimates[0].path};
    if (is_one_of(name, {"startsWith", "endsWith"})) return {scan(sizes[1]), 1, {}};
    if (name == "contains") return {saturated_multiply(scan(sizes[0]), scan(sizes[1])), 1, {}};
    if ((name == "matches" && node.receiver) || is_one_of(name, {"find", "findAll"}))
      return {
          saturated_multiply(scan(saturated_add(sizes[0], 1)), scaled(sizes[1], kPatternFactor)),
          name == "matches" ? 1 : sizes[0],
          {}};
    if (is_one_of(name, {"lowerAscii", "upperAscii", "substring", "trim", "url"}))
      return {scan(sizes[0]), sizes[0], {}};
    if (is_one_of(name, {"strings.quote", "quantity", "isQuantity", "semver", "isSemver", "cidr",
                         "isIP", "isCIDR", "isURL"}) ||
        (name == "ip" && !node.receiver))
      return {scan(sizes[0]), {}, {}};
    if ((name == "string" || name == "bytes") && !facts.overloads.empty()) {
      const bool reads = any_overload([&](const Overload& o) {
        return o.parameters[0].is(name == "string" ? TypeKind::bytes : TypeKind::string);
      });
      if (reads) return {scan(sizes[0]), sizes[0], {}};
      return {1, {}, {}};
    }
    if (name == "ip.isCanonical") return {scan(sizes[0], 2), 1, {}};
    if (name == "format") return {scan(sizes[0]), {}, {}};
    if (name == "replace") return {scan(sizes[0], 2), replaced(sizes), {}};
    if (name == "split") {
      const std::optional<std::int64_t> limit = literal(arguments, 2);
      const bool bounded = limit && *limit >= 0;
      return {scan(sizes[0], 2), bounded ? static_cast<std::uint64_t>(*limit) : sizes[0], {}};
    }
    if (name == "join") {
      // The size of elements is not known, so that of their concatenation is not.
      const bool list = type(arguments.ids[0]).is(TypeKind::list);
      return {scan(list ? kUnknown : sizes[0]), kUnknown, {}};
    }
    if (is_one_of(name, {"isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"})) {
      if (type(arguments.ids[0]).is(TypeKind::string)) return {scan(sizes[0]), 1, {}};
      const Type of = element(type(arguments.ids[0]));
      const std::uint64_t each = is_text(of) ? saturated_add(1, scan(kUnknown)) : 1;
      return {saturated_multiply(sizes[0], each), {}, {}};
    }
    return of_library(name, arguments);
  }

  Estimate of_library(std::string_view name, const Arguments& arguments) {
    const auto& sizes = arguments.sizes;
    if (name == "containsIP" || name == "containsCIDR") {
      std::uint64_t cost = scaled(kCidrBytes, kScanFactor);
      if (name == "containsCIDR") cost += scaled(kCidrBytes / 2, kScanFactor) + 1;
      if (type(arguments.ids[1]).is(TypeKind::string))
        cost = saturated_add(cost, scaled(sizes[1], kScanFactor));
      return {cost, 1, {}};
    }
    if (name == "includes") return {kIncludesCost, 1, {}};
    if (is_one_of(name, {"sets.contains", "sets.intersects", "sets.equivalent"})) {
      const std::uint64_t product = saturated_multiply(sizes[0], sizes[1]);
      return {sum({1, saturated_multiply(product, name == "sets.equivalent" ? 2 : 1)}), 1, {}};
    }
    const auto new_list = [](std::uint64_t size) {
      return Estimate{sum({1, kListCost, size}), size, {}};
    };
    if (name == "reverse") return new_list(sizes[0]);
    if (name == "slice") {
      const std::optional<std::int64_t> begin = literal(arguments, 1);
      const std::optional<std::int64_t> end = literal(arguments, 2);
      if (!begin || !end) return new_list(sizes[0]);
      const std::int64_t from = std::max<std::int64_t>(*begin, 0);
      return new_list(*end < from ? kUnknown : static_cast<std::uint64_t>(*end - from));
    }
    if (name == "lists.range") {
      const std::optional<std::int64_t> count = literal(arguments, 0);
      return new_list(count ? static_cast<std::uint64_t>(std::max<std::int64_t>(*count, 0))
                            : kUnknown);
    }
    if (name == "flatten") {
      const std::optional<std::int64_t> depth =
          sizes.size() > 1 ? literal(arguments, 1) : std::optional<std::int64_t>(1);
      return new_list(depth ? saturated_multiply(sizes[0], static_cast<std::uint64_t>(
                                                               std::max<std::int64_t>(*depth, 0)))
                            : kUnknown);
    }
    if (name == "distinct" || name == "sort")
      return {pairs(sizes[0], element(type(arguments.ids[0]))), sizes[0], {}};
    return {1, {}, {}};
  }

  /// At worst every code point is replaced.
  static std::uint64_t replaced(const std::vector<std::uint64_t>& sizes) {
    if (sizes[1] == 0)
      return saturated_add(sizes[0], saturated_multiply(saturated_add(sizes[0], 1), sizes[2]));
    return std::max(sizes[0], saturated_multiply(sizes[0], sizes[2]));
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
