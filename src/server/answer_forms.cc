#include "server/answer_forms.h"

#include "base/strings.h"
#include "server/custom_kinds.h"

namespace dibs::server {

Value metadata_only(const Answer& answer, const Value& object) {
  return Value::object({{"kind", "PartialObjectMetadata"},
                        {"apiVersion", cat("meta.k8s.io/", answer.form_version)},
                        {"metadata", object["metadata"]}});
}

std::vector<api::Column> columns_of(const Resource& resource) {
  if (resource.custom) return custom_columns(*resource.custom_kind, resource.version);
  return api::table_columns(resource.group, resource.version, resource.kind);
}

namespace {

bool plain_columns(const Resource& resource) {
  auto columns = columns_of(resource);
  return columns.size() == 2 && columns[1].name == "Created At";
}

}  // namespace

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

Value table_of(const Context& context, const Resource& resource, Value metadata, bool columns,
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

Value in_form(const Context& context, const Resource& resource, const Value& served, bool columns) {
  switch (context.answer.form) {
    case Form::table: {
      Value metadata = Value::object();
      if (const Value* version = served["metadata"].find("resourceVersion")) {
        metadata.set("resourceVersion", *version);
      }
      return table_of(context, resource, std::move(metadata), columns, {served});
    }
    case Form::metadata:
      return metadata_only(context.answer, served);
    default:
      return served;
  }
}

Value list_metadata(const ListMeta& meta, bool bare) {
  Value out = Value::object();
  if (meta.revision > 0) out.set("resourceVersion", cat(meta.revision));
  if (!meta.continue_token.empty() || bare) out.set("continue", meta.continue_token);
  if (meta.remaining) out.set("remainingItemCount", static_cast<long>(*meta.remaining));
  return out;
}

bool plain_form(const Context& context) {
  const Form form = context.answer.form;
  return (form == Form::object || form == Form::stored) && context.answer.media == Media::json &&
         !context.answer.pretty;
}

Result<Value> shown_form(const Context& context, const Resource& resource, const Value& stored) {
  if (context.answer.form == Form::stored) return stored;
  return to_served(resource, stored);
}

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

}  // namespace dibs::server
