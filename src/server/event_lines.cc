#include "server/event_lines.h"

#include "api/schema/protobuf_encode.h"
#include "base/strings.h"
#include "json/parse.h"
#include "server/presenting.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {

std::string_view change_name(Change change) {
  switch (change) {
    case Change::added:
      return "ADDED";
    case Change::modified:
      return "MODIFIED";
    case Change::deleted:
      return "DELETED";
  }
  return "";
}

std::string error_event(const Context& context, const Error& error) {
  if (context.answer.media == Media::protobuf) {
    return api::encode_watch_frame("ERROR", *to_protobuf(status_value(error)));
  }
  return cat("{\"type\":\"ERROR\",\"object\":", json::write(status_value(error)), "}\n");
}

std::string event_line(const Context& context, const store::Record& record,
                       store::Revision revision, Change change, bool columns, const Value* served) {
  if (is_sent_as_stored(context, *context.resource, record.value)) {
    std::string out = cat("{\"type\":\"", change_name(change), "\",\"object\":");
    if (append_wire(out, *record.value, cat(revision))) {
      out.append("}\n");
      return out;
    }
  }
  auto object = served ? Result<Value>(*served) : decode_stored(record);
  if (!object.ok()) return error_event(context, object.error());
  object->mut("metadata").set("resourceVersion", cat(revision));
  return present_event(context, *context.resource, change_name(change), *object, columns);
}

std::string form_of(const Context& context) {
  const Answer& answer = context.answer;
  return cat(context.resource->api_version(), "/", context.resource->plural, "|",
             static_cast<int>(answer.form), answer.form_version, answer.pretty ? "p" : "",
             answer.media == Media::protobuf ? "b" : "", "|", context.target.get("includeObject"));
}

}  // namespace dibs::server
