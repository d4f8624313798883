#include "controllers/workload_objects.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::controllers {

std::string_view label_of(const Value& object, std::string_view key) {
  return object["metadata"]["labels"][key].as_string();
}

std::string_view annotation_of(const Value& object, std::string_view key) {
  return object["metadata"]["annotations"][key].as_string();
}

Time time_at(const Value& text) {
  const auto time = parse_rfc3339(text.as_string());
  return time.ok() ? *time : Time{};
}

Time created_at(const Value& object) { return time_at(object["metadata"]["creationTimestamp"]); }

bool controlled_by(const Value& object, const Value& owner) {
  const Value& controller = controller_of(object);
  return !controller.is_null() && controller["uid"].as_string() == uid_of(owner);
}

Value adoption_patch(const Value& child, const Value& owner) {
  return Value::object(
      {{"metadata", Value::object({{"uid", child["metadata"]["uid"]},
                                   {"ownerReferences", Value::array({owner_reference(owner)})}})}});
}

Value release_patch(const Value& child, const Value& owner) {
  const Value gone = Value::object({{"$patch", "delete"}, {"uid", owner["metadata"]["uid"]}});
  return Value::object({{"metadata", Value::object({{"uid", child["metadata"]["uid"]},
                                                    {"ownerReferences", Value::array({gone})}})}});
}

bool pod_active(const Value& pod) { return !is_pod_terminal(pod) && !is_deleting(pod); }

bool pod_terminating(const Value& pod) { return !is_pod_terminal(pod) && is_deleting(pod); }

bool pod_ready(const Value& pod) {
  return condition_in(pod["status"]["conditions"], "Ready")["status"].as_string() == "True";
}

Time pod_ready_since(const Value& pod) {
  return time_at(condition_in(pod["status"]["conditions"], "Ready")["lastTransitionTime"]);
}

bool pod_available(const Value& pod, std::int64_t min_ready_seconds, Time now) {
  if (!pod_ready(pod)) return false;
  if (min_ready_seconds <= 0) return true;
  const Time since = pod_ready_since(pod);
  return since != Time{} && since + std::chrono::seconds(min_ready_seconds) <= now;
}

std::optional<Duration> next_available(const std::vector<Value>& pods,
                                       std::int64_t min_ready_seconds, Time now) {
  std::optional<Duration> next;
  for (const Value& pod : pods) {
    if (!pod_ready(pod) || pod_available(pod, min_ready_seconds, now)) continue;
    const Duration wait = pod_ready_since(pod) + std::chrono::seconds(min_ready_seconds) - now;
    if (wait > Duration(0) && (!next || wait < *next)) next = wait;
  }
  return next;
}

Value pod_of_template(const Value& pod_template, const Value& owner) {
  const Value& from = pod_template["metadata"];
  Value metadata = Value::object();
  metadata.set("generateName", cat(name_of(owner), "-"));
  metadata.set("namespace", owner["metadata"]["namespace"]);
  for (const char* field : {"labels", "annotations", "finalizers"})
    if (!from[field].empty()) metadata.set(field, from[field]);
  metadata.set("ownerReferences", Value::array({owner_reference(owner)}));
  return Value::object({{"apiVersion", "v1"},
                        {"kind", "Pod"},
                        {"metadata", std::move(metadata)},
                        {"spec", pod_template["spec"]}});
}

const Value& condition_in(const Value& conditions, std::string_view type) {
  for (const Value& condition : conditions.items())
    if (condition["type"].as_string() == type) return condition;
  return json::null_value();
}

Value without_condition(const Value& conditions, std::string_view type) {
  Value kept = Value::array();
  for (const Value& condition : conditions.items())
    if (condition["type"].as_string() != type) kept.push(condition);
  return kept;
}

std::int64_t scaled_value(const Value& int_or_percent, std::int64_t total, bool round_up) {
  if (!int_or_percent.is_string()) return int_or_percent.as_int();
  const std::string_view text = int_or_percent.as_string();
  std::int64_t percent = 0;
  std::from_chars(text.data(), text.data() + text.size(), percent);
  return (percent * total + (round_up ? 99 : 0)) / 100;
}

Value sorted_members(const Value& value) {
  if (value.is_array()) {
    Value sorted = Value::array();
    for (const Value& item : value.items()) sorted.push(sorted_members(item));
    return sorted;
  }
  if (!value.is_object()) return value;
  std::vector<std::string> keys;
  for (const auto& [key, member] : value.members()) keys.emplace_back(key);
  std::sort(keys.begin(), keys.end());
  Value sorted = Value::object();
  for (const std::string& key : keys) sorted.set(key, sorted_members(value[key]));
  return sorted;
}

std::string safe_encode(std::uint32_t number) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string text = std::to_string(number);
  for (char& c : text) c = kLetters[static_cast<unsigned char>(c) % kLetters.size()];
  return text;
}

std::uint32_t fnv1_32(std::string_view bytes) {
  std::uint32_t hash = 2166136261U;
  for (const char c : bytes) hash = (hash * 16777619U) ^ static_cast<unsigned char>(c);
  return hash;
}

std::uint32_t fnv1a_32(std::string_view bytes, std::uint32_t basis) {
  std::uint32_t hash = basis;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

std::string template_hash(const Value& pod_template, std::optional<std::int64_t> collisions) {
  std::uint32_t hash = fnv1a_32(json::write(sorted_members(pod_template)));
  if (collisions) {
    // Eight bytes, low ones first, as a number is laid into a hash upstream.
    std::string bytes;
    const auto number = static_cast<std::uint64_t>(*collisions);
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>((number >> (8 * i)) & 255));
    hash = fnv1a_32(bytes, hash);
  }
  return safe_encode(hash);
}

bool oldest_first(const Value& a, const Value& b) {
  const Time ta = created_at(a), tb = created_at(b);
  return ta != tb ? ta < tb : name_of(a) < name_of(b);
}

}  // namespace dibs::controllers
