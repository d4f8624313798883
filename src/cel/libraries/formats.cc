#include "cel/libraries/formats.h"

#include <re2/re2.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/strings.h"
#include "cel/calendar.h"
#include "cel/cost/cost.h"
#include "cel/libraries/url.h"

namespace dibs::cel {

namespace {

using Problems = Faults;
using Text = std::string_view;

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
    {"dns1123Label", [](Text text) { return is_dns1123_label(text); }, 30},
    {"dns1123Subdomain", [](Text text) { return is_dns1123_subdomain(text); }, 60},
    {"dns1035Label", is_dns1035_label, 30},
    {"qualifiedName", [](Text text) { return is_qualified_name(text); }, 60},
    {"dns1123LabelPrefix", [](Text text) { return is_dns1123_label(as_name_prefix(text)); }, 30},
    {"dns1123SubdomainPrefix", [](Text text) { return is_dns1123_subdomain(as_name_prefix(text)); },
     60},
    {"dns1035LabelPrefix", [](Text text) { return is_dns1035_label(as_name_prefix(text)); }, 30},
    {"labelValue", is_label_value, 40},
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

void add_formats(Environment& environment) {
  environment.function("format.named", {{"string -> optional(kubernetes.NamedFormat)", named}});
  add_constants(environment, std::make_index_sequence<std::size(kFormats)>());
  environment.function("validate", {{".kubernetes.NamedFormat, string -> optional(list(string))",
                                     validate, cost_validate}});
}

}  // namespace dibs::cel
