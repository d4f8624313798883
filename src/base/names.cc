#include "base/names.h"

#include <algorithm>

#include "base/characters.h"
#include "base/strings.h"

namespace dibs {
namespace {

constexpr std::string_view kLabelFormat = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kSubdomainFormat =
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
constexpr std::string_view kSubdomainUnderscoreFormat =
    "[a-z0-9_]([-_a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
constexpr std::string_view kDns1035Format = "[a-z]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kKeyFormat = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr std::string_view kKeyText =
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character";

bool matches_label(std::string_view text) {
  return !text.empty() && is_lower_alphanumeric(text.front()) &&
         is_lower_alphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return is_lower_alphanumeric(c) || c == '-';
         });
}

bool matches_subdomain(std::string_view text) {
  const auto labels = split(text, '.');
  return std::all_of(labels.begin(), labels.end(), matches_label);
}

bool matches_key(std::string_view text) {
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

Faults too_long(std::string_view text, std::size_t limit, Unit unit) {
  if (text.size() <= limit) return {};
  return {max_length_text(limit, unit)};
}

}  // namespace

std::string max_length_text(std::size_t limit, Unit unit) {
  const std::string_view name = unit == Unit::characters ? "characters"
                                : limit == 1             ? "byte"
                                                         : "bytes";
  return cat("must be no more than ", limit, " ", name);
}

std::string regex_text(std::string_view message, std::string_view format,
                       const std::vector<std::string>& examples) {
  std::string text(message);
  if (examples.empty()) return cat(text, " (regex used for validation is '", format, "')");
  text += " (e.g. ";
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (i > 0) text += " or ";
    append(text, '\'', examples[i], "', ");
  }
  append(text, "regex used for validation is '", format, "')");
  return text;
}

std::string as_name_prefix(std::string_view name) {
  if (name.size() < 2 || name.back() != '-') return std::string(name);
  return cat(name.substr(0, name.size() - 2), "a");
}

Faults is_dns1123_label(std::string_view text, Unit unit) {
  Faults faults = too_long(text, kDns1123LabelMaxLength, unit);
  if (matches_label(text)) return faults;
  // A name that would pass as a sub-domain has only the dots against it.
  if (matches_subdomain(text)) {
    faults.push_back("must not contain dots");
  } else {
    faults.push_back(
        regex_text("a lowercase RFC 1123 label must consist of lower case alphanumeric characters "
                   "or '-', and must start and end with an alphanumeric character",
                   kLabelFormat, {"my-name", "123-abc"}));
  }
  return faults;
}

Faults is_dns1123_subdomain(std::string_view text, Unit unit) {
  Faults faults = too_long(text, kDns1123SubdomainMaxLength, unit);
  if (!matches_subdomain(text)) {
    faults.push_back(
        regex_text("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                   "characters, '-' or '.', and must start and end with an alphanumeric character",
                   kSubdomainFormat, {"example.com"}));
  }
  return faults;
}

Faults is_dns1123_subdomain_with_underscore(std::string_view text) {
  Faults faults = too_long(text, kDns1123SubdomainMaxLength, Unit::characters);
  bool matches = true;
  bool first = true;
  for (const std::string_view part : split(text, '.')) {
    const auto is_edge = [&](char c) { return is_lower_alphanumeric(c) || (first && c == '_'); };
    const bool start = !part.empty() && is_edge(part.front());
    const bool end =
        !part.empty() && (is_lower_alphanumeric(part.back()) || (first && part.size() == 1));
    matches = matches && start && end && std::all_of(part.begin(), part.end(), [](char c) {
                return is_lower_alphanumeric(c) || c == '-' || c == '_';
              });
    first = false;
  }
  if (!matches) {
    faults.push_back(
        regex_text("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                   "characters, '-', '_' or '.', and must start and end with an alphanumeric "
                   "character",
                   kSubdomainUnderscoreFormat, {"example.com"}));
  }
  return faults;
}

Faults is_dns1035_label(std::string_view text) {
  Faults faults = too_long(text, kDns1123LabelMaxLength, Unit::characters);
  if (!matches_label(text) || !is_lower(text.front())) {
    faults.push_back(regex_text(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
        "alphabetic character, and end with an alphanumeric character",
        kDns1035Format, {"my-name", "abc-123"}));
  }
  return faults;
}

Faults is_qualified_name(std::string_view text, Unit unit, std::string_view what) {
  const std::string rule =
      regex_text(cat("must ", kKeyText), kKeyFormat, {"MyName", "my.name", "123-abc"});
  const auto parts = split(text, '/');
  if (parts.size() > 2) {
    return {cat(what, " ", rule,
                " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")};
  }
  Faults faults;
  if (parts.size() == 2) {
    const Faults found =
        parts[0].empty() ? Faults{"must be non-empty"} : is_dns1123_subdomain(parts[0], unit);
    for (const std::string& fault : found) faults.push_back(cat("prefix part ", fault));
  }
  const std::string_view name = parts.back();
  if (name.empty()) faults.push_back("name part must be non-empty");
  for (const std::string& fault : too_long(name, kLabelValueMaxLength, unit)) {
    faults.push_back(cat("name part ", fault));
  }
  if (!matches_key(name)) faults.push_back(cat("name part ", rule));
  return faults;
}

bool is_extended_resource_name(std::string_view name) {
  return name.find('/') != std::string_view::npos &&
         name.find("kubernetes.io/") == std::string_view::npos && !name.starts_with("requests.") &&
         is_qualified_name(cat("requests.", name)).empty();
}

Faults is_label_value(std::string_view text) {
  Faults faults = too_long(text, kLabelValueMaxLength, Unit::bytes);
  if (!text.empty() && !matches_key(text)) {
    faults.push_back(regex_text(cat("a valid label must be an empty string or ", kKeyText),
                                cat("(", kKeyFormat, ")?"), {"MyValue", "my_value", "12345"}));
  }
  return faults;
}

}  // namespace dibs
