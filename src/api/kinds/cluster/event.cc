#include "api/kinds/cluster/event.h"

#include <array>
#include <utility>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/rule_table.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::size_t kMaxInstance = 128;
constexpr std::size_t kMaxAction = 128;
constexpr std::size_t kMaxReason = 128;
constexpr std::size_t kMaxNote = 1024;

/// How an empty value is written.
enum class Empty : char { left_out, null, text, object };

struct Names {
  std::string_view core;
  Empty empty_core;
  std::string_view events;
  Empty empty_events;
};

/// In the order of core/v1.
constexpr std::array<Names, 15> kNames = {{
    {"involvedObject", Empty::object, "regarding", Empty::object},
    {"reason", Empty::left_out, "reason", Empty::left_out},
    {"message", Empty::left_out, "note", Empty::left_out},
    {"source", Empty::object, "deprecatedSource", Empty::object},
    {"firstTimestamp", Empty::null, "deprecatedFirstTimestamp", Empty::null},
    {"lastTimestamp", Empty::null, "deprecatedLastTimestamp", Empty::null},
    {"count", Empty::left_out, "deprecatedCount", Empty::left_out},
    {"type", Empty::left_out, "type", Empty::left_out},
    {"eventTime", Empty::null, "eventTime", Empty::null},
    {"series", Empty::left_out, "series", Empty::left_out},
    {"action", Empty::left_out, "action", Empty::left_out},
    {"related", Empty::left_out, "related", Empty::left_out},
    {"reportingComponent", Empty::text, "reportingController", Empty::left_out},
    {"reportingInstance", Empty::text, "reportingInstance", Empty::left_out},
    {"metadata", Empty::object, "metadata", Empty::object},
}};

bool is_empty(const Value& value) {
  return value.is_null() || (value.is_string() && value.as_string().empty()) ||
         (value.is_integer() && value.as_int() == 0);
}

void copy(Value& to, std::string_view to_key, Empty empty, const Value& from,
          std::string_view from_key) {
  const Value& value = from[from_key];
  if (!is_empty(value)) {
    to.set(to_key, value);
    return;
  }
  switch (empty) {
    case Empty::left_out:
      return;
    case Empty::null:
      to.set(to_key, nullptr);
      return;
    case Empty::text:
      to.set(to_key, "");
      return;
    case Empty::object:
      to.set(to_key, Value::object());
      return;
  }
}

/// Rules see an event in whichever form it is at hand.
Value in_core_form(const Value& event) {
  return event.contains("involvedObject") ? event : event_to_core(event);
}

void invalid_text(std::string_view field, std::string_view detail, FieldErrors& errors) {
  errors.invalid(Path(field), "", detail);
}

void check_length(const Value& event, std::string_view key, std::size_t limit,
                  FieldErrors& errors) {
  if (event[key].as_string().size() > limit) {
    invalid_text(key, cat("can have at most ", limit, " characters"), errors);
  }
}

/// What both groups demand. `event` is in the core form.
void validate_common(const Value& event, bool is_core, FieldErrors& errors) {
  std::string_view space = event["metadata"]["namespace"].as_string();
  const Value& involved = event["involvedObject"]["namespace"];
  auto mismatch = [&] {
    Path object("involvedObject");
    errors.invalid(object.child("namespace"), involved.str(), "does not match event.namespace");
  };
  if (!is_set(event, "eventTime")) {
    if (involved.as_string().empty()) {
      if (!space.empty() && space != "default") mismatch();
    } else if (space != involved.as_string()) {
      mismatch();
    }
    return;
  }
  if (involved.as_string().empty() && space != "default" && space != "kube-system") mismatch();
  Path controller(is_core ? "reportingComponent" : "reportingController");
  const Value& reporter = event["reportingComponent"];
  if (reporter.as_string().empty()) errors.required(controller);
  add_invalid(is_qualified_name(reporter.as_string()), reporter.str(), controller, errors);
  struct Limit {
    std::string_view key;
    std::size_t limit;
  };
  for (const Limit& limit : {Limit{"reportingInstance", kMaxInstance}, Limit{"action", kMaxAction},
                             Limit{"reason", kMaxReason}}) {
    if (event[limit.key].as_string().empty()) errors.required(Path(limit.key));
    check_length(event, limit.key, limit.limit, errors);
  }
  check_length(event, "message", kMaxNote, errors);
}

void check_series(const Value& event, FieldErrors& errors) {
  const Value& series = event["series"];
  if (series.is_null()) return;
  Path path("series");
  if (series["count"].as_int() < 2) {
    errors.invalid(path.child("count"), "", "should be at least 2");
  }
  if (!is_set(series, "lastObservedTime")) errors.required(path.child("lastObservedTime"));
}

/// A new event through events.k8s.io may not use what it deprecates.
void validate_new(const Value& event, FieldErrors& errors) {
  check_series(event, errors);
  if (!is_set(event, "eventTime")) errors.required(Path("eventTime"));
  std::string_view type = event["type"].as_string();
  if (type != "Normal" && type != "Warning") {
    invalid_text("type", cat("has invalid value: ", type), errors);
  }
  for (std::string_view key : {"firstTimestamp", "lastTimestamp"}) {
    if (is_set(event, key)) invalid_text(key, "needs to be unset", errors);
  }
  if (event["count"].as_int() != 0) invalid_text("count", "needs to be unset", errors);
  const Value& source = event["source"];
  if (!source["component"].as_string().empty() || !source["host"].as_string().empty()) {
    invalid_text("source", "needs to be unset", errors);
  }
}

/// Through events.k8s.io only the series of an event may change.
void validate_changed(const Value& event, const Value& old, FieldErrors& errors) {
  if (!(event["series"] == old["series"])) check_series(event, errors);
  for (std::string_view key :
       {"involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count",
        "type", "eventTime", "action", "related"}) {
    validate_immutable(event[key], old[key], Path(key), errors);
  }
  validate_immutable(event["reportingComponent"], old["reportingComponent"],
                     Path("reportingController"), errors);
  validate_immutable(event["reportingInstance"], old["reportingInstance"],
                     Path("reportingInstance"), errors);
}

SelectableField text_field(std::string label, std::string_view outer, std::string_view inner = {}) {
  return {std::move(label),
          [outer = std::string(outer), inner = std::string(inner)](const Value& event) {
            const Value& value = event[outer];
            return inner.empty() ? value.str() : value[inner].str();
          }};
}

std::vector<SelectableField> selectable_fields(bool is_core) {
  std::string_view subject = is_core ? "involvedObject" : "regarding";
  std::string_view reporter = is_core ? "reportingComponent" : "reportingController";
  std::vector<SelectableField> fields;
  for (std::string_view key :
       {"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"}) {
    fields.push_back(text_field(cat(subject, ".", key), subject, key));
  }
  fields.push_back(text_field("reason", "reason"));
  fields.push_back(text_field(std::string(reporter), reporter));
  fields.push_back(text_field("type", "type"));
  if (is_core) {
    fields.push_back({"source", [](const Value& event) {
                        const Value& component = event["source"]["component"];
                        return component.as_string().empty() ? event["reportingComponent"].str()
                                                             : component.str();
                      }});
  }
  return fields;
}

}  // namespace

Value event_to_core(const Value& event) {
  Value out = Value::object({{"kind", "Event"}, {"apiVersion", "v1"}});
  out.set("metadata", event["metadata"]);
  for (const Names& names : kNames) copy(out, names.core, names.empty_core, event, names.events);
  return out;
}

Value event_from_core(const Value& event) {
  Value out = Value::object({{"kind", "Event"}, {"apiVersion", "events.k8s.io/v1"}});
  out.set("metadata", event["metadata"]);
  for (const Names& names : kNames) copy(out, names.events, names.empty_events, event, names.core);
  return out;
}

void add_event_rules(RuleTable& table) {
  const Duration lifetime = std::chrono::hours(1);
  KindRules core;
  core.lifetime = lifetime;
  core.name_rule = NameRule::any;
  core.allow_create_on_update = true;
  core.selectable = selectable_fields(true);
  core.validate = [](const Value& event, FieldErrors& errors) {
    validate_common(event, true, errors);
  };
  core.validate_update = [](const Value& event, const Value&, FieldErrors& errors) {
    validate_common(event, true, errors);
  };

  KindRules events;
  events.lifetime = lifetime;
  events.allow_create_on_update = true;
  events.selectable = selectable_fields(false);
  events.validate = [](const Value& event, FieldErrors& errors) {
    Value shown = in_core_form(event);
    validate_common(shown, false, errors);
    validate_new(shown, errors);
  };
  events.validate_update = [](const Value& event, const Value& old, FieldErrors& errors) {
    Value shown = in_core_form(event);
    validate_common(shown, false, errors);
    validate_changed(shown, in_core_form(old), errors);
  };
  table[{"", "Event"}] = std::move(core);
  table[{"events.k8s.io", "Event"}] = std::move(events);
}

}  // namespace dibs::api
