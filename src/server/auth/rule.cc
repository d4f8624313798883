#include "server/auth/rule.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/strings.h"

namespace dibs::server::auth {
namespace {

bool has(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool has_or_all(const std::vector<std::string>& list, std::string_view text) {
  return has(list, "*") || has(list, text);
}

bool resource_matches(const std::vector<std::string>& resources, std::string_view resource,
                      std::string_view subresource) {
  for (std::string_view one : resources) {
    if (one == "*") return true;
    if (subresource.empty()) {
      if (one == resource) return true;
      continue;
    }
    if (one.size() <= subresource.size() || !one.ends_with(subresource)) continue;
    one.remove_suffix(subresource.size());
    if (one.back() != '/') continue;
    one.remove_suffix(1);
    if (one == resource || one == "*") return true;
  }
  return false;
}

bool url_matches(const std::vector<std::string>& urls, std::string_view path) {
  for (std::string_view url : urls) {
    if (url == "*" || url == path) return true;
    if (!url.empty() && url.back() == '*' && path.starts_with(url.substr(0, url.size() - 1))) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> texts_of(const Value& list) {
  std::vector<std::string> texts;
  texts.reserve(list.size());
  for (const Value& item : list.items()) texts.push_back(item.str());
  return texts;
}

/// One verb, one group, one resource, at most one name; or one verb and one path.
std::vector<PolicyRule> pieces_of(const PolicyRule& rule) {
  std::vector<PolicyRule> pieces;
  for (const std::string& group : rule.groups) {
    for (const std::string& resource : rule.resources) {
      for (const std::string& verb : rule.verbs) {
        if (rule.names.empty()) pieces.push_back({{verb}, {group}, {resource}, {}, {}});
        for (const std::string& name : rule.names) {
          pieces.push_back({{verb}, {group}, {resource}, {name}, {}});
        }
      }
    }
  }
  for (const std::string& url : rule.urls) {
    for (const std::string& verb : rule.verbs) pieces.push_back({{verb}, {}, {}, {}, {url}});
  }
  return pieces;
}

/// A rule whose lists may be long and are asked often.
class HeldRule {
 public:
  explicit HeldRule(const PolicyRule& rule)
      : verbs_(rule.verbs),
        groups_(rule.groups),
        resources_(rule.resources),
        names_(rule.names),
        urls_(rule.urls) {}

  /// Every part of the rule, each for itself, is among these.
  bool includes(const PolicyRule& rule) const {
    return verbs_.has_all(rule.verbs) && groups_.has_all(rule.groups) &&
           resources_.has_all(rule.resources) && has_all_urls(rule.urls) &&
           (names_.texts.empty() || (!rule.names.empty() && names_.has_all(rule.names)));
  }

  /// `piece` comes from pieces_of().
  bool covers(const PolicyRule& piece) const {
    if (!verbs_.has(piece.verbs[0])) return false;
    if (!piece.urls.empty()) return url_matches(urls_, piece.urls[0]);
    return groups_.has(piece.groups[0]) && has_resource(piece.resources[0]) &&
           (names_.texts.empty() ||
            (!piece.names.empty() && names_.texts.contains(piece.names[0])));
  }

 private:
  struct Set {
    explicit Set(const std::vector<std::string>& list) : texts(list.begin(), list.end()) {}
    bool has(std::string_view text) const { return texts.contains("*") || texts.contains(text); }
    bool has_all(const std::vector<std::string>& list) const {
      return std::all_of(list.begin(), list.end(), [&](const auto& one) { return has(one); });
    }
    std::unordered_set<std::string_view> texts;
  };

  bool has_resource(std::string_view resource) const {
    if (resources_.has(resource)) return true;
    const std::size_t slash = resource.find('/');
    return slash != std::string_view::npos &&
           resources_.texts.contains(cat("*", resource.substr(slash)));
  }
  bool has_all_urls(const std::vector<std::string>& list) const {
    return std::all_of(list.begin(), list.end(),
                       [&](const auto& one) { return url_matches(urls_, one); });
  }

  Set verbs_;
  Set groups_;
  Set resources_;
  Set names_;
  const std::vector<std::string>& urls_;
};

void append_list(std::string& out, std::string_view name, const std::vector<std::string>& list) {
  if (list.empty()) return;
  append(out, out.size() > 1 ? ", " : "", name, ":", list_text(list));
}

}  // namespace

PolicyRule rule_of(const Value& rule) {
  return {texts_of(rule["verbs"]), texts_of(rule["apiGroups"]), texts_of(rule["resources"]),
          texts_of(rule["resourceNames"]), texts_of(rule["nonResourceURLs"])};
}

std::vector<PolicyRule> rules_of(const Value& object) {
  std::vector<PolicyRule> rules;
  for (const Value& rule : object["rules"].items()) rules.push_back(rule_of(rule));
  return rules;
}

bool matches_but_for_name(const PolicyRule& rule, const RequestAttributes& attributes) {
  if (!has_or_all(rule.verbs, attributes.verb)) return false;
  if (!attributes.is_resource) return url_matches(rule.urls, attributes.path);
  return has_or_all(rule.groups, attributes.group) &&
         resource_matches(rule.resources, attributes.resource, attributes.subresource);
}

bool matches(const PolicyRule& rule, const RequestAttributes& attributes) {
  return matches_but_for_name(rule, attributes) &&
         (!attributes.is_resource || rule.names.empty() || has(rule.names, attributes.name));
}

std::vector<PolicyRule> missing_rights(const std::vector<PolicyRule>& held,
                                       const std::vector<PolicyRule>& asked) {
  const std::vector<HeldRule> holds(held.begin(), held.end());
  const auto any = [&](const auto& does) { return std::any_of(holds.begin(), holds.end(), does); };
  std::vector<PolicyRule> missing;
  std::unordered_map<std::string, std::size_t> places;  // of a piece but for its verb, in `missing`
  for (const PolicyRule& rule : asked) {
    // Most are held as they stand: then their pieces need not be made.
    if (any([&](const HeldRule& one) { return one.includes(rule); })) continue;
    for (PolicyRule& piece : pieces_of(rule)) {
      if (any([&](const HeldRule& one) { return one.covers(piece); })) continue;
      std::string place = list_text(piece.groups) + list_text(piece.resources) +
                          list_text(piece.names) + list_text(piece.urls);
      auto [found, is_new] = places.emplace(std::move(place), missing.size());
      if (is_new) {
        missing.push_back(std::move(piece));
      } else if (!has(missing[found->second].verbs, piece.verbs[0])) {
        missing[found->second].verbs.push_back(piece.verbs[0]);
      }
    }
  }
  return missing;
}

std::string list_text(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) append(out, out.size() > 1 ? " " : "", quoted(text));
  return out + "]";
}

std::string rule_text(const PolicyRule& rule) {
  std::string out = "{";
  append_list(out, "APIGroups", rule.groups);
  append_list(out, "Resources", rule.resources);
  append_list(out, "NonResourceURLs", rule.urls);
  append_list(out, "ResourceNames", rule.names);
  append_list(out, "Verbs", rule.verbs);
  return out + "}";
}

}  // namespace dibs::server::auth
