#pragma once
// What an expression may refer to: variables, types, functions, macros.
//
//   Environment environment = Environment::standard();
//   add_strings(environment);                                     // see extensions.h
//   environment.variable("name", Type::parse("string"));
//   Compilation compiled = environment.compile("name.startsWith('x')");
//   Value result = compiled.program->evaluate({{Value::borrow(name)}}).value;
//
// Filled by one thread, then read by any number of them. Programs refer to the environment that
// compiled them, which must outlive them.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cel/check/checker.h"
#include "cel/cost/cost_estimate.h"
#include "cel/evaluate/program.h"
#include "cel/function.h"
#include "cel/libraries/format.h"
#include "cel/libraries/time_zones.h"
#include "cel/parse/ast.h"
#include "cel/parse/parser.h"
#include "cel/type.h"

namespace dibs::cel {

/// In what releases of the standard library differ.
struct StandardOptions {
  bool mixed_order = true;      // 1 < 2u and 1 < 2.5 are declared
  bool matches_counts = false;  // matches(a, b) costs what a.matches(b) does
  bool affix_counts = false;    // startsWith and endsWith cost by what is looked for, not where
};

struct EnvironmentOptions {
  ParserOptions parser;
  /// Names are looked up in here and its parents first: "a.b".
  std::string container;
  /// Elements of list and map literals must be of one type.
  bool homogeneous_literals = false;
  /// Type errors wait until evaluation.
  bool unchecked = false;
  /// Durations, timestamps, patterns and formats that are literals are checked when compiled.
  bool check_literals = false;
  /// How format() writes, see libraries/format.h; set by the version of the strings extension.
  FormatStyle format_style = FormatStyle::plain;
  /// The Go implementation, and so Kubernetes, departs from the language in places: of keys that
  /// are repeated in a map literal the last one counts, keys may be of any type, and an optional
  /// step into what has neither fields nor elements leads nowhere; the language has errors there.
  bool as_in_go = false;
  /// x.or(y) and x.orValue(y) are x where that is no optional, rather than an error.
  bool or_of_anything = false;
};

struct Compilation {
  std::shared_ptr<const Program> program;  // null when there are issues
  std::vector<Issue> issues;
  Type type;
  /// The worst cost, where bounds on sizes were given; see cost_estimate.h.
  std::uint64_t estimated_cost = 0;
};

struct ObjectType {
  std::map<std::string, Type> fields = {};
  bool open = false;              // has every other field, too, of type dyn
  Construct construct = nullptr;  // for Name{field: value}; null: expressions cannot make one
};

class Environment {
 public:
  /// The standard library and macros.
  static Environment standard(const StandardOptions& options = {});
  /// Nothing at all.
  Environment() = default;
  /// Has everything of `base`, which has no variables and must outlive it. What is added here is
  /// not seen there.
  static Environment over(const Environment& base);

  EnvironmentOptions options;

  /// Variables are numbered in the order of their declaration; a second one of the name replaces
  /// the type. Returns the number.
  std::size_t variable(std::string name, Type type);
  /// Fields of an object type.
  void object(std::string type_name, std::map<std::string, Type> fields);
  /// An object type that expressions may make.
  void constructible(std::string type_name, ObjectType type);
  /// The same of it, and of all whose names begin with its name and a dot.
  void object_family(std::string type_name, ObjectType type);
  void function(std::string_view name, std::vector<Declaration> overloads);
  void overload(std::string_view name, Overload overload);
  /// What a function, or every function so far, costs goes by the overload; see Function.
  void cost_by_overload(std::string_view name = {});
  /// Zones for this environment; see time_zones.h. Before the first evaluation.
  void time_zones(std::shared_ptr<const TimeZones> zones) { *time_zones_ = std::move(zones); }
  /// For functions that ask for them: what time_zones() was given, once it was.
  std::shared_ptr<const std::shared_ptr<const TimeZones>> time_zones() const { return time_zones_; }
  /// A name that stands for a type in expressions.
  void type_name(std::string name, Type type);

  /// `bound`: where set, the cost is estimated.
  Compilation compile(std::string_view source, const SizeBound& bound = {}) const;

  // For the checker.
  const Function* find_function(const std::string& name) const;
  /// -1: none.
  std::ptrdiff_t find_variable(const std::string& name) const;
  const Type& variable_type(std::size_t index) const { return variable_types_[index]; }
  const std::string& variable_name(std::size_t index) const { return variable_names_[index]; }
  std::size_t variables() const { return variable_types_.size(); }
  const Type* find_type(const std::string& name) const;
  const ObjectType* find_object(const std::string& type_name) const;
  /// The names that a name may stand for, seen from the container, best first.
  std::vector<std::string> candidates(std::string_view name) const;

 private:
  const Environment* base_ = nullptr;
  std::shared_ptr<std::shared_ptr<const TimeZones>> time_zones_ =
      std::make_shared<std::shared_ptr<const TimeZones>>();
  std::unordered_map<std::string, std::unique_ptr<Function>> functions_;
  std::unordered_map<std::string, std::size_t> variable_index_;
  std::vector<Type> variable_types_;
  std::vector<std::string> variable_names_;
  std::unordered_map<std::string, Type> types_;
  std::unordered_map<std::string, ObjectType> objects_;
  std::map<std::string, ObjectType> families_;
};

}  // namespace dibs::cel
