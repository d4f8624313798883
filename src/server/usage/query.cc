#include "server/usage/query.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/strings.h"
#include "json/value.h"
#include "server/status.h"

namespace dibs::server {
namespace {

using json::Value;

constexpr std::int64_t kDay = std::int64_t{24} * 60 * 60 * 1000;
constexpr std::int64_t kMostSteps = 2000;
constexpr Duration kUsual = std::chrono::hours(1);
constexpr std::array<std::string_view, 8> kParameters = {"by",    "format", "from",    "namespace",
                                                         "since", "step",   "timeout", "to"};

std::int64_t milliseconds(Time time) { return time.nanoseconds / 1'000'000; }
std::int64_t milliseconds(Duration time) { return time.count() / 1'000'000; }

std::string text_of(std::int64_t at) {
  const Time time{at * 1'000'000};
  // Whole seconds in the form of the API.
  return at % 1000 == 0 ? format_rfc3339(time) : cat(format_rfc3339_micro(time).substr(0, 23), "Z");
}

Result<Time> time_of(const net::Target& target, std::string_view name, Time otherwise) {
  const std::string_view text = target.get(name);
  if (text.empty()) return otherwise;
  auto time = parse_rfc3339(text);
  if (time.ok()) return time;
  return Error::bad_request(cat(name, ": ", quoted(text), " is no time like 2026-01-02T15:04:05Z"));
}

double rounded(double seconds) { return std::round(seconds * 1000) / 1000; }

std::string number(double seconds) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

std::string csv_of(const UsageTable& table) {
  std::string out = "from,to";
  for (const UsageBy by : table.plan().by) append(out, ",", name_of(by));
  out += ",device_seconds,used_device_seconds\n";
  for (const auto& [key, sum] : table.rows()) {
    append(out, text_of(key.first), ",", text_of(table.end_of(key.first)));
    // Names of the API, which have nothing in them that CSV would mark.
    for (const std::string_view name : split(key.second, '\t')) append(out, ",", name);
    append(out, ",", number(sum.held), ",", number(sum.used), "\n");
  }
  return out;
}

Value json_of(const UsageTable& table) {
  Value by = Value::array();
  for (const UsageBy one : table.plan().by) by.push(name_of(one));
  Value items = Value::array();
  for (const auto& [key, sum] : table.rows()) {
    Value item =
        Value::object({{"from", text_of(key.first)}, {"to", text_of(table.end_of(key.first))}});
    const auto names = split(key.second, '\t');
    for (std::size_t i = 0; i < table.plan().by.size(); ++i)
      item.set(name_of(table.plan().by[i]), names[i]);
    item.set("deviceSeconds", rounded(sum.held));
    item.set("usedDeviceSeconds", rounded(sum.used));
    items.push(std::move(item));
  }
  return Value::object({{"kind", "DeviceUsage"},
                        {"from", text_of(table.plan().from)},
                        {"to", text_of(table.plan().to)},
                        {"by", std::move(by)},
                        {"items", std::move(items)}});
}

}  // namespace

Result<Duration> parse_span(std::string_view text) {
  const auto wrong = [&] {
    return Error::bad_request(cat(quoted(text), " is no time like 90m, 12h or 7d"));
  };
  std::string_view rest = text;
  std::int64_t days = 0;
  const auto end = rest.find_first_not_of("0123456789");
  if (end != std::string_view::npos && end > 0 && end <= 5 && rest[end] == 'd') {
    for (const char c : rest.substr(0, end)) days = days * 10 + (c - '0');
    rest.remove_prefix(end + 1);
  }
  Duration span(0);
  if (!rest.empty() || days == 0) {
    const auto read = parse_duration(rest);
    if (!read.ok() || *read < Duration(0)) return wrong();
    span = *read;
  }
  // Longer than any record, and far from where sums of times overflow.
  constexpr std::int64_t kMostDays = 36'500;
  if (days > kMostDays || span > std::chrono::hours(24) * kMostDays) return wrong();
  span += std::chrono::hours(24) * days;
  if (span <= Duration(0)) return wrong();
  return span;
}

Result<std::vector<UsageBy>> parse_usage_by(std::string_view text) {
  std::vector<UsageBy> made;
  for (const std::string_view word : split(text, ',')) {
    const auto by = usage_by(word);
    if (!by) {
      return Error::bad_request(
          cat(quoted(word), " is none of namespace, class, pod, device, or a list of these"));
    }
    if (std::find(made.begin(), made.end(), *by) != made.end())
      return Error::bad_request(cat(word, " is named twice"));
    made.push_back(*by);
  }
  return made;
}

Result<UsageQuery> parse_usage_query(const net::Target& target, std::string_view accept, Time now) {
  for (const auto& [name, value] : target.query) {
    if (std::find(kParameters.begin(), kParameters.end(), name) == kParameters.end())
      return Error::bad_request(cat(quoted(name),
                                    " is no parameter: there are by, format, from, "
                                    "namespace, since, step, to"));
  }
  UsageQuery query;
  UsageTable::Plan& plan = query.plan;
  const std::string_view by = target.get("by");
  auto columns = parse_usage_by(by.empty() ? "namespace,class" : by);
  if (!columns.ok()) return columns.error().within("by");
  plan.by = std::move(columns).value();
  plan.name_space = std::string(target.get("namespace"));
  if (target.has("since") && (target.has("from") || target.has("to")))
    return Error::bad_request("since: excludes from and to");
  DIBS_TRY(const Time to, time_of(target, "to", now));
  Duration span = kUsual;
  if (target.has("since")) {
    const auto read = parse_span(target.get("since"));
    if (!read.ok()) return read.error().within("since");
    span = *read;
  }
  const Time until = std::min(to, now);
  DIBS_TRY(const Time from, time_of(target, "from", until - span));
  plan.from = std::max<std::int64_t>(0, milliseconds(from));
  plan.to = milliseconds(until);
  if (plan.from >= plan.to) return Error::bad_request("from: must be before to, and before now");
  if (target.has("step")) {
    const auto step = parse_span(target.get("step"));
    if (!step.ok()) return step.error().within("step");
    plan.step = milliseconds(*step);
    if (plan.step < 1000) return Error::bad_request("step: at least 1s");
    if ((plan.to - plan.from) / plan.step >= kMostSteps) {
      return Error::bad_request(
          cat("step: at most ", kMostSteps, " of them between from and to: take a longer one"));
    }
  }
  const std::string_view format = target.get("format");
  if (!format.empty() && format != "json" && format != "csv")
    return Error::bad_request(cat("format: ", quoted(format), " is neither json nor csv"));
  query.csv = format.empty() ? accept.find("text/csv") != std::string_view::npos : format == "csv";
  return query;
}

void fit_to_records(UsageTable::Plan& plan, std::int64_t exact_since) {
  if (plan.from >= exact_since) return;
  const bool in_sums =
      plan.step == 0 && std::all_of(plan.by.begin(), plan.by.end(), [](UsageBy by) {
        return by == UsageBy::name_space || by == UsageBy::device_class;
      });
  if (in_sums) {
    plan.from -= plan.from % kDay;
    if (plan.to < exact_since) plan.to += kDay - 1 - (plan.to + kDay - 1) % kDay;
  } else {
    plan.from = exact_since;
    plan.to = std::max(plan.to, exact_since);
  }
}

net::Response usage_response(const UsageTable& table, bool csv) {
  if (!csv) {
    net::Response response = json_response(200, json_of(table));
    response.headers.set("Cache-Control", "no-store");
    return response;
  }
  net::Response response;
  response.headers.set("Content-Type", "text/csv; charset=utf-8");
  response.headers.set("Content-Disposition", "attachment; filename=\"dibs-usage.csv\"");
  response.headers.set("Cache-Control", "no-store");
  response.body = csv_of(table);
  return response;
}

}  // namespace dibs::server
