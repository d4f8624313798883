#pragma once
// Functions: what the checker needs to know of them, and how to call them.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cel/type.h"
#include "cel/value.h"

namespace dibs::cel {

/// Called with arguments of the kinds that the signature asks for, never with errors.
using Implementation = Value (*)(const Value* arguments, std::size_t count);
/// What a call costs, given its arguments and its result; any of them may be an error.
using CallCost = std::uint64_t (*)(const Value* arguments, std::size_t count, const Value& result);

/// Which values a parameter takes at run time: by kind, opaque ones also by name; lists and maps by
/// the first of what they hold, too.
class ParameterMatch {
 public:
  explicit ParameterMatch(const Type& type);
  bool accepts(const Value& value) const {
    return (kinds_ & (1u << static_cast<unsigned>(value.kind()))) != 0 &&
           (name_.empty() || value.as_opaque().type_name() == name_) &&
           (inner_.empty() || accepts_content(value));
  }

 private:
  bool accepts_content(const Value& value) const;

  std::uint32_t kinds_ = 0;
  std::string name_;
  std::vector<ParameterMatch> inner_;  // of an element, or of a key and a value; empty: any
};

struct Overload {
  bool receiver = false;
  /// The last parameter may be repeated.
  bool variadic = false;
  std::vector<Type> parameters;
  Type result;
  /// Names of the type parameters in them, each once.
  std::vector<std::string> type_parameters;
  std::vector<ParameterMatch> matches;
  Implementation call = nullptr;
  /// In the place of `call`, where the function needs more than its arguments.
  std::function<Value(const Value* arguments, std::size_t count)> bound;
  CallCost cost = nullptr;  // null: 1

  bool is_implemented() const { return call != nullptr || bound != nullptr; }
  Value invoke(const Value* arguments, std::size_t count) const {
    return call != nullptr ? call(arguments, count) : bound(arguments, count);
  }
  bool takes(bool as_receiver, std::size_t count) const {
    return as_receiver == receiver &&
           (variadic ? count >= parameters.size() : count == parameters.size());
  }
  bool accepts(const Value* arguments, std::size_t count) const;
  /// Takes them, but for those that are errors.
  bool accepts_or_fails(const Value* arguments, std::size_t count) const;
  /// Takes anything: for the checker only where nothing else fits.
  bool catches_all() const;
};

struct Function {
  std::string name;
  std::vector<Overload> overloads;
  /// Kubernetes counts what it costs by its name; what the language itself and its extensions count
  /// goes by the overload, and is 1 where more than one may be meant.
  bool cost_by_name = true;
};

/// What an extension adds to a function: "string, int -> bool", with a leading dot where the first
/// parameter is the receiver, and "..." behind the last where it repeats.
struct Declaration {
  std::string_view signature;
  Implementation call = nullptr;
  CallCost cost = nullptr;
};

Overload make_overload(const Declaration& declaration);

/// Makes a value of an object type: `fields` are names and values in turn, none of them an error.
using Construct = Value (*)(const std::string& type, const Value* fields, std::size_t count);

}  // namespace dibs::cel
