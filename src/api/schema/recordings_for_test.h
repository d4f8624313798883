#pragma once
// Tests only: the recorded sessions of a real API server, where they are at hand.

#include <functional>
#include <regex>
#include <string>

#include "api/schema/builtin.h"
#include "base/strings.h"
#include "base/test_data.h"
#include "json/parse.h"

namespace dibs::api {

/// The folder of conformance data, or "" when there is none.
inline std::string conformance_folder() { return dibs::test::conformance_data().string(); }
using dibs::test::read_file;

/// Calls `each` with (session name, step index, step) for all sessions of a file. False when the
/// file is absent.
inline bool for_each_step(
    std::string_view file,
    const std::function<void(const std::string&, std::size_t, const json::Value&)>& each) {
  std::string folder = conformance_folder();
  if (folder.empty()) return false;
  std::string text = read_file(cat(folder, "/http/", file, ".json"));
  if (text.empty()) return false;
  auto parsed = json::parse(text);
  if (!parsed.ok()) return false;
  for (const json::Value& session : (*parsed)["sessions"].items()) {
    std::size_t index = 0;
    for (const json::Value& step : session["steps"].items())
      each(session["name"].str(), index++, step);
  }
  return true;
}

/// The body's schema of a request path, or null: that of the sub-resource where there is one.
inline const Schema* schema_of_path(std::string_view path) {
  path = path.substr(0, path.find('?'));
  auto parts = split(path, '/');
  std::string group;
  std::string version;
  std::size_t at = 0;
  if (parts.size() > 3 && parts[1] == "api") {
    version = parts[2];
    at = 3;
  } else if (parts.size() > 4 && parts[1] == "apis") {
    group = parts[2];
    version = parts[3];
    at = 4;
  } else {
    return nullptr;
  }
  if (parts[at] == "namespaces" && parts.size() > at + 2 && parts[at + 2] != "status" &&
      parts[at + 2] != "finalize")
    at += 2;
  const ResourceInfo* resource = builtin_catalog(37).find(group, version, parts[at]);
  if (resource == nullptr) return nullptr;
  if (parts.size() > at + 2) {
    const SubresourceInfo* sub = resource->subresource(parts[at + 2]);
    return sub == nullptr ? nullptr
                          : builtin_schema(sub->kind.group, sub->kind.version, sub->kind.kind);
  }
  return resource->schema;
}

/// The schema of what an object says it is, or null.
inline const Schema* schema_of_object(const json::Value& object) {
  std::string api_version = object["apiVersion"].str();
  std::size_t slash = api_version.find('/');
  std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
  std::string version = slash == std::string::npos ? api_version : api_version.substr(slash + 1);
  return builtin_schema(group, version, object["kind"].as_string());
}

/// Marks that stand for values of a form of their own get such a value.
inline json::Value without_marks(const json::Value& value) {
  if (value.is_string()) {
    std::string text = value.str();
    if (text == "<time>" || text == "${t}" || text == "${t2}") return "2020-01-01T00:00:00Z";
    return value;
  }
  json::Value out = value;
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) out.mut(i) = without_marks(value[i]);
  }
  if (value.is_object()) {
    for (const auto& [key, member] : value.members()) out.set(key, without_marks(member));
  }
  return out;
}

/// Times within a message as the recordings mark them.
inline std::string with_marks(const std::string& text) {
  static const std::regex time(R"(\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)");
  return std::regex_replace(text, time, "<time>");
}

}  // namespace dibs::api
