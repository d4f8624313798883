#include "controllers/autoscaling/selector_index.h"

#include "base/strings.h"

namespace dibs::controllers {
namespace {

std::string demanded_label(const api::LabelSelector& selector) {
  for (const api::LabelRequirement& one : selector.requirements()) {
    const bool equal = one.op == api::LabelOperator::equals ||
                       one.op == api::LabelOperator::double_equals ||
                       (one.op == api::LabelOperator::in && one.values.size() == 1);
    if (equal) return cat(one.key, '=', one.values.front());
  }
  return {};
}

}  // namespace

void SelectorIndex::put(const std::string& name_space, const std::string& name,
                        api::LabelSelector selector) {
  erase(name_space, name);
  Space& space = spaces_[name_space];
  std::string label = demanded_label(selector);
  space.by_label[label].insert(name);
  space.entries[name] = {std::move(selector), std::move(label)};
}

void SelectorIndex::erase(const std::string& name_space, const std::string& name) {
  const auto space = spaces_.find(name_space);
  if (space == spaces_.end()) return;
  const auto entry = space->second.entries.find(name);
  if (entry == space->second.entries.end()) return;
  const auto named = space->second.by_label.find(entry->second.label);
  named->second.erase(name);
  if (named->second.empty()) space->second.by_label.erase(named);
  space->second.entries.erase(entry);
  if (space->second.entries.empty()) spaces_.erase(space);
}

std::vector<std::string> SelectorIndex::selecting(const std::string& name_space,
                                                  const std::vector<json::Value>& pods,
                                                  std::size_t most) const {
  const auto space = spaces_.find(name_space);
  if (space == spaces_.end()) return {};
  std::set<std::string> found;
  for (const json::Value& pod : pods) {
    const json::Value& labels = pod["metadata"]["labels"];
    const auto look = [&](const std::string& label) {
      const auto named = space->second.by_label.find(label);
      if (named == space->second.by_label.end()) return;
      for (const std::string& name : named->second) {
        if (found.size() < most && space->second.entries.at(name).selector.matches(labels))
          found.insert(name);
      }
    };
    look("");
    for (const auto& [key, value] : labels.members()) look(cat(key, '=', value.as_string()));
    if (found.size() >= most) break;
  }
  return {found.begin(), found.end()};
}

}  // namespace dibs::controllers
