// Compares our cells with every Table a real API server gave in the recorded sessions, as far as
// the object behind a row is known from the steps before it.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "api/print/table.h"
#include "api/schema/recordings_for_test.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/patch.h"

namespace dibs::api {
namespace {

constexpr std::string_view kNow = "2026-11-15T00:00:00Z";

/// A request path in pieces.
struct Target {
  std::string group;
  std::string version;
  std::string resource;
  std::string space;
  std::string name;
  std::string part;

  std::string key(std::string_view object_space, std::string_view object) const {
    return cat(group, ' ', resource, ' ', object_space, ' ', object);
  }
};

Target parse_target(std::string_view path) {
  std::vector<std::string> pieces;
  path = path.substr(0, path.find('?'));
  for (std::string_view piece : split(path, '/')) pieces.emplace_back(piece);
  pieces.resize(12);
  Target target;
  std::size_t at = 3;
  if (pieces[1] == "apis") {
    target.group = pieces[2];
    at = 4;
  }
  target.version = pieces[at - 1];
  if (pieces[at] == "namespaces" && !pieces[at + 2].empty()) {
    target.space = pieces[at + 1];
    at += 2;
  }
  target.resource = pieces[at];
  target.name = pieces[at + 1];
  target.part = pieces[at + 2];
  return target;
}

/// Gives marked times back what is known of them: from the request, else from the object before.
json::Value with_times(const json::Value& answer, const json::Value& request,
                       const json::Value& before) {
  if (answer.is_string()) {
    if (answer.as_string() != "<time>") return answer;
    for (const json::Value* known : {&request, &before}) {
      if (known->is_string() && known->as_string() != "<time>") return *known;
    }
    return kNow;
  }
  json::Value out = answer;
  if (answer.is_array()) {
    for (std::size_t i = 0; i < answer.size(); ++i) {
      out.mut(i) = with_times(answer[i], request[i], before[i]);
    }
  }
  for (const auto& [key, member] : answer.members()) {
    out.set(key, with_times(member, request[key], before[key]));
  }
  return out;
}

void set_default(json::Value& object, std::string_view key, json::Value value) {
  if (object[key].is_null()) object.set(key, std::move(value));
}

/// As much of the server's defaults as cells depend on.
json::Value with_defaults(json::Value object) {
  std::string kind = object["kind"].str();
  object.mut("metadata").set("creationTimestamp", kNow);
  json::Value spec = object["spec"];
  if (kind == "Pod" || kind == "PersistentVolumeClaim") {
    object.set("status", json::Value::object({{"phase", "Pending"}}));
    if (!spec["schedulingGates"].empty()) {
      object.mut("status").set("conditions", *json::parse(R"([{"type": "PodScheduled",
                                   "status": "False", "reason": "SchedulingGated"}])"));
    }
  }
  for (std::string_view with_replicas : {"Deployment", "ReplicaSet", "StatefulSet"}) {
    if (kind == with_replicas) set_default(spec, "replicas", 1);
  }
  if (kind.starts_with("PersistentVolume")) set_default(spec, "volumeMode", "Filesystem");
  if (kind == "CronJob") set_default(spec, "suspend", false);
  if (kind == "Job") {
    if (spec["parallelism"].is_null()) set_default(spec, "completions", 1);
    constexpr std::string_view kSelector =
        R"({"matchLabels": {"batch.kubernetes.io/controller-uid": "<uid>"}})";
    spec.set("selector", *json::parse(kSelector));
  }
  if (kind == "Service") {
    set_default(spec, "type", "ClusterIP");
    for (std::size_t i = 0; i < spec["ports"].size(); ++i) {
      set_default(spec.mut("ports").mut(i), "protocol", "TCP");
    }
  }
  if (kind == "DeviceTaintRule") set_default(spec.mut("taint"), "timeAdded", kNow);
  if (kind == "CustomResourceDefinition") {
    object.set("status",
               *json::parse(R"({"conditions": [{"type": "Established", "status": "True"}]})"));
  }
  if (!object["spec"].is_null()) object.set("spec", spec);
  return object;
}

bool is_age(std::string_view text) {
  static const std::regex age(R"(\d+[smhdy](\d+[smhd])?)");
  return std::regex_match(text.begin(), text.end(), age);
}

bool cell_agrees(const json::Value& expected, const json::Value& cell) {
  if (expected.is_string() && cell.is_string()) {
    std::string_view text = expected.as_string();
    if (text == "<age>" || is_age(text)) return is_age(cell.as_string());
    if (text == "<time>") return parse_rfc3339(cell.as_string()).ok();
  }
  return expected == cell;
}

class Recording {
 public:
  explicit Recording(std::string session) : session_(std::move(session)) {}

  void play(std::size_t index, const json::Value& step) {
    std::string path = step["path"].str();
    if (path.empty()) return;
    Target target = parse_target(path);
    const json::Value& body = step["expect"]["body"];
    std::string_view kind = body["kind"].as_string();
    where_ = cat(session_, " step ", index);
    if (kind.starts_with("Partial") || step["expect"]["code"].as_int() >= 300) return;
    if (kind == "Table") {
      compare(target, step, body);
    } else if (body.is_null() || kind.empty()) {
      replay(target, step);
    } else if (kind.ends_with("List")) {
      std::string_view item_kind = kind.substr(0, kind.size() - 4);
      for (const json::Value& item : body["items"].items()) {
        keep(target, item_kind, item, json::null_value());
      }
    } else if (kind == "Scale") {
      auto found = objects_.find(target.key(target.space, target.name));
      if (found == objects_.end()) return;
      found->second.mut("spec").set("replicas", body["spec"]["replicas"]);
    } else if (kind != "Status" && body["metadata"].is_object() &&
               (target.part.empty() || target.part == "status" || target.part == "approval")) {
      keep(target, kind, body, step["body"]);
      if (kind == "CustomResourceDefinition") keep_definition(body);
    }
  }

  static int compared;
  static std::set<std::string> kinds;

 private:
  void keep(const Target& target, std::string_view kind, const json::Value& object,
            const json::Value& request) {
    kinds_[cat(target.group, ' ', target.resource)] = kind;
    json::Value& slot = objects_[target.key(object["metadata"]["namespace"].as_string(),
                                            object["metadata"]["name"].as_string())];
    slot = with_times(object, request, slot);
  }

  /// For steps whose answer was not recorded: what the request makes of the object.
  void replay(const Target& target, const json::Value& step) {
    std::string_view method = step["method"].as_string();
    const json::Value& request = step["body"];
    std::string name = method == "POST" ? request["metadata"]["name"].str() : target.name;
    json::Value& slot = objects_[target.key(target.space, name)];
    if (method == "DELETE" && slot.is_object()) {
      slot.mut("metadata").set("deletionTimestamp", kNow);
    }
    if (!request.is_object()) return;
    if (method == "PATCH" && slot.is_object()) slot = json::apply_merge_patch(slot, request);
    if (method == "POST" && request["kind"].is_string()) {
      slot = with_defaults(request);
      if (request["kind"].as_string() == "CustomResourceDefinition") keep_definition(request);
      kinds_[cat(target.group, ' ', target.resource)] = request["kind"].str();
    }
  }

  void keep_definition(const json::Value& definition) {
    const json::Value& spec = definition["spec"];
    for (const json::Value& version : spec["versions"].items()) {
      custom_.insert_or_assign(cat(spec["group"].as_string(), ' ', version["name"].as_string(), ' ',
                                   spec["names"]["plural"].as_string()),
                               CustomPrinter(version["additionalPrinterColumns"]));
    }
  }

  void compare(const Target& target, const json::Value& step, const json::Value& table) {
    if (!target.part.empty()) return;
    std::string kind = kinds_[cat(target.group, ' ', target.resource)];
    if (kind.empty()) return;
    auto custom = custom_.find(cat(target.group, ' ', target.version, ' ', target.resource));
    const std::vector<Column>& columns = custom != custom_.end()
                                             ? custom->second.columns()
                                             : table_columns(target.group, target.version, kind);
    std::size_t name_column = compare_columns(columns, table["columnDefinitions"]);
    Time now = *parse_rfc3339(kNow);
    for (const json::Value& row : table["rows"].items()) {
      const json::Value* object = find(target, row["cells"][name_column].as_string());
      if (object == nullptr) continue;
      json::Value cells = custom != custom_.end()
                              ? custom->second.cells(*object, now)
                              : table_row_cells(target.group, target.version, kind, *object, now);
      compare_cells(step["ignore"], row["cells"], cells);
      EXPECT_EQ(row["conditions"],
                table_row_conditions(target.group, target.version, kind, *object))
          << where_;
      ++compared;
      kinds.insert(kind);
    }
  }

  std::size_t compare_columns(const std::vector<Column>& columns, const json::Value& expected) {
    std::size_t name_column = 0;
    EXPECT_EQ(columns.size(), expected.size()) << where_;
    for (std::size_t i = 0; i < std::min(columns.size(), expected.size()); ++i) {
      EXPECT_EQ(columns[i].name, expected[i]["name"].as_string()) << where_;
      EXPECT_EQ(columns[i].type, expected[i]["type"].as_string()) << where_ << columns[i].name;
      EXPECT_EQ(columns[i].format, expected[i]["format"].as_string()) << where_ << columns[i].name;
      EXPECT_EQ(columns[i].priority, expected[i]["priority"].as_int()) << where_;
      if (columns[i].name == "Name") name_column = i;
    }
    return name_column;
  }

  void compare_cells(const json::Value& ignored, const json::Value& expected,
                     const json::Value& cells) {
    ASSERT_EQ(expected.size(), cells.size()) << where_;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      bool skipped = false;
      for (const json::Value& pointer : ignored.items()) {
        skipped = skipped || pointer.as_string() == cat("/rows/*/cells/", i);
      }
      EXPECT_TRUE(skipped || cell_agrees(expected[i], cells[i]))
          << where_ << ", cell " << i << ": expected " << json::write(expected) << ", got "
          << json::write(cells);
    }
  }

  const json::Value* find(const Target& target, std::string_view name) const {
    auto found = objects_.find(target.key(target.space, name));
    bool known = found != objects_.end() && found->second.is_object();
    return known ? &found->second : nullptr;
  }

  std::string session_;
  std::string where_;
  std::map<std::string, json::Value> objects_;
  std::map<std::string, std::string> kinds_;
  std::map<std::string, CustomPrinter> custom_;
};

int Recording::compared = 0;
std::set<std::string> Recording::kinds;

std::string with_namespace(std::string text, std::string_view name) {
  constexpr std::string_view kMark = "${ns}";
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    text.replace(at, kMark.size(), name);
  }
  return text;
}

TEST(RecordedTables, have_our_cells) {
  std::string folder = conformance_folder();
  if (folder.empty()) GTEST_SKIP() << "no conformance data";
  for (std::string_view name : {"reading", "cluster", "objects", "resource"}) {
    auto file = json::parse(read_file(cat(folder, "/http/", name, ".json")));
    ASSERT_TRUE(file.ok()) << name;
    for (const json::Value& session : (*file)["sessions"].items()) {
      std::string session_name = session["name"].str();
      auto steps = json::parse(with_namespace(json::write(session["steps"]), session_name));
      ASSERT_TRUE(steps.ok());
      Recording recording(session_name);
      std::size_t index = 0;
      for (const json::Value& step : steps->items()) recording.play(index++, step);
    }
  }
  EXPECT_GT(Recording::compared, 240);
  EXPECT_GE(Recording::kinds.size(), 50u);
}

}  // namespace
}  // namespace dibs::api
