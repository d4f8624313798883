#pragma once
// Builds containers of a known size without the checks and the growth of Value's mutators. Of the
// json library alone.

#include <cstddef>
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

  static const Value& key(const Member& member) { return member.key_; }
  static void set_key(Member& member, Value key) { member.key_ = std::move(key); }
  static Value& value(Member& member) { return member.value_; }
};

}  // namespace dibs::json
