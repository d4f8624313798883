#pragma once
// Which autoscalers select a pod, so that two that fight over the same pods are found out.
//
// A selector that demands a value of some label is found by that label alone; only the others of a
// namespace are tried one by one. Not thread-safe.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/merge/selectors.h"
#include "json/value.h"

namespace dibs::controllers {

class SelectorIndex {
 public:
  void put(const std::string& name_space, const std::string& name, api::LabelSelector selector);
  void erase(const std::string& name_space, const std::string& name);
  /// Names of those that select one of the pods, in order; at most `most` of them.
  std::vector<std::string> selecting(const std::string& name_space,
                                     const std::vector<json::Value>& pods, std::size_t most) const;

 private:
  struct Entry {
    api::LabelSelector selector;
    std::string label;  // "key=value" that it demands, or ""
  };
  struct Space {
    std::map<std::string, Entry> entries;
    std::map<std::string, std::set<std::string>, std::less<>> by_label;
  };
  std::map<std::string, Space, std::less<>> spaces_;
};

}  // namespace dibs::controllers
