#include "server/presenting.h"

#include <algorithm>

#include "api/schema/builtin.h"
#include "api/schema/protobuf_encode.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "net/gzip.h"
#include "server/answer_forms.h"
#include "server/audit.h"
#include "server/custom_kinds.h"
#include "server/event_lines.h"
#include "server/list_pieces.h"
#include "server/status.h"
#include "server/stored.h"
#include "server/warnings.h"

namespace dibs::server {
namespace {

constexpr std::size_t kCompressFrom = 128 * 1024;

bool takes_gzip(const Context& context) {
  return net::accepts_gzip(context.request.headers.get("Accept-Encoding"));
}

void tell_of_gzip(Response& response) {
  response.headers.add("Content-Encoding", "gzip");
  response.headers.add("Vary", "Accept-Encoding");
}

void finish(const Context& context, Response& response) {
  add_warnings(context.warnings, response.headers);
  if (response.body.size() > kCompressFrom && takes_gzip(context)) {
    response.body = net::gzip(response.body);
    tell_of_gzip(response);
  }
}

Response with_body(const Context& context, int status, std::string body) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", "application/json");
  response.headers.add("Cache-Control", "no-cache, private");
  response.body = std::move(body);
  finish(context, response);
  return response;
}

/// For a caller in this process.
Response with_value(const Context& context, int status, Value value) {
  Response response;
  response.status = status;
  response.value = std::move(value);
  finish(context, response);
  return response;
}

/// No object of the resource is converted on its way to the client.
bool converts_nothing(const Context& context, const Resource& resource) {
  return context.answer.form == Form::stored || !resource.from_storage;
}

template <class Bytes>
bool is_sent_as(const Context& context, const Resource& resource, const Bytes& stored) {
  return plain_form(context) &&
         (context.answer.form == Form::stored || resource.shows_stored(stored));
}

}  // namespace

std::optional<std::string> to_protobuf(const Value& value) {
  const std::string_view version = value["apiVersion"].as_string();
  if (version.starts_with("meta.k8s.io/")) return api::encode_metadata_envelope(value);
  const auto slash = version.find('/');
  const bool core = slash == std::string_view::npos;
  const api::Schema* schema =
      api::builtin_schema(core ? "" : version.substr(0, slash),
                          core ? version : version.substr(slash + 1), value["kind"].as_string());
  if (schema == nullptr) return std::nullopt;
  return api::encode_envelope(value, *schema);
}

Result<Value> to_served(const Resource& resource, const Value& stored) {
  if (resource.from_storage) return resource.from_storage(stored);
  return stored;
}

Result<std::vector<Value>> to_served_all(const Resource& resource, std::vector<Value> stored) {
  if (resource.conversion)
    return convert_custom(*resource.custom_kind, resource.version, std::move(stored));
  for (Value& object : stored) {
    DIBS_TRY(object, to_served(resource, object));
  }
  return stored;
}

Result<std::vector<Value>> served_to(Context& context, std::vector<Value> stored) {
  const Resource& resource = *context.resource;
  const bool waits =
      resource.conversion && std::any_of(stored.begin(), stored.end(), [&](const Value& object) {
        return object["apiVersion"].as_string() != resource.api_version();
      });
  if (waits) context.seat.reset();
  return to_served_all(resource, std::move(stored));
}

bool is_sent_as_stored(const Context& context, const Resource& resource,
                       const store::ValueBytes& value) {
  return is_sent_as(context, resource, value);
}

Response present_value(const Context& context, int status, const Value& value) {
  if (context.answer.media == Media::yaml) {
    Response response = with_body(context, status, json::write_yaml(value));
    response.headers.set("Content-Type", "application/yaml");
    return response;
  }
  if (context.request.takes_values) return with_value(context, status, value);
  if (context.answer.media == Media::protobuf) {
    if (auto body = to_protobuf(value)) {
      Response response = with_body(context, status, std::move(*body));
      response.headers.set("Content-Type", kProtobuf);
      return response;
    }
  }
  std::string body = context.answer.pretty ? json::write_pretty(value) : json::write(value);
  body.push_back('\n');
  return with_body(context, status, std::move(body));
}

Response present_object(const Context& context, const Resource& resource, int status,
                        const Value& stored) {
  if (presents_bytes(context, resource) && stored["metadata"].is_object()) {
    if (context.request.takes_values) return with_value(context, status, stored);
    auto version = stored["metadata"]["resourceVersion"].as_string();
    std::string body;
    if (append_wire(body, encode_stored(stored), version)) {
      body.push_back('\n');
      return with_body(context, status, std::move(body));
    }
  }
  auto served = shown_form(context, resource, stored);
  if (!served.ok()) return status_response(served.error());
  return present_value(context, status, in_form(context, resource, *served));
}

bool presents_bytes(const Context& context, const Resource& resource) {
  return plain_form(context) && converts_nothing(context, resource);
}

Response present_written(const Context& context, const Resource& resource, int status, Value stored,
                         std::string_view bytes, store::Revision revision) {
  if (context.request.takes_values && is_sent_as(context, resource, bytes)) {
    stored.mut("metadata").set("resourceVersion", cat(revision));
    return with_value(context, status, std::move(stored));
  }
  if (presents_bytes(context, resource)) {
    std::string body;
    body.reserve(bytes.size() + 48);
    if (append_wire(body, bytes, cat(revision))) {
      body.push_back('\n');
      return with_body(context, status, std::move(body));
    }
  }
  stored.mut("metadata").set("resourceVersion", cat(revision));
  return present_object(context, resource, status, stored);
}

Result<Response> present_record(const Context& context, const Resource& resource,
                                const store::Record& record) {
  if (is_sent_as_stored(context, resource, record.value)) {
    if (context.request.takes_values) {
      DIBS_TRY(Value object, decode_stored(record));
      return with_value(context, 200, std::move(object));
    }
    std::string body;
    body.reserve(record.value->size() + 48);
    if (append_wire(body, *record.value, cat(record.modified))) {
      body.push_back('\n');
      return with_body(context, 200, std::move(body));
    }
  }
  DIBS_TRY(Value object, decode_stored(record));
  return present_object(context, resource, 200, object);
}

Response present_values(const Context& context, const Resource& resource,
                        const std::vector<Value>& objects, const ListMeta& meta) {
  auto converted = context.answer.form == Form::stored ? Result<std::vector<Value>>(objects)
                                                       : to_served_all(resource, objects);
  if (!converted.ok()) return status_response(converted.error());
  std::vector<Value>& served = *converted;
  if (context.answer.form == Form::table) {
    return present_value(context, 200,
                         table_of(context, resource, list_metadata(meta, false), true, served));
  }
  bool only_metadata = context.answer.form == Form::metadata_list;
  Value items = Value::array();
  for (Value& object : served) {
    if (only_metadata) {
      items.push(metadata_only(context.answer, object));
      continue;
    }
    items.push(as_item(context, resource, std::move(object)));
  }
  Value list =
      Value::object({{"kind", resource.list_kind}, {"apiVersion", resource.api_version()}});
  if (only_metadata) {
    list.set("kind", "PartialObjectMetadataList");
    list.set("apiVersion", cat("meta.k8s.io/", context.answer.form_version));
    if (items.empty()) items = nullptr;
  }
  list.set("metadata", list_metadata(meta, resource.custom && !only_metadata));
  list.set("items", std::move(items));
  return present_value(context, 200, list);
}

namespace {

/// For a caller in this process, whose client puts kind and apiVersion into items anyway.
Result<Response> list_of_values(const Context& context, const Resource& resource,
                                const std::vector<store::RecordPtr>& records,
                                const ListMeta& meta) {
  Value items = Value::array();
  for (const auto& record : records) {
    DIBS_TRY(Value object, read_record(context, *record));
    if (!is_sent_as_stored(context, resource, record->value)) {
      DIBS_TRY(object, to_served(resource, object));
    }
    items.push(std::move(object));
  }
  return with_value(context, 200,
                    Value::object({{"kind", resource.list_kind},
                                   {"apiVersion", resource.api_version()},
                                   {"metadata", list_metadata(meta, resource.custom)},
                                   {"items", std::move(items)}}));
}

}  // namespace

Result<Value> read_record(const Context& context, const store::Record& record) {
  return context.request.omits_managed_fields ? decode_kept(record, *context.trees)
                                              : decode_stored(record);
}

namespace {

ListAnswer whole(Response response) { return {std::move(response), nullptr}; }

}  // namespace

Result<ListAnswer> present_list(const Context& context, const Resource& resource,
                                std::vector<store::RecordPtr> records, const ListMeta& meta) {
  if (plain_form(context) && context.request.takes_values) {
    DIBS_TRY(Response response, list_of_values(context, resource, records, meta));
    return whole(std::move(response));
  }
  std::size_t total = 0;
  for (const auto& record : records) total += record->value->size();
  const bool told = context.audit && context.audit->wants_body() && total < AuditEntry::kMostBytes;
  const bool in_pieces = total >= kInPieces && !told;
  // In protobuf a large one is twice the work, so it is not where the client takes JSON as well.
  if (in_pieces && context.answer.media == Media::protobuf && !context.answer.json_too) {
    const bool only_metadata = context.answer.form == Form::metadata_list;
    const api::Schema* schema =
        only_metadata ? nullptr
                      : api::builtin_schema(resource.group, resource.version, resource.list_kind);
    if (only_metadata || schema != nullptr) {
      const bool packed = takes_gzip(context);
      DIBS_TRY(auto pieces,
               protobuf_pieces(context, resource, std::move(records), meta, schema, packed));
      Response head = with_body(context, 200, "");
      head.headers.set("Content-Type", kProtobuf);
      if (packed) tell_of_gzip(head);
      return ListAnswer{std::move(head), std::move(pieces)};
    }
  }
  const bool compact = context.answer.media == Media::json && !context.answer.pretty;
  if (!in_pieces && (!compact || (records.empty() && context.answer.form != Form::object))) {
    std::vector<Value> objects;
    objects.reserve(records.size());
    for (const auto& record : records) {
      DIBS_TRY(Value object, read_record(context, *record));
      objects.push_back(std::move(object));
    }
    return whole(present_values(context, resource, objects, meta));
  }
  const bool packed = in_pieces && takes_gzip(context);
  DIBS_TRY(auto pieces, list_pieces(context, resource, std::move(records), meta, packed));
  if (in_pieces) {
    Response head = with_body(context, 200, "");
    if (context.answer.media == Media::yaml) head.headers.set("Content-Type", "application/yaml");
    if (packed) tell_of_gzip(head);
    return ListAnswer{std::move(head), std::move(pieces)};
  }
  std::string body;
  body.reserve(total + 1024);
  for (bool more = true; more;) {
    DIBS_TRY(more, pieces->next(body));
  }
  return whole(with_body(context, 200, std::move(body)));
}

Result<Value> event_value(const Context& context, const Resource& resource, const Value& stored) {
  DIBS_TRY(const Value served, shown_form(context, resource, stored));
  return in_form(context, resource, served);
}

std::string present_event(const Context& context, const Resource& resource, std::string_view type,
                          const Value& stored, bool columns) {
  const auto served = shown_form(context, resource, stored);
  if (!served.ok()) return error_event(context, served.error());
  const Value object = in_form(context, resource, *served, columns);
  if (context.answer.media == Media::protobuf) {
    return api::encode_watch_frame(type, to_protobuf(object).value_or(std::string()));
  }
  std::string out = cat("{\"type\":\"", type, "\",\"object\":");
  json::write_to(out, object);
  out.append("}\n");
  return out;
}

}  // namespace dibs::server
