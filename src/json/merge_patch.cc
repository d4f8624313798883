#include "base/strings.h"
#include "json/builder.h"
#include "json/patch.h"

namespace dibs::json {
namespace {

// Removing members one by one from a large object would take the square of their number.
constexpr std::size_t kFewRemovals = 16;

void remove_nulls_of(const Value& patch, Value& target) {
  std::size_t removals = 0;
  for (const auto& [key, value] : patch.members()) {
    if (value.is_null() && target.contains(key)) ++removals;
  }
  if (removals == 0) return;
  if (removals <= kFewRemovals) {
    for (const auto& [key, value] : patch.members()) {
      if (value.is_null()) target.erase(key);
    }
    return;
  }
  Value kept = Builder::make(Kind::object, target.size() - removals);
  for (const Member& member : target.members()) {
    const Value* change = patch.find(member.key());
    if (change != nullptr && change->is_null()) continue;
    *Builder::add(kept, Builder::key(member)) = member.value();
  }
  target = std::move(kept);
}

bool has_nulls(const Value& object) {
  for (const auto& [key, value] : object.members()) {
    if (value.is_null()) return true;
  }
  return false;
}

// Takes null members out of objects, also of those in lists, as upstream does with what is wholly
// new.
void prune_nulls(Value& root) {
  std::vector<Value*> left{&root};
  while (!left.empty()) {
    Value* next = left.back();
    left.pop_back();
    if (next->is_object()) {
      if (has_nulls(*next)) remove_nulls_of(Value(*next), *next);
      for (std::size_t i = 0; i < next->size(); ++i) {
        const Member& member = next->members().begin()[i];
        if (member.value().is_object() || member.value().is_array()) {
          left.push_back(&next->mut(member.key()));
        }
      }
    } else {
      for (std::size_t i = 0; i < next->size(); ++i) {
        if ((*next)[i].is_object() || (*next)[i].is_array()) left.push_back(&next->mut(i));
      }
    }
  }
}

bool anything_to_prune(const Value& root) {
  std::vector<const Value*> left{&root};
  while (!left.empty()) {
    const Value* next = left.back();
    left.pop_back();
    if (has_nulls(*next)) return true;
    for (const Value& item : next->items()) {
      if (item.is_object() || item.is_array()) left.push_back(&item);
    }
    for (const auto& [key, member] : next->members()) {
      if (member.is_object() || member.is_array()) left.push_back(&member);
    }
  }
  return false;
}

Value pruned(Value value) {
  // Most values have nothing to prune and stay shared.
  if (anything_to_prune(value)) prune_nulls(value);
  return value;
}

}  // namespace

Value apply_merge_patch(const Value& document, const Value& patch) {
  if (!patch.is_object()) return patch;
  if (!document.is_object()) return pruned(patch);
  Value result = document;
  std::vector<std::pair<Value*, const Value*>> left{{&result, &patch}};
  while (!left.empty()) {
    const auto [target, change] = left.back();
    left.pop_back();
    remove_nulls_of(*change, *target);
    std::vector<const Member*> both_objects;
    for (const Member& member : change->members()) {
      const Value& value = member.value();
      if (value.is_null()) continue;
      const Value& mine = (*target)[member.key()];
      if (!mine.is_object()) {
        target->set(member.key(), pruned(value));
      } else if (!value.is_object()) {
        target->set(member.key(), value);
      } else if (!value.empty()) {
        both_objects.push_back(&member);
      }
    }
    // Now that all members are there, their places are fixed.
    for (const Member* member : both_objects) {
      left.emplace_back(&target->mut(member->key()), &member->value());
    }
  }
  return result;
}

}  // namespace dibs::json
