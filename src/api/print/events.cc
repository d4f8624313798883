// Events, in the shape of either group.
#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

/// The member under its name in the core group, or in events.k8s.io.
const json::Value& either(const json::Value& event, std::string_view core, std::string_view other) {
  const json::Value& value = event[core];
  return value.is_null() ? event[other] : value;
}

std::string event_source(const json::Value& event) {
  const json::Value& source = either(event, "source", "deprecatedSource");
  const json::Value& controller = either(event, "reportingComponent", "reportingController");
  std::string text = text_or(source["component"], controller.as_string());
  std::string host = text_or(source["host"], event["reportingInstance"].as_string());
  if (!host.empty()) append(text, text.empty() ? "" : ", ", host);
  return text;
}

void print_event(Row& row) {
  const json::Value& event = row.object;
  const json::Value& about = either(event, "involvedObject", "regarding");
  const json::Value& first = either(event, "firstTimestamp", "deprecatedFirstTimestamp");
  const json::Value& last = either(event, "lastTimestamp", "deprecatedLastTimestamp");
  std::string first_seen = since(first.is_null() ? event["eventTime"] : first, row.now);
  std::string last_seen = last.is_null() ? first_seen : since(last, row.now);
  std::int64_t count = either(event, "count", "deprecatedCount").as_int();
  if (event["series"].is_object()) {
    last_seen = since(event["series"]["lastObservedTime"], row.now);
    count = event["series"]["count"].as_int();
  } else if (count == 0) {
    count = 1;
  }
  std::string target = to_lower(about["kind"].as_string());
  if (!about["name"].as_string().empty()) append(target, '/', about["name"].as_string());
  row.add(last_seen);
  row.add(event["type"].as_string());
  row.add(event["reason"].as_string());
  row.add(target);
  row.add(about["fieldPath"].as_string());
  row.add(event_source(event));
  row.add(trim(either(event, "message", "note").as_string()));
  row.add(first_seen);
  row.add(count);
  row.name();
}

}  // namespace

void add_events(Printers& printers) {
  for (std::string_view group : {"", "events.k8s.io"}) {
    printers.add(
        group, "Event",
        {text_column("Last Seen", "Time since it was last seen"),
         text_column("Type", "Normal or Warning"),
         text_column("Reason", "Why it came about, in one word"),
         text_column("Object", "What it is about"),
         wide(text_column("Subobject", "Which part of the object")),
         wide(text_column("Source", "Who reported it")), text_column("Message", "What happened"),
         wide(text_column("First Seen", "Time since it was first seen")),
         wide(text_column("Count", "How often it was seen")), wide(name_column())},
        print_event);
  }
}

}  // namespace dibs::api::print
