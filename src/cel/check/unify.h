#pragma once
// Substitutions for type parameters. Of the checker alone.

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cel/type.h"

namespace dibs::cel {

class Unifier {
 public:
  /// True when a value of type `from` may go where `to` is asked for; parameters get what makes it
  /// so. Nothing changes when false.
  bool assignable(const Type& to, const Type& from);
  bool assignable(const std::vector<Type>& to, const std::vector<Type>& from);

  /// With parameters replaced by what is known; free ones become dyn when asked for.
  Type resolve(const Type& type, bool free_to_dyn) const;
  /// A parameter that stands for anything yet. Their numbers are visible in messages, so they are
  /// made in the order of the reference implementation, also where only it needs one: skip().
  Type fresh();
  void skip(std::size_t count) { next_ += count; }
  std::size_t made() const { return next_; }
  /// The type with its own parameters replaced by fresh ones, the same for the same name.
  Type instantiate(const Type& type, std::unordered_map<std::string, Type>& names);

 private:
  bool try_assign(const Type& to, const Type& from);
  bool try_assign(const std::vector<Type>& to, const std::vector<Type>& from);
  bool substitute(const Type& type, const Type& parameter, bool& has);
  bool occurs_in(const std::string& parameter, const Type& type) const;
  void set(const std::string& parameter, const Type& type);
  bool keep_or_undo(bool keep);

  std::unordered_map<std::string, Type> known_;
  /// What stood there before each change, so that a failed attempt can be taken back.
  std::vector<std::pair<std::string, std::optional<Type>>> changes_;
  std::size_t next_ = 0;
};

/// The one of two compatible types that accepts more.
Type most_general(const Type& a, const Type& b);

}  // namespace dibs::cel
