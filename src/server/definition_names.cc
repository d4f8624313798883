#include "server/definition_names.h"

#include <set>
#include <string_view>

#include "base/strings.h"

namespace dibs::server {
namespace {

using json::Value;
using Names = std::set<std::string, std::less<>>;

void insert(Names& names, const Value& name) {
  if (!name.as_string().empty()) names.insert(name.str());
}

std::string in_use(std::string_view name) { return cat(quoted(name), " is already in use"); }

bool contains(const Value& list, const Value& item) {
  for (const Value& other : list.items()) {
    if (other == item) return true;
  }
  return false;
}

void refuse(NameVerdict& verdict, std::string_view reason, std::string message) {
  verdict.all = false;
  verdict.reason = reason;
  verdict.message = std::move(message);
}

/// One name; what was accepted before stays where the new one is taken.
void judge_one(const Value& wanted, std::string_view field, const Names& used,
               std::string_view reason, NameVerdict& verdict) {
  const Value& name = wanted[field];
  if (name == verdict.accepted[field] || !used.contains(name.as_string())) {
    if (!name.is_null()) verdict.accepted.set(field, name);
  } else {
    refuse(verdict, reason, in_use(name.as_string()));
  }
}

void judge_short_names(const Value& wanted, const Names& used, NameVerdict& verdict) {
  const Value& names = wanted["shortNames"];
  std::vector<std::string> faults;
  for (const Value& name : names.items()) {
    if (!contains(verdict.accepted["shortNames"], name) && used.contains(name.as_string()))
      faults.push_back(in_use(name.as_string()));
  }
  if (!faults.empty()) {
    refuse(verdict, "ShortNamesConflict",
           faults.size() == 1 ? faults[0] : cat("[", join(faults, ", "), "]"));
  } else if (names.empty()) {
    verdict.accepted.erase("shortNames");
  } else {
    verdict.accepted.set("shortNames", names);
  }
}

}  // namespace

NameVerdict judge_names(const Value& definition, const std::vector<Value>& group) {
  Names resources;
  Names kinds;
  for (const Value& other : group) {
    const Value& taken = other["status"]["acceptedNames"];
    for (const char* field : {"plural", "singular"}) insert(resources, taken[field]);
    for (const Value& name : taken["shortNames"].items()) insert(resources, name);
    for (const char* field : {"kind", "listKind"}) insert(kinds, taken[field]);
  }
  const Value& wanted = definition["spec"]["names"];
  NameVerdict verdict;
  verdict.accepted = definition["status"]["acceptedNames"];
  verdict.reason = "NoConflicts";
  verdict.message = "no conflicts found";
  judge_one(wanted, "plural", resources, "PluralConflict", verdict);
  judge_one(wanted, "singular", resources, "SingularConflict", verdict);
  judge_short_names(wanted, resources, verdict);
  judge_one(wanted, "kind", kinds, "KindConflict", verdict);
  judge_one(wanted, "listKind", kinds, "ListKindConflict", verdict);
  if (wanted["categories"].empty()) {
    verdict.accepted.erase("categories");
  } else {
    verdict.accepted.set("categories", wanted["categories"]);
  }
  // With all of them, also in the order in which they are asked for.
  if (verdict.all) verdict.accepted = wanted;
  return verdict;
}

}  // namespace dibs::server
