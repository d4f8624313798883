#include "server/presenting.h"

#include <algorithm>

#include "api/print/table.h"
#include "api/schema/builtin.h"
#include "api/schema/protobuf_encode.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "net/gzip.h"
#include "server/audit.h"
#include "server/custom_kinds.h"
#include "server/event_lines.h"
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

Value metadata_only(const Answer& answer, const Value& object) {
  return Value::object({{"kind", "PartialObjectMetadata"},
                        {"apiVersion", cat("meta.k8s.io/", answer.form_version)},
                        {"metadata", object["metadata"]}});
}

std::vector<api::Column> columns_of(const Resource& resource) {
  if (resource.custom) return custom_columns(*resource.custom_kind, resource.version);
  return api::table_columns(resource.group, resource.version, resource.kind);
}

bool plain_columns(const Resource& resource) {
  auto columns = columns_of(resource);
  return columns.size() == 2 && columns[1].name == "Created At";
}

Value table_row(const Context& context, const Resource& resource, const Value& served) {
  Value row = Value::object();
  row.set("cells", resource.custom
                       ? custom_cells(*resource.custom_kind, resource.version, served, context.now)
                       : api::table_row_cells(resource.group, resource.version, resource.kind,
                                              served, context.now));
  if (!resource.custom) {
    Value conditions =
        api::table_row_conditions(resource.group, resource.version, resource.kind, served);
    if (!conditions.empty()) row.set("conditions", std::move(conditions));
  }
  auto include = context.target.get("includeObject");
  if (include == "None") {
    row.set("object", nullptr);
  } else if (include == "Object") {
    row.set("object", served);
  } else {
    row.set("object", metadata_only(context.answer, served));
  }
  return row;
}

Value table(const Context& context, const Resource& resource, Value metadata, bool columns,
            const std::vector<Value>& served) {
  Value rows = Value::array();
  for (const Value& object : served) rows.push(table_row(context, resource, object));
  return Value::object(
      {{"kind", "Table"},
       {"apiVersion", cat("meta.k8s.io/", context.answer.form_version)},
       {"metadata", std::move(metadata)},
       {"columnDefinitions",
        columns ? api::column_definitions(columns_of(resource)) : Value(nullptr)},
       // Kinds with no columns of their own give null for no rows.
       {"rows",
        served.empty() && !resource.custom && plain_columns(resource) ? Value(nullptr) : rows}});
}

Value in_form(const Context& context, const Resource& resource, const Value& served,
              bool columns = true) {
  switch (context.answer.form) {
    case Form::table: {
      Value metadata = Value::object();
      if (const Value* version = served["metadata"].find("resourceVersion")) {
        metadata.set("resourceVersion", *version);
      }
      return table(context, resource, std::move(metadata), columns, {served});
    }
    case Form::metadata:
      return metadata_only(context.answer, served);
    default:
      return served;
  }
}

/// `bare`: the member is there even when there is nothing to go on with, as lists of custom
/// resources have it.
Value list_metadata(const ListMeta& meta, bool bare) {
  Value out = Value::object();
  if (meta.revision > 0) out.set("resourceVersion", cat(meta.revision));
  if (!meta.continue_token.empty() || bare) out.set("continue", meta.continue_token);
  if (meta.remaining) out.set("remainingItemCount", static_cast<long>(*meta.remaining));
  return out;
}

/// The answer is made of stored bytes, as far as the version shows those as they are.
bool plain_form(const Context& context) {
  const Form form = context.answer.form;
  return (form == Form::object || form == Form::stored) && context.answer.media == Media::json &&
         !context.answer.pretty;
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

/// A stored object in the version that the client asked for.
Result<Value> shown(const Context& context, const Resource& resource, const Value& stored) {
  if (context.answer.form == Form::stored) return stored;
  return to_served(resource, stored);
}

/// Items of a list have no kind and apiVersion, but those of custom resources do, and those that
/// need not be of the list's version.
bool names_items(const Context& context, const Resource& resource) {
  return resource.custom || context.answer.form == Form::stored;
}

Value as_item(const Context& context, const Resource& resource, Value object) {
  if (!names_items(context, resource)) {
    object.erase("kind");
    object.erase("apiVersion");
  }
  return object;
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
  auto served = shown(context, resource, stored);
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
                         table(context, resource, list_metadata(meta, false), true, served));
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

/// Large enough to be packed well, small beside what a client may leave waiting.
constexpr std::size_t kPiece = 256 * 1024;

/// The text of a list, item by item.
class ListPieces final : public Pieces {
 public:
  ListPieces(const Context& context, const Resource& resource,
             std::vector<store::RecordPtr> records, const ListMeta& meta, bool packed)
      : context_(context), resource_(resource), records_(std::move(records)) {
    if (packed) pack_.emplace();
    const Value frame = frame_of(context, resource, meta);
    std::string text;
    std::string mark;
    if (context.answer.media == Media::yaml) {
      style_ = Style::yaml;
      text = json::write_yaml(frame);
      mark = cat("- ", kItems, "\n");
    } else if (context.answer.pretty) {
      style_ = Style::pretty;
      text = json::write_pretty(frame) + '\n';
      mark = cat("\n    \"", kItems, '"');
    } else {
      text = json::write(frame) + '\n';
      mark = cat('"', kItems, '"');
    }
    const auto at = text.rfind(mark);
    end_ = text.substr(at + mark.size());
    text_ = text.substr(0, at);
  }

  Result<bool> next(std::string& out) override {
    const std::size_t before = out.size();
    bool last = false;
    while (out.size() == before && !last) {
      while (at_ < records_.size() && text_.size() < kPiece) {
        DIBS_CHECK(convert());
        if (at_ > 0 && style_ != Style::yaml) text_.push_back(',');
        DIBS_CHECK(append_item(*records_[at_]));
        records_[at_++].reset();
      }
      last = at_ == records_.size();
      if (last) text_.append(end_);
      out.append(pack_ ? pack_->add(text_, last) : text_);
      text_.clear();
    }
    return !last;
  }
  bool calls_out() const override { return resource_.calls_out(); }

  /// Has a webhook, where one converts, make what comes next. Errors: its own, after which this may
  /// be tried again.
  Result<> convert() {
    if (!resource_.conversion || at_ < converted_ || at_ == records_.size()) return success();
    std::vector<Value> objects;
    std::size_t bytes = 0;
    std::size_t end = at_;
    for (; end < records_.size() && bytes < kPiece; ++end) {
      DIBS_TRY(Value object, read_record(context_, *records_[end]));
      objects.push_back(std::move(object));
      bytes += records_[end]->value->size();
    }
    DIBS_TRY(served_, to_served_all(resource_, std::move(objects)));
    first_served_ = at_;
    converted_ = end;
    return success();
  }

 private:
  enum class Style : char { compact, pretty, yaml };
  /// Stands where the items go. What users may have chosen, as descriptions of columns, comes
  /// before.
  static constexpr std::string_view kItems = "the-items-of-the-list";

  static Value frame_of(const Context& context, const Resource& resource, const ListMeta& meta) {
    const Form form = context.answer.form;
    const bool plain = form == Form::object || form == Form::stored;
    Value frame =
        Value::object({{"kind", plain                 ? resource.list_kind
                                : form == Form::table ? "Table"
                                                      : "PartialObjectMetadataList"},
                       {"apiVersion", plain ? resource.api_version()
                                            : cat("meta.k8s.io/", context.answer.form_version)},
                       {"metadata", list_metadata(meta, plain && resource.custom)}});
    if (form == Form::table) {
      frame.set("columnDefinitions", api::column_definitions(columns_of(resource)));
    }
    Value items = Value::array();
    items.push(kItems);
    frame.set(form == Form::table ? "rows" : "items", std::move(items));
    return frame;
  }

  Result<> append_item(const store::Record& record) {
    if (is_sent_as_stored(context_, resource_, record.value)) {
      bytes_.clear();
      record.value->append_to(bytes_);
      const auto add = names_items(context_, resource_) ? append_wire : append_wire_item;
      if (add(text_, bytes_, cat(record.modified))) return success();
    }
    if (resource_.conversion) {
      append_value(in_list(std::move(served_[at_ - first_served_])));
      return success();
    }
    DIBS_TRY(const Value object, read_record(context_, record));
    DIBS_TRY(Value served, shown(context_, resource_, object));
    append_value(in_list(std::move(served)));
    return success();
  }

  Value in_list(Value served) const {
    switch (context_.answer.form) {
      case Form::table:
        return table_row(context_, resource_, served);
      case Form::metadata_list:
        return metadata_only(context_.answer, served);
      default:
        return as_item(context_, resource_, std::move(served));
    }
  }

  void append_value(Value item) {
    switch (style_) {
      case Style::compact:
        return json::write_to(text_, item);
      case Style::yaml: {
        Value alone = Value::array();
        alone.push(std::move(item));
        text_.append(json::write_yaml(alone));
        return;
      }
      case Style::pretty:
        // Below the list, and its key. No string has a line break of its own.
        text_.append("\n    ");
        for (const char c : json::write_pretty(item)) {
          text_.push_back(c);
          if (c == '\n') text_.append("    ");
        }
    }
  }

  const Context& context_;
  const Resource& resource_;
  std::vector<store::RecordPtr> records_;
  std::size_t at_ = 0;
  // Where a webhook converts: what it made of some records, and where these begin and end.
  std::vector<Value> served_;
  std::size_t first_served_ = 0;
  std::size_t converted_ = 0;
  std::string text_;   // not yet packed or sent
  std::string bytes_;  // of one record
  std::string end_;    // what comes after the last item
  Style style_ = Style::compact;
  std::optional<net::Gzip> pack_;
};

/// The same in protobuf. Each item is made twice (api::encode_list_item).
class ProtobufPieces final : public Pieces {
 public:
  /// `schema` of the list; null: of metadata alone.
  static Result<std::shared_ptr<ProtobufPieces>> make(const Context& context,
                                                      const Resource& resource,
                                                      std::vector<store::RecordPtr> records,
                                                      const ListMeta& meta,
                                                      const api::Schema* schema, bool packed) {
    std::shared_ptr<ProtobufPieces> out(
        new ProtobufPieces(context, resource, std::move(records), schema, packed));
    for (const auto& record : out->records_) {
      DIBS_TRY(const std::string item, out->item_of(*record));
      out->left_ += item.size();
    }
    Value frame =
        Value::object({{"kind", schema ? resource.list_kind : "PartialObjectMetadataList"},
                       {"apiVersion", schema ? resource.api_version()
                                             : cat("meta.k8s.io/", context.answer.form_version)},
                       {"metadata", list_metadata(meta, false)}});
    out->text_ = api::encode_list_begin(frame, out->left_);
    return out;
  }

  Result<bool> next(std::string& out) override {
    const std::size_t before = out.size();
    bool last = false;
    while (out.size() == before && !last) {
      while (at_ < records_.size() && text_.size() < kPiece) {
        DIBS_TRY(const std::string item, item_of(*records_[at_]));
        records_[at_++].reset();
        if (item.size() > left_) return Error::internal("an item of the list has changed");
        left_ -= item.size();
        text_.append(item);
      }
      last = at_ == records_.size();
      if (last && left_ != 0) return Error::internal("items of the list have changed");
      if (last) text_.append(api::encode_list_end());
      out.append(pack_ ? pack_->add(text_, last) : text_);
      text_.clear();
    }
    return !last;
  }

 private:
  ProtobufPieces(const Context& context, const Resource& resource,
                 std::vector<store::RecordPtr> records, const api::Schema* schema, bool packed)
      : context_(context), resource_(resource), schema_(schema), records_(std::move(records)) {
    if (packed) pack_.emplace();
  }

  Result<std::string> item_of(const store::Record& record) const {
    DIBS_TRY(const Value object, read_record(context_, record));
    DIBS_TRY(const Value served, shown(context_, resource_, object));
    return api::encode_list_item(schema_ ? served : metadata_only(context_.answer, served),
                                 schema_);
  }

  const Context& context_;
  const Resource& resource_;
  const api::Schema* const schema_;
  std::vector<store::RecordPtr> records_;
  std::size_t at_ = 0;
  std::uint64_t left_ = 0;  // bytes of items that are to come
  std::string text_;        // not yet packed or sent
  std::optional<net::Gzip> pack_;
};

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
               ProtobufPieces::make(context, resource, std::move(records), meta, schema, packed));
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
  auto pieces = std::make_shared<ListPieces>(context, resource, std::move(records), meta, packed);
  // As long as the client can be told.
  DIBS_CHECK(pieces->convert());
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
  DIBS_TRY(const Value served, shown(context, resource, stored));
  return in_form(context, resource, served);
}

std::string present_event(const Context& context, const Resource& resource, std::string_view type,
                          const Value& stored, bool columns) {
  const auto served = shown(context, resource, stored);
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
