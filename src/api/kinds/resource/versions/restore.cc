#include "api/kinds/resource/versions/restore.h"

namespace dibs::api {
namespace {

Value restore_object(const Value& existing, const Value& shown, const Value& wanted) {
  Value out = wanted;
  for (const auto& [key, value] : existing.members()) {
    const Value* seen = shown.find(key);
    const Value* sent = wanted.find(key);
    if (!seen) {
      if (!sent) out.set(key, value);
    } else if (sent) {
      Value restored = restore_hidden(value, *seen, *sent);
      if (!restored.same_node(*sent)) out.set(key, std::move(restored));
    }
  }
  return out;
}

const Value* named(const Value& list, std::string_view name) {
  for (const Value& item : list.items()) {
    if (item["name"].as_string() == name) return &item;
  }
  return nullptr;
}

Value restore_list(const Value& existing, const Value& shown, const Value& wanted) {
  if (existing.size() != shown.size()) return wanted;
  Value out = Value::array();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Value& item = wanted[i];
    std::string_view name = item["name"].as_string();
    const Value* before = nullptr;
    const Value* seen = nullptr;
    if (!name.empty()) {
      before = named(existing, name);
      seen = named(shown, name);
    } else if (wanted.size() == existing.size()) {
      before = &existing[i];
      seen = &shown[i];
    }
    out.push(before && seen ? restore_hidden(*before, *seen, item) : item);
  }
  return out;
}

}  // namespace

Value restore_hidden(const Value& existing, const Value& shown, const Value& wanted) {
  if (existing == shown) return wanted;
  if (wanted == shown) return existing;
  if (existing.is_object() && shown.is_object() && wanted.is_object())
    return restore_object(existing, shown, wanted);
  if (existing.is_array() && shown.is_array() && wanted.is_array())
    return restore_list(existing, shown, wanted);
  return wanted;
}

}  // namespace dibs::api
