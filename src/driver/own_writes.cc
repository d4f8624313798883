#include "driver/own_writes.h"

#include <charconv>

namespace dibs::driver {

using json::Value;

std::uint64_t revision_of(const Value& object) {
  const auto text = object["metadata"]["resourceVersion"].as_string();
  std::uint64_t revision = 0;
  std::from_chars(text.data(), text.data() + text.size(), revision);
  return revision;
}

void OwnWrites::note(const Value& object) { written_[client::key_of(object)] = object; }

std::optional<Value> OwnWrites::newest(const std::string& key) {
  auto known = informer_.get(key);
  const auto written = written_.find(key);
  if (written == written_.end()) return known;
  // Not later counts, too: what a write has let go keeps its version.
  const bool behind = known && client::uid_of(*known) == client::uid_of(written->second) &&
                      revision_of(*known) <= revision_of(written->second);
  if (behind) return written->second;
  written_.erase(written);
  return known;
}

std::vector<Value> OwnWrites::by_index(const std::string& name, const std::string& value) {
  std::map<std::string, Value> found;
  for (const auto& object : informer_.by_index(name, value)) {
    const std::string key = client::key_of(object);
    if (auto newest_one = newest(key)) found[key] = std::move(*newest_one);
  }
  std::vector<std::string> keys;
  for (const auto& [key, object] : written_) keys.push_back(key);
  for (const auto& key : keys) {
    if (auto newest_one = newest(key)) found[key] = std::move(*newest_one);
  }
  std::vector<Value> out;
  for (auto& [key, object] : found) out.push_back(std::move(object));
  return out;
}

}  // namespace dibs::driver
