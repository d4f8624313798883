#pragma once
// Static types, as the checker sees them. Types are gradual: dyn agrees with everything.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::cel {

enum class TypeKind : std::uint8_t {
  dyn,
  any,  // like dyn, but no range for a loop
  error,
  null,
  boolean,
  integer,
  uinteger,
  real,
  string,
  bytes,
  duration,
  timestamp,
  list,       // of parameters[0]
  map,        // parameters[0] to parameters[1]
  type,       // of parameters[0]
  opaque,     // name, with any parameters
  object,     // name, with declared fields
  parameter,  // name
};

class Type {
 public:
  /// dyn.
  Type() : Type(TypeKind::dyn) {}
  Type(TypeKind kind);  // without name and parameters
  Type(TypeKind kind, std::string name, std::vector<Type> parameters = {});
  static Type list(Type element) { return {TypeKind::list, "", {std::move(element)}}; }
  static Type map(Type key, Type value) {
    return {TypeKind::map, "", {std::move(key), std::move(value)}};
  }
  static Type of_type(Type type) { return {TypeKind::type, "", {std::move(type)}}; }
  static Type optional(Type content) {
    return {TypeKind::opaque, "optional_type", {std::move(content)}};
  }
  /// "map(K, list(int))": single capitals are parameters, unknown names opaque types, or objects
  /// where they begin with "kubernetes.".
  static Type parse(std::string_view text);

  TypeKind kind() const { return data_->kind; }
  bool is(TypeKind kind) const { return data_->kind == kind; }
  bool is_dyn() const { return is(TypeKind::dyn) || is(TypeKind::any); }
  bool is_optional() const { return is(TypeKind::opaque) && name() == "optional_type"; }
  const std::string& name() const { return data_->name; }
  const std::vector<Type>& parameters() const { return data_->parameters; }
  const Type& parameter(std::size_t i) const { return data_->parameters[i]; }
  friend bool operator==(const Type& a, const Type& b);

  /// As checker messages spell it: "map(string, any)".
  std::string str() const { return show(false); }
  /// With the names of the types that have one: "map(string, google.protobuf.Any)".
  std::string full_name() const { return show(true); }

 private:
  struct Data {
    TypeKind kind;
    std::string name;
    std::vector<Type> parameters;
  };
  std::string show(bool full) const;
  std::shared_ptr<const Data> data_;
};

}  // namespace dibs::cel
