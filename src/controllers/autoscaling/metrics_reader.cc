#include "controllers/autoscaling/metrics_reader.h"

#include "api/kinds/pod/resources.h"
#include "api/merge/selectors.h"
#include "base/span.h"
#include "base/strings.h"
#include "controllers/disruption_plan.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr std::string_view kCustom = "custom.metrics.k8s.io";
// Of a metric that does not say over how long it was taken.
constexpr Duration kDefaultWindow = std::chrono::minutes(1);

std::int64_t milli(const Value& amount) { return api::quantity_of(amount).milli_value(); }

/// A selector of a metric, as a query; an absent one selects all.
Result<std::string> selector_text(const Value& selector) {
  if (selector.is_null()) return std::string();
  DIBS_TRY(const auto parsed, api::to_label_selector(selector));
  return parsed.str();
}

void add_query(std::string& target, std::string_view name, const std::string& value) {
  if (value.empty()) return;
  append(target, target.find('?') == std::string::npos ? '?' : '&', name, '=',
         percent_encode(value));
}

Error of_resources(const Error& error) {
  return error.within("unable to fetch metrics from resource metrics API");
}
Error of_custom(const Error& error) {
  return error.within("unable to fetch metrics from custom metrics API");
}

PodUsage usage_of(const Value& item, std::int64_t value) {
  const auto window = parse_duration(item["window"].as_string());
  return {time_at(item["timestamp"]), window.ok() ? *window : kDefaultWindow, value};
}

}  // namespace

Result<Value> MetricsReader::get(const std::string& target, std::string_view resource) {
  auto answer = environment_.client.call(client::make_request("GET", target));
  if (answer.ok() || answer.error().code() != Code::not_found) return answer;
  // Nobody serves it: without a Status there is nothing to quote.
  if (answer.error().details() != nullptr && !answer.error().details()->name.empty()) return answer;
  return Error(Code::not_found,
               cat("the server could not find the requested resource (get ", resource, ')'));
}

Result<PodUsages> MetricsReader::resource(std::string_view name_space, const std::string& selector,
                                          std::string_view resource, std::string_view container) {
  std::string target = cat("/apis/metrics.k8s.io/v1beta1/namespaces/", name_space, "/pods");
  add_query(target, "labelSelector", selector);
  auto list = get(target, "pods.metrics.k8s.io");
  if (!list.ok()) return of_resources(list.error());
  if ((*list)["items"].empty())
    return Error::plain("no metrics returned from resource metrics API");
  PodUsages out;
  for (const Value& item : (*list)["items"].items()) {
    std::int64_t sum = 0;
    bool whole = !item["containers"].empty() && container.empty();
    for (const Value& one : item["containers"].items()) {
      const bool named = one["name"].as_string() == container;
      if (!container.empty() && !named) continue;
      const Value& amount = one["usage"][resource];
      whole = !amount.is_null() && (named || whole);
      if (!whole) break;
      sum = sum_of(sum, milli(amount));
    }
    if (whole) out[std::string(name_of(item))] = usage_of(item, sum);
  }
  return out;
}

Result<std::string> MetricsReader::custom_version() {
  auto groups = environment_.client.call(client::make_request("GET", "/apis"));
  if (!groups.ok()) return std::move(groups).error();
  for (const Value& group : (*groups)["groups"].items()) {
    if (group["name"].as_string() != kCustom) continue;
    for (const Value& version : group["versions"].items()) {
      const std::string_view name = version["version"].as_string();
      if (name == "v1beta2" || name == "v1beta1") return std::string(name);
    }
  }
  return Error::plain(cat("no custom metrics API (", kCustom, ") registered"));
}

Result<PodUsages> MetricsReader::pods(std::string_view name_space, const std::string& selector,
                                      const Value& metric) {
  DIBS_TRY(const std::string metric_selector, selector_text(metric["selector"]));
  auto version = custom_version();
  if (!version.ok()) return of_custom(version.error());
  std::string target = cat("/apis/", kCustom, '/', *version, "/namespaces/", name_space, "/pods/*/",
                           percent_encode(metric["name"].as_string()));
  add_query(target, "labelSelector", selector);
  add_query(target, "metricLabelSelector", metric_selector);
  auto list = get(target, cat("pods.", kCustom));
  if (!list.ok()) return of_custom(list.error());
  if ((*list)["items"].empty()) return Error::plain("no metrics returned from custom metrics API");
  PodUsages out;
  for (const Value& item : (*list)["items"].items()) {
    const Value& seconds = item.contains("windowSeconds") ? item["windowSeconds"] : item["window"];
    const Duration window = seconds.is_null() ? kDefaultWindow : seconds_of(seconds.as_int());
    out[item["describedObject"]["name"].str()] = {time_at(item["timestamp"]), window,
                                                  milli(item["value"])};
  }
  return out;
}

Result<std::int64_t> MetricsReader::object(std::string_view name_space, const Value& reference,
                                           const Value& metric) {
  DIBS_TRY(const std::string selector, selector_text(metric["selector"]));
  auto version = custom_version();
  if (!version.ok()) return of_custom(version.error());
  const std::string_view kind = reference["kind"].as_string();
  const std::string_view group = group_of(reference["apiVersion"].as_string());
  std::string target = cat("/apis/", kCustom, '/', *version, "/namespaces/", name_space, '/');
  std::string resource = "metrics";
  if (kind == "Namespace" && group.empty()) {
    append(target, "metrics/");
  } else {
    const auto served = environment_.discovery.find_kind(reference["apiVersion"].as_string(), kind);
    if (!served) {
      const std::string shown = cat(kind, group.empty() ? "" : ".", group);
      return of_custom(
          Error::plain(cat("unable to map kind ", shown, " to resource: no matches for kind ",
                           quoted(kind), " in group ", quoted(group))));
    }
    resource = cat(served->gvr.resource, group.empty() ? "" : ".", group);
    append(target, resource, '/', percent_encode(reference["name"].as_string()), '/');
  }
  append(target, percent_encode(metric["name"].as_string()));
  add_query(target, "metricLabelSelector", selector);
  auto list = get(target, cat(resource, '.', kCustom));
  if (!list.ok()) return of_custom(list.error());
  const Value& items = (*list)["items"];
  if (items.size() != 1) {
    return of_custom(Error::plain(cat("the custom metrics API server returned ", items.size(),
                                      " results when we asked for exactly one")));
  }
  return milli(items[0]["value"]);
}

Result<std::int64_t> MetricsReader::external(std::string_view name_space, const Value& metric) {
  const std::string name = metric["name"].str();
  DIBS_TRY(const std::string selector, selector_text(metric["selector"]));
  std::string target = cat("/apis/external.metrics.k8s.io/v1beta1/namespaces/", name_space, '/',
                           percent_encode(name));
  add_query(target, "labelSelector", selector);
  auto list = get(target, cat(name, ".external.metrics.k8s.io"));
  const auto fail = [&](const Error& error) {
    return error.within(cat("unable to get external metric ", name_space, '/', name, '/',
                            selector_words(metric["selector"])));
  };
  if (!list.ok())
    return fail(list.error().within("unable to fetch metrics from external metrics API"));
  if ((*list)["items"].empty())
    return fail(Error::plain("no metrics returned from external metrics API"));
  std::int64_t sum = 0;
  for (const Value& item : (*list)["items"].items()) sum = sum_of(sum, milli(item["value"]));
  return sum;
}

}  // namespace dibs::controllers
