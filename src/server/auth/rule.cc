#include "server/auth/rule.h"

#include <algorithm>

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

/// `piece` comes from pieces_of().
bool covers(const PolicyRule& held, const PolicyRule& piece) {
  if (!has_or_all(held.verbs, piece.verbs[0])) return false;
  if (!piece.urls.empty()) return url_matches(held.urls, piece.urls[0]);
  if (!has_or_all(held.groups, piece.groups[0])) return false;
  std::string_view resource = piece.resources[0];
  std::size_t slash = resource.find('/');
  std::string_view sub = slash == std::string_view::npos ? "" : resource.substr(slash + 1);
  if (!resource_matches(held.resources, resource.substr(0, slash), sub)) return false;
  if (piece.names.empty()) return held.names.empty();
  return held.names.empty() || has(held.names, piece.names[0]);
}

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
  std::vector<PolicyRule> missing;
  for (const PolicyRule& rule : asked) {
    for (PolicyRule& piece : pieces_of(rule)) {
      bool is_held = std::any_of(held.begin(), held.end(),
                                 [&](const PolicyRule& one) { return covers(one, piece); });
      if (is_held) continue;
      auto same = std::find_if(missing.begin(), missing.end(), [&](const PolicyRule& other) {
        return other.groups == piece.groups && other.resources == piece.resources &&
               other.names == piece.names && other.urls == piece.urls;
      });
      if (same == missing.end()) {
        missing.push_back(std::move(piece));
      } else if (!has(same->verbs, piece.verbs[0])) {
        same->verbs.push_back(piece.verbs[0]);
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
