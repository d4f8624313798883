#pragma once
// Plug points are tables: an array of entries that have a `name` and a `description`. Flags, help
// and errors take the names from here, so that a new entry is one line.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace dibs {

/// Null: no entry has this name.
template <typename Entry>
const Entry* find_named(std::span<const Entry> table, std::string_view name) {
  for (const auto& entry : table) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

template <typename Entry>
std::vector<std::string> names_of(std::span<const Entry> table) {
  std::vector<std::string> out;
  for (const auto& entry : table) out.emplace_back(entry.name);
  return out;
}

/// "a, b or c"
template <typename Entry>
std::string any_name_of(std::span<const Entry> table) {
  auto names = names_of(table);
  if (names.size() < 2) return join(names, "");
  const std::string last = std::move(names.back());
  names.pop_back();
  return cat(join(names, ", "), " or ", last);
}

/// `text; a: what a is; b: what b is`, without those that have no description.
template <typename Entry>
std::string described(std::string text, std::span<const Entry> table) {
  for (const auto& entry : table) {
    if (!entry.description.empty()) append(text, "; ", entry.name, ": ", entry.description);
  }
  return text;
}

}  // namespace dibs
