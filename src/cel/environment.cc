#include "cel/environment.h"

#include "base/strings.h"
#include "cel/check/validators.h"
#include "cel/libraries/standard_library.h"

namespace dibs::cel {

Environment Environment::standard(const StandardOptions& options) {
  Environment made;
  add_standard_library(made, options);
  made.cost_by_overload();
  return made;
}

Environment Environment::over(const Environment& base) {
  Environment made;
  made.base_ = &base;
  made.options = base.options;
  made.time_zones_ = base.time_zones_;
  return made;
}

std::size_t Environment::variable(std::string name, Type type) {
  const auto [it, added] = variable_index_.emplace(name, variable_types_.size());
  if (added) {
    variable_names_.push_back(std::move(name));
    variable_types_.push_back(std::move(type));
  } else {
    variable_types_[it->second] = std::move(type);
  }
  return it->second;
}

void Environment::object(std::string type_name, std::map<std::string, Type> fields) {
  constructible(std::move(type_name), ObjectType{.fields = std::move(fields)});
}

void Environment::constructible(std::string type_name, ObjectType type) {
  objects_[std::move(type_name)] = std::move(type);
}

void Environment::object_family(std::string type_name, ObjectType type) {
  families_[std::move(type_name)] = std::move(type);
}

void Environment::function(std::string_view name, std::vector<Declaration> overloads) {
  for (const Declaration& declaration : overloads) overload(name, make_overload(declaration));
}

void Environment::overload(std::string_view name, Overload overload) {
  auto& slot = functions_[std::string(name)];
  if (slot == nullptr) {
    const Function* known = base_ == nullptr ? nullptr : base_->find_function(std::string(name));
    slot = known == nullptr ? std::make_unique<Function>() : std::make_unique<Function>(*known);
    slot->name = name;
  }
  slot->overloads.push_back(std::move(overload));
}

void Environment::cost_by_overload(std::string_view name) {
  for (auto& [each, function] : functions_) {
    if (name.empty() || each == name) function->cost_by_name = false;
  }
}

void Environment::type_name(std::string name, Type type) {
  types_[std::move(name)] = std::move(type);
}

const Function* Environment::find_function(const std::string& name) const {
  const auto found = functions_.find(name);
  if (found != functions_.end()) return found->second.get();
  return base_ == nullptr ? nullptr : base_->find_function(name);
}

std::ptrdiff_t Environment::find_variable(const std::string& name) const {
  const auto found = variable_index_.find(name);
  return found == variable_index_.end() ? -1 : static_cast<std::ptrdiff_t>(found->second);
}

const Type* Environment::find_type(const std::string& name) const {
  const auto found = types_.find(name);
  if (found != types_.end()) return &found->second;
  return base_ == nullptr ? nullptr : base_->find_type(name);
}

const ObjectType* Environment::find_object(const std::string& type_name) const {
  const auto found = objects_.find(type_name);
  if (found != objects_.end()) return &found->second;
  for (const auto& [name, type] : families_) {
    if (type_name.starts_with(name) &&
        (type_name.size() == name.size() || type_name[name.size()] == '.'))
      return &type;
  }
  return base_ == nullptr ? nullptr : base_->find_object(type_name);
}

std::vector<std::string> Environment::candidates(std::string_view name) const {
  if (name.starts_with('.')) return {std::string(name.substr(1))};
  std::vector<std::string> made;
  std::string_view scope = options.container;
  while (!scope.empty()) {
    made.push_back(cat(scope, ".", name));
    const std::size_t dot = scope.rfind('.');
    scope = dot == std::string_view::npos ? std::string_view() : scope.substr(0, dot);
  }
  made.emplace_back(name);
  return made;
}

Compilation Environment::compile(std::string_view source, const SizeBound& bound) const {
  Compilation made;
  const std::shared_ptr<const Ast> ast = parse(source, options.parser, made.issues);
  if (ast == nullptr) return made;
  CheckedAst checked = check(*this, *ast, made.issues);
  if (made.issues.empty()) validate(*this, *ast, checked, made.issues);
  sort_issues(made.issues);
  if (!made.issues.empty()) return made;
  made.type = checked.type;
  if (bound) made.estimated_cost = estimate_cost(*this, *ast, checked, bound);
  made.program = build_program(*ast, checked);
  return made;
}

}  // namespace dibs::cel
