#include "server/stored.h"

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::server {

using json::Value;

namespace {

constexpr std::string_view kMetadataKey = ",\"metadata\":{";

}  // namespace

std::string encode_stored(const Value& object) {
  std::string out = "{\"kind\":";
  json::write_string(out, object["kind"].as_string());
  out.append(",\"apiVersion\":");
  json::write_string(out, object["apiVersion"].as_string());
  out.append(kMetadataKey);
  bool first = true;
  for (const auto& [key, value] : object["metadata"].members()) {
    if (key == "resourceVersion") continue;
    if (!first) out.push_back(',');
    first = false;
    json::write_string(out, key);
    out.push_back(':');
    json::write_to(out, value);
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

Result<Value> decode_stored(const store::Record& record) {
  auto object = json::parse(*record.value);
  if (!object.ok() || !object->is_object()) {
    return Error::internal(cat("stored value of ", record.key, " cannot be read"));
  }
  object->mut("metadata").set("resourceVersion", cat(record.modified));
  return object;
}

namespace {

void append_from_metadata(std::string& out, std::string_view stored, std::size_t metadata,
                          store::Revision revision) {
  std::size_t inside = metadata + kMetadataKey.size();
  append(out, stored.substr(metadata + 1, kMetadataKey.size() - 1), "\"resourceVersion\":\"", revision, "\"");
  if (stored[inside] != '}') out.push_back(',');
  out.append(stored.substr(inside));
}

}  // namespace

void append_wire(std::string& out, std::string_view stored, store::Revision revision) {
  std::size_t metadata = stored.find(kMetadataKey);
  out.append(stored.substr(0, metadata + 1));
  append_from_metadata(out, stored, metadata, revision);
}

void append_wire_item(std::string& out, std::string_view stored, store::Revision revision) {
  out.push_back('{');
  append_from_metadata(out, stored, stored.find(kMetadataKey), revision);
}

}  // namespace dibs::server
