#include "cel/libraries/formats.h"

#include <re2/re2.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cel/calendar.h"
#include "cel/cost/cost.h"
#include "cel/libraries/url.h"

namespace dibs::cel {

namespace {

using Problems = std::vector<std::string>;

constexpr std::size_t kLabelLength = 63;
constexpr std::size_t kSubdomainLength = 253;
constexpr std::string_view kLabel = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kSubdomain =
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
constexpr std::string_view kDns1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kKey = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr std::string_view kKeyRule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_lower_or_digit(char c) { return is_lower(c) || is_digit(c); }
bool is_alphanumeric(char c) { return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z'); }

template <typename Ends, typename Inner>
bool consists_of(std::string_view text, Ends ends, Inner inner) {
  return !text.empty() && ends(text.front()) && ends(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return ends(c) || inner(c); });
}
bool is_label(std::string_view text) {
  return consists_of(text, is_lower_or_digit, [](char c) { return c == '-'; });
}
bool is_subdomain(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '.');
  return std::all_of(parts.begin(), parts.end(), is_label);
}
bool is_key(std::string_view text) {
  return consists_of(text, is_alphanumeric,
                     [](char c) { return c == '-' || c == '_' || c == '.'; });
}

std::string too_long(std::size_t limit) {
  return cat("must be no more than ", limit, " characters");
}

std::string breaks(std::string_view rule, std::string_view pattern,
                   std::initializer_list<std::string_view> examples) {
  std::string text = cat(rule, " (e.g. ");
  bool first = true;
  for (const std::string_view example : examples) {
    append(text, first ? "" : " or ", "'", example, "', ");
    first = false;
  }
  append(text, "regex used for validation is '", pattern, "')");
  return text;
}

/// A name to which something will be appended may end in a dash.
std::string as_prefix(std::string_view name) {
  if (name.size() < 2 || name.back() != '-') return std::string(name);
  return cat(name.substr(0, name.size() - 2), "a");
}

Problems dns1123_label(std::string_view text) {
  Problems found;
  if (text.size() > kLabelLength) found.push_back(too_long(kLabelLength));
  if (is_label(text)) return found;
  if (is_subdomain(text)) {
    found.push_back("must not contain dots");
  } else {
    found.push_back(
        breaks("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
               "'-', and must start and end with an alphanumeric character",
               kLabel, {"my-name", "123-abc"}));
  }
  return found;
}

Problems dns1123_subdomain(std::string_view text) {
  Problems found;
  if (text.size() > kSubdomainLength) found.push_back(too_long(kSubdomainLength));
  if (!is_subdomain(text))
    found.push_back(
        breaks("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
               "characters, '-' or '.', and must start and end with an alphanumeric character",
               kSubdomain, {"example.com"}));
  return found;
}

Problems dns1035_label(std::string_view text) {
  Problems found;
  if (text.size() > kLabelLength) found.push_back(too_long(kLabelLength));
  if (!is_label(text) || !is_lower(text.front()))
    found.push_back(
        breaks("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
               "with an alphabetic character, and end with an alphanumeric character",
               kDns1035, {"my-name", "abc-123"}));
  return found;
}

Problems dns1123_label_prefix(std::string_view text) { return dns1123_label(as_prefix(text)); }
Problems dns1123_subdomain_prefix(std::string_view text) {
  return dns1123_subdomain(as_prefix(text));
}
Problems dns1035_label_prefix(std::string_view text) { return dns1035_label(as_prefix(text)); }

Problems qualified_name(std::string_view text) {
  const std::string rule = breaks(kKeyRule, kKey, {"MyName", "my.name", "123-abc"});
  const std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() > 2)
    return {cat("a valid label key ", rule,
                " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")};
  Problems found;
  if (parts.size() == 2 && parts[0].empty()) found.push_back("prefix part must be non-empty");
  if (parts.size() == 2 && !parts[0].empty()) {
    for (const std::string& problem : dns1123_subdomain(parts[0]))
      found.push_back(cat("prefix part ", problem));
  }
  const std::string_view name = parts.back();
  if (name.empty()) found.push_back("name part must be non-empty");
  if (name.size() > kLabelLength) found.push_back(cat("name part ", too_long(kLabelLength)));
  if (!is_key(name)) found.push_back(cat("name part ", rule));
  return found;
}

Problems label_value(std::string_view text) {
  Problems found;
  if (text.size() > kLabelLength) found.push_back(too_long(kLabelLength));
  if (!text.empty() && !is_key(text))
    found.push_back(breaks(cat("a valid label must be an empty string or ", kKeyRule.substr(5)),
                           cat("(", kKey, ")?"), {"MyValue", "my_value", "12345"}));
  return found;
}

Problems uri(std::string_view text) {
  std::string problem = url_problem(text);
  return problem.empty() ? Problems{} : Problems{std::move(problem)};
}

bool full_match(std::string_view text, const re2::RE2& pattern) {
  return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

Problems uuid(std::string_view text) {
  static const auto* const pattern =
      new re2::RE2("(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}");
  if (full_match(text, *pattern)) return {};
  return {"does not match the UUID format"};
}

Problems base64(std::string_view text) {
  static const auto* const pattern = new re2::RE2(
      "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})");
  if (full_match(text, *pattern)) return {};
  return {"invalid base64"};
}

Problems date(std::string_view text) {
  if (is_date(text)) return {};
  return {"invalid date"};
}

Problems date_time(std::string_view text) {
  // Any character may stand before the fraction.
  static const auto* const clock =
      new re2::RE2("([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})");
  const std::string lower = to_lower(text);
  const std::vector<std::string_view> parts = split(lower, 't');
  std::string hours;
  std::string minutes;
  std::string seconds;
  if (parts.size() >= 2 && is_date(parts[0]) &&
      re2::RE2::FullMatch(re2::StringPiece(parts[1].data(), parts[1].size()), *clock, &hours,
                          &minutes, &seconds) &&
      hours <= "23" && minutes <= "59" && seconds <= "59")
    return {};
  return {"invalid datetime"};
}

struct Format {
  std::string_view name;
  Problems (*problems)(std::string_view);
  /// What Kubernetes takes for the length of a pattern when it counts the cost.
  std::uint64_t pattern_size;
};

constexpr Format kFormats[] = {
    {"dns1123Label", dns1123_label, 30},
    {"dns1123Subdomain", dns1123_subdomain, 60},
    {"dns1035Label", dns1035_label, 30},
    {"qualifiedName", qualified_name, 60},
    {"dns1123LabelPrefix", dns1123_label_prefix, 30},
    {"dns1123SubdomainPrefix", dns1123_subdomain_prefix, 60},
    {"dns1035LabelPrefix", dns1035_label_prefix, 30},
    {"labelValue", label_value, 40},
    {"uri", uri, 1103},
    {"uuid", uuid, 70},
    {"byte", base64, 84},
    {"date", date, 71},
    {"datetime", date_time, 71},
};

class NamedFormat final : public Opaque {
 public:
  explicit NamedFormat(const Format& format) : format(format) {}
  std::string_view type_name() const override { return "kubernetes.NamedFormat"; }
  bool equals(const Opaque& other) const override {
    return &format == &static_cast<const NamedFormat&>(other).format;
  }
  const Format& format;
};

const Format& format_of(const Value& value) {
  return static_cast<const NamedFormat&>(value.as_opaque()).format;
}

Value named(const Value* arguments, std::size_t) {
  for (const Format& format : kFormats) {
    if (format.name == arguments[0].text())
      return Value::some(Value::opaque(new NamedFormat(format)));
  }
  return Value::none();
}

template <std::size_t I>
Value constant(const Value*, std::size_t) {
  return Value::opaque(new NamedFormat(kFormats[I]));
}

Value validate(const Value* arguments, std::size_t) {
  std::vector<Value> problems;
  for (std::string& problem : format_of(arguments[0]).problems(arguments[1].text()))
    problems.push_back(Value::string(std::move(problem)));
  return problems.empty() ? Value::none() : Value::some(Value::list(std::move(problems)));
}

std::uint64_t cost_validate(const Value* arguments, std::size_t, const Value&) {
  if (!arguments[0].is(Kind::opaque) || arguments[0].type_name() != "kubernetes.NamedFormat")
    return 1;
  return saturated_multiply(scaled(1 + cost_size(arguments[1]), kScanFactor),
                            scaled(format_of(arguments[0]).pattern_size, kPatternFactor));
}

template <std::size_t... I>
void add_constants(Environment& environment, std::index_sequence<I...>) {
  (environment.function(cat("format.", kFormats[I].name),
                        {{"-> kubernetes.NamedFormat", constant<I>}}),
   ...);
}

}  // namespace

bool is_dns1123_label(std::string_view text) {
  return text.size() <= kLabelLength && is_label(text);
}

bool is_dns1123_subdomain(std::string_view text) {
  return text.size() <= kSubdomainLength && is_subdomain(text);
}

void add_formats(Environment& environment) {
  environment.function("format.named", {{"string -> optional(kubernetes.NamedFormat)", named}});
  add_constants(environment, std::make_index_sequence<std::size(kFormats)>());
  environment.function("validate", {{".kubernetes.NamedFormat, string -> optional(list(string))",
                                     validate, cost_validate}});
}

}  // namespace dibs::cel
