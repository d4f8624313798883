#include "server/stored.h"

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"
#include "server/object_forms.h"
#include "store/at_rest.h"

namespace dibs::server {

using json::Value;

namespace {

using FormsPtr = std::shared_ptr<const ObjectForms>;

constexpr std::string_view kKindKey = "{\"kind\":";
constexpr std::string_view kMetadataKey = ",\"metadata\":{";
constexpr std::string_view kMetadataOrder[] = {
    "name",         "generateName",      "namespace",         "uid",
    "generation",   "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "labels",       "annotations",       "ownerReferences",   "finalizers",
    "managedFields"};

void append_head(std::string& out, std::string_view kind, std::string_view api_version) {
  out.append(kKindKey);
  json::write_string(out, kind);
  out.append(",\"apiVersion\":");
  json::write_string(out, api_version);
  out.append(kMetadataKey);
}

}  // namespace

std::string encode_stored(const Value& object) {
  // Grown once for all, so that what is returned is allocated once and in its own size.
  thread_local std::string out;
  constexpr std::size_t kKept = 256 * 1024;
  if (out.capacity() > kKept) out = std::string();
  out.clear();
  append_head(out, object["kind"].as_string(), object["apiVersion"].as_string());
  const Value& metadata = object["metadata"];
  std::size_t start = out.size();
  auto add = [&](std::string_view key, const Value& value) {
    if (out.size() > start) out.push_back(',');
    json::write_string(out, key);
    out.push_back(':');
    json::write_to(out, value);
  };
  // In the order in which upstream writes them: people read raw answers, and scripts cut them up.
  for (std::string_view key : kMetadataOrder) {
    if (const Value* value = metadata.find(key)) add(key, *value);
  }
  for (const auto& [key, value] : metadata.members()) {
    bool known = std::find(std::begin(kMetadataOrder), std::end(kMetadataOrder), key) !=
                 std::end(kMetadataOrder);
    if (key != "resourceVersion" && !known) add(key, value);
  }
  out.push_back('}');
  for (const auto& [key, value] : object.members()) {
    if (key == "kind" || key == "apiVersion" || key == "metadata") continue;
    out.push_back(',');
    json::write_string(out, key);
    out.push_back(':');
    json::write_to(out, value);
  }
  out.push_back('}');
  return out;
}

std::string stored_head(std::string_view kind, std::string_view api_version) {
  std::string out;
  append_head(out, kind, api_version);
  return out;
}

namespace {

Result<FormsPtr> forms_of(const store::Record& record) {
  if (auto known = std::static_pointer_cast<const ObjectForms>(record.attachment())) {
    return known;
  }
  const std::string bytes = *record.value;
  if (const auto unreadable = store::as_unreadable(bytes)) {
    return Error::internal(
        cat("stored value of ", record.key, " cannot be read: ", unreadable->why));
  }
  auto object = json::parse(bytes);
  if (!object.ok() || !object->is_object()) {
    return Error::internal(cat("stored value of ", record.key, " cannot be read"));
  }
  auto forms = std::make_shared<const ObjectForms>(std::move(object).value());
  record.remember(forms);
  return forms;
}

}  // namespace

store::AttachmentPtr attachment_for(const Value& object) {
  return std::make_shared<const ObjectForms>(object);
}

store::Op stored_op(std::string key, const Value& object, store::Revision expected) {
  return {std::move(key), share(encode_stored(object)), expected, attachment_for(object)};
}

Result<Value> decode_stored(const store::Record& record) {
  DIBS_TRY(const FormsPtr forms, forms_of(record));
  return forms->whole(record.modified);
}

Result<Value> decode_kept(const store::Record& record, json::Pool& trees) {
  DIBS_TRY(const FormsPtr forms, forms_of(record));
  return forms->kept(record.modified, trees);
}

namespace {

/// Where the metadata begins with its comma; npos when the bytes are none of ours.
std::size_t find_metadata(std::string_view stored) {
  if (!stored.starts_with(kKindKey)) return std::string_view::npos;
  const std::size_t at = stored.find(kMetadataKey);
  // Something must follow, which tells whether the metadata is empty.
  const bool whole = at != std::string_view::npos && at + kMetadataKey.size() < stored.size();
  return whole ? at : std::string_view::npos;
}

void append_from_metadata(std::string& out, std::string_view stored, std::size_t metadata,
                          std::string_view version) {
  std::size_t inside = metadata + kMetadataKey.size();
  out.append(stored.substr(metadata + 1, kMetadataKey.size() - 1));
  if (!version.empty()) {
    append(out, "\"resourceVersion\":\"", version, "\"");
    if (stored[inside] != '}') out.push_back(',');
  }
  out.append(stored.substr(inside));
}

}  // namespace

bool looks_stored(std::string_view bytes) {
  return find_metadata(bytes) != std::string_view::npos && bytes.ends_with('}');
}

bool append_wire(std::string& out, std::string_view stored, std::string_view version) {
  const std::size_t metadata = find_metadata(stored);
  if (metadata == std::string_view::npos) return false;
  out.append(stored.substr(0, metadata + 1));
  append_from_metadata(out, stored, metadata, version);
  return true;
}

bool append_wire_item(std::string& out, std::string_view stored, std::string_view version) {
  const std::size_t metadata = find_metadata(stored);
  if (metadata == std::string_view::npos) return false;
  out.push_back('{');
  append_from_metadata(out, stored, metadata, version);
  return true;
}

}  // namespace dibs::server
