#pragma once
// Builds containers of a known size without the checks and the growth of Value's mutators. For the
// readers of this library, and for api/merge, which makes many small objects in every write.

#include <cstddef>
#include <span>
#include <string_view>

#include "json/value.h"

namespace dibs::json {

class Builder {
 public:
  /// An empty container with room for `room` entries.
  static Value make(Kind kind, std::size_t room);
  /// The new, null item at the end. It stays where it is while the array has room.
  static Value* push(Value& array);
  /// The new, null value of the key, which stays where it is while the object has room; or nullptr
  /// when the key is there already.
  static Value* add(Value& object, Value key);
  /// As add, of a key that the object is known not to have.
  static Value* add_new(Value& object, Value key);
  /// An object of these members, whose keys differ. They are moved from: what is left has null for
  /// its key.
  static Value take(std::span<Member> members);

  static bool fits_inline(std::string_view text) { return text.size() <= Value::kInline; }
  static const Value& key(const Member& member) { return member.key_; }
  static void set_key(Member& member, Value key) { member.key_ = std::move(key); }
  static Value& value(Member& member) { return member.value_; }
};

}  // namespace dibs::json
