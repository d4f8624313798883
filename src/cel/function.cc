#include "cel/function.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::cel {

namespace {

std::uint32_t bit(Kind kind) { return 1u << static_cast<unsigned>(kind); }

std::uint32_t kinds_of(const Type& type) {
  switch (type.kind()) {
    case TypeKind::null:
      return bit(Kind::null);
    case TypeKind::boolean:
      return bit(Kind::boolean);
    case TypeKind::integer:
      return bit(Kind::integer);
    case TypeKind::uinteger:
      return bit(Kind::uinteger);
    case TypeKind::real:
      return bit(Kind::real);
    case TypeKind::string:
      return bit(Kind::string);
    case TypeKind::bytes:
      return bit(Kind::bytes);
    case TypeKind::duration:
      return bit(Kind::duration);
    case TypeKind::timestamp:
      return bit(Kind::timestamp);
    case TypeKind::list:
      return bit(Kind::list);
    case TypeKind::map:
      return bit(Kind::map);
    case TypeKind::type:
      return bit(Kind::type);
    case TypeKind::opaque:
      return type.is_optional() ? bit(Kind::optional) : bit(Kind::opaque);
    case TypeKind::object:
      return bit(Kind::opaque);
    default:
      return ~bit(Kind::error);
  }
}

void collect_parameters(const Type& type, std::vector<std::string>& names) {
  if (type.is(TypeKind::parameter) &&
      std::find(names.begin(), names.end(), type.name()) == names.end())
    names.push_back(type.name());
  for (const Type& inner : type.parameters()) collect_parameters(inner, names);
}

}  // namespace

ParameterMatch::ParameterMatch(const Type& type) : kinds_(kinds_of(type)) {
  if (kinds_ == bit(Kind::opaque)) name_ = type.name();
  if (!type.is(TypeKind::list) && !type.is(TypeKind::map)) return;
  const auto any = [](const Type& inner) {
    return inner.is_dyn() || inner.is(TypeKind::parameter) || inner.is(TypeKind::list) ||
           inner.is(TypeKind::map);
  };
  if (std::all_of(type.parameters().begin(), type.parameters().end(), any)) return;
  for (const Type& inner : type.parameters()) inner_.emplace_back(inner);
}

bool ParameterMatch::accepts_content(const Value& value) const {
  if (value.is(Kind::list)) {
    const List& list = value.as_list();
    return list.size() == 0 || inner_[0].accepts(list.at(0));
  }
  const Map& map = value.as_map();
  return map.size() == 0 ||
         (inner_[0].accepts(map.key_at(0)) && inner_[1].accepts(map.value_at(0)));
}

bool Overload::accepts(const Value* arguments, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    if (!matches[std::min(i, matches.size() - 1)].accepts(arguments[i])) return false;
  }
  return true;
}

bool Overload::accepts_or_fails(const Value* arguments, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    if (!arguments[i].is_error() && !matches[std::min(i, matches.size() - 1)].accepts(arguments[i]))
      return false;
  }
  return true;
}

bool Overload::catches_all() const {
  return !parameters.empty() && std::all_of(parameters.begin(), parameters.end(),
                                            [](const Type& type) { return type.is_dyn(); });
}

Overload make_overload(const Declaration& declaration) {
  Overload made;
  std::string_view text = declaration.signature;
  const std::size_t arrow = text.find("->");
  made.result = Type::parse(trim(text.substr(arrow + 2)));
  text = trim(text.substr(0, arrow));
  if (text.starts_with('.')) {
    made.receiver = true;
    text.remove_prefix(1);
  }
  if (text.ends_with("...")) {
    made.variadic = true;
    text.remove_suffix(3);
  }
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size() && !text.empty(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i == text.size() || (depth == 0 && text[i] == ',')) {
      made.parameters.push_back(Type::parse(trim(text.substr(begin, i - begin))));
      begin = i + 1;
    }
  }
  for (const Type& parameter : made.parameters) {
    made.matches.emplace_back(parameter);
    collect_parameters(parameter, made.type_parameters);
  }
  collect_parameters(made.result, made.type_parameters);
  made.call = declaration.call;
  made.cost = declaration.cost;
  return made;
}

}  // namespace dibs::cel
