#include "cel/check/unify.h"

#include "base/strings.h"

namespace dibs::cel {

namespace {

bool is_wild(const Type& type) { return type.is_dyn() || type.is(TypeKind::error); }

/// True when `a` accepts all that `b` does.
bool as_general(const Type& a, const Type& b) {
  if (a.is_dyn() || a.is(TypeKind::parameter)) return true;
  if (b.is_dyn() || b.is(TypeKind::parameter)) return false;
  if (a.kind() != b.kind() || a.name() != b.name()) return false;
  if (a.is(TypeKind::type)) return true;
  if (a.parameters().size() != b.parameters().size()) return false;
  for (std::size_t i = 0; i < a.parameters().size(); ++i) {
    if (!as_general(a.parameter(i), b.parameter(i))) return false;
  }
  return true;
}

bool takes_null(const Type& type) {
  switch (type.kind()) {
    case TypeKind::null:
    case TypeKind::duration:
    case TypeKind::timestamp:
    case TypeKind::opaque:
    case TypeKind::object:
      return true;
    default:
      return false;
  }
}

}  // namespace

Type most_general(const Type& a, const Type& b) {
  // What is compatible with null has null among its values.
  if (b.is(TypeKind::null)) return a;
  return as_general(a, b) ? a : b;
}

/// Would the parameter stand for something that holds the parameter itself?
bool Unifier::occurs_in(const std::string& parameter, const Type& type) const {
  if (type.is(TypeKind::parameter)) {
    if (type.name() == parameter) return true;
    const auto found = known_.find(type.name());
    return found != known_.end() && occurs_in(parameter, found->second);
  }
  for (const Type& inner : type.parameters()) {
    if (occurs_in(parameter, inner)) return true;
  }
  return false;
}

void Unifier::set(const std::string& parameter, const Type& type) {
  const auto found = known_.find(parameter);
  if (found == known_.end()) {
    changes_.emplace_back(parameter, std::nullopt);
    known_.emplace(parameter, type);
  } else {
    changes_.emplace_back(parameter, found->second);
    found->second = type;
  }
}

bool Unifier::keep_or_undo(bool keep) {
  for (; !keep && !changes_.empty(); changes_.pop_back()) {
    auto& [parameter, before] = changes_.back();
    if (before)
      known_[parameter] = *before;
    else
      known_.erase(parameter);
  }
  changes_.clear();
  return keep;
}

/// Whether `type` may stand for `parameter`; `has` says that something stood for it before.
bool Unifier::substitute(const Type& type, const Type& parameter, bool& has) {
  has = true;
  if (type == parameter) return true;
  const auto found = known_.find(parameter.name());
  if (found != known_.end()) {
    const Type before = found->second;
    if (type == before) return true;
    if (!try_assign(type, before)) return false;
    const Type general = most_general(type, before);
    if (!occurs_in(parameter.name(), general)) set(parameter.name(), general);
    return true;
  }
  has = false;
  if (occurs_in(parameter.name(), type)) return false;
  set(parameter.name(), type);
  return true;
}

bool Unifier::try_assign(const Type& to, const Type& from) {
  bool has = false;
  if (from.is(TypeKind::parameter)) {
    if (substitute(to, from, has)) return true;
    if (has) return false;
  }
  if (to.is(TypeKind::parameter)) return substitute(from, to, has);
  if (is_wild(to) || is_wild(from)) return true;
  if (to.is(TypeKind::null)) return takes_null(from);
  if (from.is(TypeKind::null)) return takes_null(to);
  if (to.kind() != from.kind()) return false;
  if (to.is(TypeKind::type)) return true;
  return to.name() == from.name() && try_assign(to.parameters(), from.parameters());
}

bool Unifier::try_assign(const std::vector<Type>& to, const std::vector<Type>& from) {
  if (to.size() != from.size()) return false;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!try_assign(to[i], from[i])) return false;
  }
  return true;
}

bool Unifier::assignable(const Type& to, const Type& from) {
  return keep_or_undo(try_assign(to, from));
}

bool Unifier::assignable(const std::vector<Type>& to, const std::vector<Type>& from) {
  return keep_or_undo(try_assign(to, from));
}

Type Unifier::resolve(const Type& type, bool free_to_dyn) const {
  if (type.is(TypeKind::parameter)) {
    const auto found = known_.find(type.name());
    if (found != known_.end()) return resolve(found->second, free_to_dyn);
    return free_to_dyn ? Type() : type;
  }
  if (type.parameters().empty()) return type;
  std::vector<Type> parameters;
  for (const Type& inner : type.parameters()) parameters.push_back(resolve(inner, free_to_dyn));
  return {type.kind(), type.name(), std::move(parameters)};
}

Type Unifier::fresh() { return {TypeKind::parameter, cat("_var", next_++)}; }

Type Unifier::instantiate(const Type& type, std::unordered_map<std::string, Type>& names) {
  if (type.is(TypeKind::parameter)) {
    const auto found = names.find(type.name());
    if (found != names.end()) return found->second;
    return names.emplace(type.name(), fresh()).first->second;
  }
  if (type.parameters().empty()) return type;
  std::vector<Type> parameters;
  for (const Type& inner : type.parameters()) parameters.push_back(instantiate(inner, names));
  return {type.kind(), type.name(), std::move(parameters)};
}

}  // namespace dibs::cel
