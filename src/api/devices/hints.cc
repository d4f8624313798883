#include "api/devices/hints.h"

#include <algorithm>

#include "api/devices/selector_language.h"
#include "base/nearest.h"
#include "base/strings.h"
#include "cel/parse/parser.h"

namespace dibs::api {
namespace {

/// Longer lists of names help nobody.
constexpr std::size_t kMostListed = 8;

/// What part of a device an expression stands for.
struct Place {
  enum class Kind : char { other, device, attributes, capacity, attribute_names, capacity_names };
  Kind kind = Kind::other;
  std::string domain = {};
};

class Walk {
 public:
  Walk(const cel::Ast& ast, const DeviceNames& names) : ast_(ast), names_(names) {
    scope_.push_back({"device", {Place::Kind::device}});
  }

  std::vector<std::string> run() {
    visit(ast_.root);
    return std::move(notes_);
  }

 private:
  Place visit(cel::NodeId id) {
    if (id == cel::kNoNode) return {};
    const cel::AstNode& node = ast_.node(id);
    switch (node.kind) {
      case cel::NodeKind::ident:
        for (auto at = scope_.rbegin(); at != scope_.rend(); ++at) {
          if (at->first == ast_.name(node)) return at->second;
        }
        return {};
      case cel::NodeKind::select:
        return below(visit(ast_.child(node, 0)), ast_.name(node));
      case cel::NodeKind::call:
        return call(node);
      case cel::NodeKind::bind: {
        scope_.emplace_back(ast_.name(node), visit(ast_.child(node, 0)));
        Place made = visit(ast_.child(node, 1));
        scope_.pop_back();
        return made;
      }
      case cel::NodeKind::fold: {
        visit(ast_.child(node, 0));
        scope_.emplace_back(ast_.name(node), Place{});
        if (node.name2 != cel::kNoName) scope_.emplace_back(ast_.name(node.name2), Place{});
        for (std::size_t i = 1; i < node.count; ++i) visit(ast_.child(node, i));
        if (node.name2 != cel::kNoName) scope_.pop_back();
        scope_.pop_back();
        return {};
      }
      case cel::NodeKind::opt_map:
        visit(ast_.child(node, 0));
        scope_.emplace_back(ast_.name(node), Place{});
        visit(ast_.child(node, 1));
        scope_.pop_back();
        return {};
      default:
        for (std::size_t i = 0; i < node.count; ++i) visit(ast_.child(node, i));
        return {};
    }
  }

  /// The text of a constant, or nullptr.
  const cel::Value* constant_text(cel::NodeId id) const {
    const cel::AstNode& node = ast_.node(id);
    if (node.kind != cel::NodeKind::constant) return nullptr;
    const cel::Value& value = ast_.constant(node);
    return value.is(cel::Kind::string) ? &value : nullptr;
  }

  Place call(const cel::AstNode& node) {
    const std::string& name = ast_.name(node);
    std::vector<Place> places;
    for (std::size_t i = 0; i < node.count; ++i) places.push_back(visit(ast_.child(node, i)));
    if ((name == "_[_]" || name == "_[?_]") && node.count == 2) {
      const cel::Value* key = constant_text(ast_.child(node, 1));
      if (key != nullptr) return below(places[0], key->text());
      return {};
    }
    if (name == "@in" && node.count == 2) {
      if (const cel::Value* key = constant_text(ast_.child(node, 0))) below(places[1], key->text());
      return {};
    }
    if (name == "dyn" && node.count == 1) return places[0];
    return {};
  }

  Place below(const Place& place, std::string_view step) {
    switch (place.kind) {
      case Place::Kind::device:
        if (step == "attributes") return {Place::Kind::attributes};
        if (step == "capacity") return {Place::Kind::capacity};
        return {};
      case Place::Kind::attributes:
        check_domain(names_.attributes, names_.capacities, "attributes", step);
        return {Place::Kind::attribute_names, std::string(step)};
      case Place::Kind::capacity:
        check_domain(names_.capacities, names_.attributes, "capacities", step);
        return {Place::Kind::capacity_names, std::string(step)};
      case Place::Kind::attribute_names:
        check_id(names_.attributes, names_.capacities, "attribute", place.domain, step);
        return {};
      case Place::Kind::capacity_names:
        check_id(names_.capacities, names_.attributes, "capacity", place.domain, step);
        return {};
      default:
        return {};
    }
  }

  void check_domain(const DeviceNames::Domains& own, const DeviceNames::Domains& others,
                    std::string_view what, std::string_view domain) {
    if (own.contains(domain)) return;
    std::string text = cat("no device has ", what, " in the domain ", quoted(domain));
    std::vector<std::string> known;
    for (const auto& [name, ids] : own) known.push_back(name);
    if (others.contains(domain))
      append(text, "; it is a domain of ",
             &own == &names_.attributes ? "capacities" : "attributes");
    else
      append(text, suggestion(domain, known, "domains"));
    note(std::move(text));
  }

  void check_id(const DeviceNames::Domains& own, const DeviceNames::Domains& others,
                std::string_view what, std::string_view domain, std::string_view id) {
    const auto ids = own.find(domain);
    if (ids == own.end() || ids->second.contains(std::string(id))) return;
    std::string text =
        cat("no device has the ", what, " ", quoted(id), " in the domain ", quoted(domain));
    const auto other = others.find(domain);
    if (other != others.end() && other->second.contains(std::string(id)))
      append(text, "; it is ", what == "attribute" ? "a capacity" : "an attribute", ": device.",
             what == "attribute" ? "capacity" : "attributes", "[", quoted(domain), "].", id);
    else
      append(text, suggestion(id, {ids->second.begin(), ids->second.end()}, "names there"));
    note(std::move(text));
  }

  static std::string suggestion(std::string_view name, const std::vector<std::string>& known,
                                std::string_view what) {
    const std::vector<std::string> near = nearest(name, known);
    if (!near.empty()) {
      // Long names are near to much; only those beside the nearest are worth a word.
      constexpr std::size_t kFar = 64;
      const std::size_t best = edit_distance(name, near[0], kFar);
      std::vector<std::string> shown;
      for (const std::string& one : near) {
        if (edit_distance(name, one, kFar) <= best + 1) shown.push_back(quoted(one));
      }
      return cat("; did you mean ", join(shown, " or "), "?");
    }
    if (known.empty()) return "";
    std::vector<std::string> shown(
        known.begin(),
        known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kMostListed)));
    if (known.size() > kMostListed) shown.push_back("…");
    return cat("; ", what, ": ", join(shown, ", "));
  }

  void note(std::string text) {
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end())
      notes_.push_back(std::move(text));
  }

  const cel::Ast& ast_;
  const DeviceNames& names_;
  std::vector<std::pair<std::string, Place>> scope_;
  std::vector<std::string> notes_;
};

/// The text between the quotes behind `before`, or "".
std::string_view quoted_after(std::string_view message, std::string_view before) {
  const std::size_t at = message.find(before);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = message.substr(at + before.size());
  return rest.substr(0, rest.find('\''));
}

constexpr std::string_view kFunctions[] = {"device",
                                           "quantity",
                                           "isQuantity",
                                           "semver",
                                           "isSemver",
                                           "size",
                                           "int",
                                           "string",
                                           "double",
                                           "duration",
                                           "startsWith",
                                           "endsWith",
                                           "contains",
                                           "matches",
                                           "lowerAscii",
                                           "upperAscii",
                                           "split",
                                           "join",
                                           "replace",
                                           "trim",
                                           "substring",
                                           "indexOf",
                                           "charAt",
                                           "isGreaterThan",
                                           "isLessThan",
                                           "compareTo",
                                           "asInteger",
                                           "isInteger",
                                           "major",
                                           "minor",
                                           "patch",
                                           "orValue",
                                           "hasValue",
                                           "value",
                                           "includes",
                                           "asApproximateFloat",
                                           "add",
                                           "sub",
                                           "sign",
                                           "isSorted",
                                           "sum",
                                           "min",
                                           "max",
                                           "find",
                                           "findAll",
                                           "flatten",
                                           "distinct",
                                           "sort",
                                           "slice",
                                           "reverse",
                                           "lists.range",
                                           "sets.contains",
                                           "sets.equivalent",
                                           "sets.intersects",
                                           "exists",
                                           "exists_one",
                                           "all",
                                           "filter",
                                           "map"};

std::string undeclared(std::string_view name, const SelectorEnvironment& environment) {
  if (name == "includes") return "lists in attributes need the feature gate DRAListTypeAttributes";
  if (name == "attributes" || name == "capacity" || name == "driver" ||
      name == "allowMultipleAllocations")
    return cat("it belongs to the device: device.", name);
  const cel::Environment& language = selector_language(environment);
  std::vector<std::string> known;
  for (const std::string_view function : kFunctions) {
    // The macros are no functions, and known in every release.
    const bool macro = function == "device" || function == "exists" || function == "exists_one" ||
                       function == "all" || function == "filter" || function == "map";
    if (macro || language.find_function(std::string(function)) != nullptr)
      known.emplace_back(function);
  }
  const std::vector<std::string> near = nearest(name, known);
  if (!near.empty()) return cat("did you mean ", join(near, " or "), "?");
  return "the only variable is device; text stands in quotes";
}

std::string undefined(std::string_view name, const SelectorEnvironment& environment) {
  std::vector<std::string> known = {"attributes", "capacity", "driver"};
  const auto* device = selector_language(environment).find_object("kubernetes.DRADevice");
  const bool multiple = device != nullptr && device->fields.contains("allowMultipleAllocations");
  if (name == "allowMultipleAllocations" && !multiple)
    return "it needs the feature gate DRAConsumableCapacity and Kubernetes 1.34";
  if (multiple) known.emplace_back("allowMultipleAllocations");
  const std::vector<std::string> near = nearest(name, known);
  if (!near.empty()) return cat("did you mean ", join(near, " or "), "?");
  return cat("a device has ", join(known, ", "),
             "; attributes lie in domains: device.attributes[\"driver.example.com\"].model");
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

void DeviceNames::add(const DeviceInput& device) {
  for (const DeviceEntry& entry : device.attributes())
    attributes[std::string(entry.domain)].emplace(entry.id);
  for (const DeviceEntry& entry : device.capacities())
    capacities[std::string(entry.domain)].emplace(entry.id);
}

std::vector<std::string> unknown_names(std::string_view expression, const DeviceNames& names) {
  if (names.empty()) return {};
  SelectorEnvironment everything;
  everything.stored = true;
  std::vector<cel::Issue> issues;
  const auto ast = cel::parse(expression, selector_language(everything).options.parser, issues);
  if (ast == nullptr) return {};
  return Walk(*ast, names).run();
}

std::string hint_for(std::string_view message, const SelectorEnvironment& environment) {
  if (const auto name = quoted_after(message, "undefined field '"); !name.empty())
    return undefined(name, environment);
  if (const auto name = quoted_after(message, "undeclared reference to '"); !name.empty())
    return undeclared(name, environment);
  if (has(message, "found no matching overload")) {
    if (has(message, "kubernetes.Quantity"))
      return "amounts compare with quantity(\"1Gi\"): by ==, isGreaterThan, isLessThan, compareTo";
    if (has(message, "kubernetes.Semver"))
      return "versions compare with semver(\"1.2.3\"): by ==, isGreaterThan, isLessThan, compareTo";
    return "the types do not fit; convert one of them, or compare with a value of its type";
  }
  if (has(message, "cannot be range of a comprehension"))
    return "lists in attributes need the feature gate DRAListTypeAttributes";
  if (has(message, "must evaluate to bool"))
    return "a selector says true or false: compare the value with what it should be";
  if (has(message, "exceeds cost limit"))
    return "nested loops over attributes are what costs most; name the attributes instead";
  if (has(message, "token recognition error")) return "text must end with the quote it began with";
  return "";
}

std::string hint_for_error(std::string_view error) {
  if (error.starts_with("no such key: ")) {
    const std::string_view key = error.substr(13);
    return cat("not every device has it: ask has(… .", key, ") first, or write .?", key,
               ".orValue(…)");
  }
  if (has(error, "unsupported attribute value"))
    return "lists in attributes need the feature gate DRAListTypeAttributes";
  if (has(error, "could not be converted to bool"))
    return "a selector says true or false: compare the value with what it should be";
  return "";
}

IssuePlace place_of(std::string_view expression, const cel::Issue& issue) {
  IssuePlace made;
  std::size_t line_start = 0;
  std::size_t at = 0;
  for (std::uint32_t seen = 0; seen < issue.position && at < expression.size(); ++seen) {
    const bool ends_line = expression[at] == '\n';
    do {
      ++at;
    } while (at < expression.size() && (static_cast<unsigned char>(expression[at]) & 0xc0) == 0x80);
    ++made.column;
    if (!ends_line) continue;
    ++made.line;
    made.column = 1;
    line_start = at;
  }
  const std::size_t line_end = expression.find('\n', line_start);
  made.text = expression.substr(
      line_start, line_end == std::string_view::npos ? line_end : line_end - line_start);
  return made;
}

}  // namespace dibs::api
