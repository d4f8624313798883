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

#include "cel/ast.h"
#include "cel/checker.h"
#include "cel/cost_estimate.h"
#include "cel/function.h"
#include "cel/parser.h"
#include "cel/program.h"
#include "cel/type.h"

namespace dibs::cel {

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
};

struct Compilation {
  std::shared_ptr<const Program> program;  // null when there are issues
  std::vector<Issue> issues;
  Type type;
  /// The worst cost, where bounds on sizes were given; see cost_estimate.h.
  std::uint64_t estimated_cost = 0;
};

class Environment {
 public:
  /// The standard library and macros.
  static Environment standard();
  /// Nothing at all.
  Environment() = default;

  EnvironmentOptions options;

  /// Variables are numbered in the order of their declaration; a second one of the name replaces
  /// the type. Returns the number.
  std::size_t variable(std::string name, Type type);
  /// Fields of an object type.
  void object(std::string type_name, std::map<std::string, Type> fields);
  void function(std::string_view name, std::vector<Declaration> overloads);
  void overload(std::string_view name, Overload overload);
  /// Marks all functions so far as those of the standard library.
  void end_of_standard_library();
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
  const std::map<std::string, Type>* find_object(const std::string& type_name) const;
  /// The names that a name may stand for, seen from the container, best first.
  std::vector<std::string> candidates(std::string_view name) const;

 private:
  std::unordered_map<std::string, std::unique_ptr<Function>> functions_;
  std::unordered_map<std::string, std::size_t> variable_index_;
  std::vector<Type> variable_types_;
  std::vector<std::string> variable_names_;
  std::unordered_map<std::string, Type> types_;
  std::unordered_map<std::string, std::map<std::string, Type>> objects_;
};

}  // namespace dibs::cel
