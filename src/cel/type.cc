#include "cel/type.h"

#include <array>

#include "base/strings.h"

namespace dibs::cel {

namespace {

struct Spelling {
  TypeKind kind;
  std::string_view name;
  std::string_view full;
};

constexpr Spelling kSpellings[] = {
    {TypeKind::dyn, "dyn", "dyn"},
    {TypeKind::any, "any", "google.protobuf.Any"},
    {TypeKind::error, "!error!", "!error!"},
    {TypeKind::null, "null", "null_type"},
    {TypeKind::boolean, "bool", "bool"},
    {TypeKind::integer, "int", "int"},
    {TypeKind::uinteger, "uint", "uint"},
    {TypeKind::real, "double", "double"},
    {TypeKind::string, "string", "string"},
    {TypeKind::bytes, "bytes", "bytes"},
    {TypeKind::duration, "duration", "google.protobuf.Duration"},
    {TypeKind::timestamp, "timestamp", "google.protobuf.Timestamp"},
    {TypeKind::list, "list", "list"},
    {TypeKind::map, "map", "map"},
    {TypeKind::type, "type", "type"},
};

class TypeReader {
 public:
  explicit TypeReader(std::string_view text) : text_(text) {}

  Type read() {
    std::size_t end = at_;
    while (end < text_.size() &&
           std::string_view("(), ").find(text_[end]) == std::string_view::npos)
      ++end;
    const std::string_view name = text_.substr(at_, end - at_);
    at_ = end;
    std::vector<Type> parameters;
    if (take('(')) {
      do parameters.push_back(read());
      while (take(','));
      take(')');
    }
    if (name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z')
      return {TypeKind::parameter, std::string(name)};
    if (name == "optional") return Type::optional(parameters.empty() ? Type() : parameters[0]);
    for (const Spelling& spelling : kSpellings) {
      if (spelling.name == name || spelling.full == name)
        return {spelling.kind, "", std::move(parameters)};
    }
    // Kubernetes declares its own types as objects, though without fields, and those of networks as
    // opaque.
    const bool object = name.starts_with("kubernetes.");
    return {object ? TypeKind::object : TypeKind::opaque, std::string(name), std::move(parameters)};
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    skip();
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Type::Type(TypeKind kind) {
  // Types without content are made all the time by the checker: one node for each kind.
  static const auto* const shared = [] {
    auto* made = new std::array<std::shared_ptr<const Data>, 32>;
    for (std::size_t i = 0; i < made->size(); ++i)
      (*made)[i] = std::make_shared<const Data>(Data{static_cast<TypeKind>(i), "", {}});
    return made;
  }();
  data_ = (*shared)[static_cast<std::size_t>(kind)];
}

Type::Type(TypeKind kind, std::string name, std::vector<Type> parameters)
    : data_(std::make_shared<const Data>(Data{kind, std::move(name), std::move(parameters)})) {}

Type Type::parse(std::string_view text) { return TypeReader(text).read(); }

bool operator==(const Type& a, const Type& b) {
  if (a.data_ == b.data_) return true;
  return a.kind() == b.kind() && a.name() == b.name() && a.parameters() == b.parameters();
}

std::string Type::show(bool full) const {
  std::string out;
  if (is(TypeKind::opaque) || is(TypeKind::object) || is(TypeKind::parameter)) {
    out = name();
  } else {
    for (const Spelling& spelling : kSpellings) {
      if (spelling.kind == kind()) out = full ? spelling.full : spelling.name;
    }
  }
  if (parameters().empty()) return out;
  out += '(';
  for (std::size_t i = 0; i < parameters().size(); ++i)
    append(out, i == 0 ? "" : ", ", parameter(i).show(full));
  out += ')';
  return out;
}

}  // namespace dibs::cel
