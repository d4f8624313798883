// Replays what a real API server was sent and answered, on the level of rules: decode, defaults,
// prepare, validate. Steps that need more than that (lists, strategic merge, apply, other users)
// take the recorded answer as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "api/kinds/cluster/event.h"
#include "api/kinds/metadata.h"
#include "api/kinds/rule_table.h"
#include "api/kinds/subresource_rules.h"
#include "api/kinds/workload/scale.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "api/schema/defaults.h"
#include "api/schema/recordings_for_test.h"
#include "json/patch.h"

namespace dibs::api {
namespace {

const RuleTable& my_rules() {
  static const RuleTable table = [] {
    RuleTable out;
    add_storage_rules(out);
    add_workload_rules(out);
    add_job_rules(out);
    add_policy_rules(out);
    add_access_rules(out);
    add_event_rules(out);
    add_admission_rules(out);
    return out;
  }();
  return table;
}

std::string marked(std::string text) {
  static const std::regex uid(
      R"(\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)");
  static const std::regex variable(R"(\$\{uid[a-z0-9]*\})");
  text = std::regex_replace(text, uid, "<uid>");
  return with_marks(std::regex_replace(text, variable, "<uid>"));
}

/// With marks for what differs from run to run, and members in order.
Value marked_value(const Value& value) {
  if (value.is_string()) return marked(value.str());
  Value out = value;
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) out.mut(i) = marked_value(value[i]);
  }
  if (value.is_object()) {
    out = Value::object();
    for (const std::string& key : sorted_keys(value)) {
      out.set(key, key == "resourceVersion" ? Value("<rv>") : marked_value(value[key]));
    }
  }
  return out;
}

struct Target {
  const ResourceInfo* resource = nullptr;
  std::string name_space;
  std::string name;
  std::string subresource;
};

Target target_of(const std::string& full_path) {
  std::string path = full_path.substr(0, full_path.find('?'));
  auto parts = split(path, '/');
  std::string_view group;
  std::string_view version;
  std::size_t at = 0;
  if (parts.size() > 3 && parts[1] == "api") {
    version = parts[2];
    at = 3;
  } else if (parts.size() > 4 && parts[1] == "apis") {
    group = parts[2];
    version = parts[3];
    at = 4;
  } else {
    return {};
  }
  Target target;
  if (parts[at] == "namespaces" && parts.size() > at + 2) {
    target.name_space = parts[at + 1];
    at += 2;
  }
  target.resource = builtin_catalog().find(group, version, parts[at]);
  if (parts.size() > at + 1) target.name = parts[at + 1];
  if (parts.size() > at + 2) target.subresource = parts[at + 2];
  return target;
}

/// Metadata as far as rules decide on it.
Value judged_metadata(const Value& metadata) {
  Value out = Value::object();
  for (std::string_view key : {"name", "labels", "annotations", "generation"}) {
    if (const Value* value = metadata.find(key)) out.set(key, *value);
  }
  return out;
}

class Replay {
 public:
  void step(const std::string& session, std::size_t index, const Value& recorded);
  int judged() const { return judged_; }

 private:
  Result<Value> create(const Target& target, const Value& body);
  Result<Value> update(const Target& target, const Value& old, Value object);
  Result<Value> decoded(const Target& target, const Value& body);
  void scale(const std::string& where, const Value& recorded, const Target& target,
             const std::string& key, const Value& body);
  void compare(const std::string& where, const Value& recorded, const Result<Value>& made);

  std::string expand(std::string text) const {
    std::size_t at = 0;
    while ((at = text.find("${ns}")) != std::string::npos) text.replace(at, 5, session_);
    return text;
  }
  Value expand(const Value& value) const { return *json::parse(expand(json::write(value))); }

  std::string session_;
  std::map<std::string, Value> stored_;
  int judged_ = 0;
};

const KindRules* rules_of(const Target& target) {
  if (!target.resource) return nullptr;
  const auto& [group, kind] = std::tie(target.resource->group, target.resource->kind);
  if (target.subresource == "approval") return subresource_rules(group, kind, "approval");
  auto found = my_rules().find({group, kind});
  return found == my_rules().end() ? nullptr : &found->second;
}

Result<Value> Replay::decoded(const Target& target, const Value& body) {
  std::vector<std::string> ignored;
  DIBS_TRY(Value object, decode(body, *target.resource->schema, Strictness::ignore, ignored));
  apply_defaults(object, *target.resource->schema);
  if (const auto& set = rules_of(target)->set_defaults) set(object);
  return object;
}

Result<Value> Replay::create(const Target& target, const Value& body) {
  const KindRules& rules = *rules_of(target);
  DIBS_TRY(Value object, decoded(target, body));
  Value& metadata = object.mut("metadata");
  metadata.set("uid", "11111111-2222-3333-4444-555555555555");
  if (!target.name_space.empty()) metadata.set("namespace", target.name_space);
  if (rules.tracks_generation) metadata.set("generation", 1);
  if (rules.prepare_create) rules.prepare_create(object, {Time::from_seconds(1577836800), ""});
  FieldErrors errors;
  validate_metadata(object, target.resource->namespaced, rules.name_rule, errors);
  if (rules.validate) rules.validate(object, errors);
  if (!errors.empty()) {
    return errors.to_error(target.resource->kind, target.resource->group,
                           object["metadata"]["name"].as_string());
  }
  return object;
}

Result<Value> Replay::update(const Target& target, const Value& old, Value object) {
  const KindRules& rules = *rules_of(target);
  Value& metadata = object.mut("metadata");
  metadata.set("uid", old["metadata"]["uid"]);
  if (!target.name_space.empty()) metadata.set("namespace", target.name_space);
  if (const Value* generation = old["metadata"].find("generation")) {
    metadata.set("generation", *generation);
  }
  RuleContext context{Time::from_seconds(1577836800), target.subresource};
  FieldErrors errors;
  if (!target.subresource.empty()) {
    Value status = object["status"];
    Value kept = old;
    kept.set("metadata", object["metadata"]);
    kept.set("status", status.is_null() ? Value::object() : status);
    object = kept;
    if (rules.prepare_status) rules.prepare_status(object, old, context);
    if (rules.validate_status) rules.validate_status(object, old, errors);
  } else {
    if (rules.has_status) object.set("status", old["status"]);
    if (rules.prepare_update) rules.prepare_update(object, old, context);
    bool changed = false;
    for (const auto& [key, value] : object.members()) {
      if (key == "metadata" || key == "status") continue;
      changed = changed || !(old[key] == value);
    }
    if (rules.tracks_generation && changed) {
      object.mut("metadata")
          .set("generation", static_cast<long>(old["metadata"]["generation"].as_int() + 1));
    }
    if (rules.validate_update) rules.validate_update(object, old, errors);
  }
  if (!errors.empty()) {
    std::string group = target.resource->kind == "Event" ? "" : target.resource->group;
    return errors.to_error(target.resource->kind, group, old["metadata"]["name"].as_string());
  }
  return object;
}

void Replay::compare(const std::string& where, const Value& recorded, const Result<Value>& made) {
  const Value& expected = recorded["expect"];
  int code = static_cast<int>(expected["code"].as_int());
  const Value& body = expected["body"];
  ++judged_;
  if (code == 422) {
    ASSERT_FALSE(made.ok()) << where << "\n" << json::write(body) << "\n" << json::write(*made);
    std::vector<std::string> fields;
    std::vector<std::string> expected_fields;
    for (const Cause& cause : made.error().details()->causes) {
      // Of equal faults side by side one is enough.
      if (fields.empty() || fields.back() != cause.field || body["details"]["causes"].size() > 1) {
        fields.push_back(cause.field);
      }
    }
    for (const Value& cause : body["details"]["causes"].items()) {
      expected_fields.push_back(cause["field"].str());
    }
    EXPECT_EQ(fields, expected_fields) << where << "\n" << made.error().message();
    // A message left out of the recording dumps the server's own memory.
    if (body.contains("message")) {
      EXPECT_EQ(marked(made.error().message()), marked(body["message"].str())) << where;
    }
    return;
  }
  ASSERT_TRUE(made.ok()) << where << "\n" << made.error().message();
  if (!body.is_object()) return;
  std::set<std::string> ignored;
  for (const Value& pointer : recorded["ignore"].items()) ignored.insert(pointer.str());
  for (const auto& [key, value] : body.members()) {
    if (key == "metadata" || key == "kind" || key == "apiVersion") continue;
    bool partly = recorded["subset"].as_bool();
    for (const std::string& pointer : ignored)
      partly = partly || pointer.starts_with(cat("/", key));
    if (partly) continue;
    EXPECT_EQ(json::write_pretty(marked_value((*made)[key])),
              json::write_pretty(marked_value(value)))
        << where << " " << key;
  }
  if (recorded["subset"].as_bool()) return;
  bool labels_ignored = false;
  for (const std::string& pointer : ignored) {
    labels_ignored = labels_ignored || (pointer.starts_with("/metadata/") &&
                                        pointer.find("managedFields") == std::string::npos);
  }
  if (labels_ignored) return;
  Value ours = marked_value(judged_metadata((*made)["metadata"]));
  Value theirs = marked_value(judged_metadata(body["metadata"]));
  EXPECT_TRUE(ours == theirs) << where << "\n" << json::write(ours) << "\n" << json::write(theirs);
}

void Replay::scale(const std::string& where, const Value& recorded, const Target& target,
                   const std::string& key, const Value& body) {
  if (!stored_.contains(key) || recorded["method"].as_string() == "POST") return;
  const Value old = stored_[key];
  Value wanted =
      recorded["method"].as_string() == "PUT" ? body : json::apply_merge_patch(scale_of(old), body);
  Result<Value> scaled = apply_scale(old, wanted);
  Target whole = target;
  whole.subresource.clear();
  Result<Value> made = scaled.ok() ? update(whole, old, *scaled) : scaled;
  if (made.ok()) stored_[key] = *made;
  compare(where, recorded, made.ok() ? scale_of(*made) : made);
}

void Replay::step(const std::string& session, std::size_t index, const Value& recorded) {
  if (session != session_) {
    session_ = session;
    stored_.clear();
  }
  std::string method = recorded["method"].str();
  std::string path = expand(recorded["path"].str());
  Target target = target_of(path);
  if (!rules_of(target)) return;
  const Value& answer = recorded["expect"]["body"];
  if (method == "DELETE" && answer["kind"].as_string() == target.resource->kind) {
    stored_[cat(target.resource->storage_prefix, target.name_space, "/", target.name)] =
        expand(without_marks(answer));
  }
  if (recorded["body"].is_null()) return;
  std::string type = recorded["headers"]["Content-Type"].str();
  int code = static_cast<int>(recorded["expect"]["code"].as_int());
  bool scale = target.subresource == "scale" || target.subresource == "token";
  std::string where = cat(session, "[", index, "] ", method, " ", path);
  Value body = expand(recorded["body"]);
  std::string name = method == "POST" ? body["metadata"]["name"].str() : target.name;
  std::string key = cat(target.resource->storage_prefix, target.name_space, "/", name);
  auto take_answer = [&] {
    if (code / 100 == 2 && answer.is_object() && !scale && answer.contains("metadata")) {
      stored_[key] = expand(without_marks(answer));
    }
  };
  if (target.subresource == "scale" && (code == 200 || code == 422) &&
      (method == "PUT" || type == "application/merge-patch+json") &&
      !(body["spec"]["replicas"].is_number() && !body["spec"]["replicas"].is_integer())) {
    return this->scale(where, recorded, target, key, body);
  }
  if (target.subresource == "scale" && code == 200 && stored_.contains(key)) {
    // Other patches have the same effect.
    return this->scale(where, recorded, target, key, Value::object({{"spec", answer["spec"]}}));
  }
  if (scale || (code != 200 && code != 201 && code != 422) ||
      json::write(answer).find("before-first-apply") != std::string::npos) {
    return take_answer();
  }
  // What the compiler of expressions says is not for these rules.
  std::string_view told = answer["message"].as_string();
  if (told.find("compilation failed") != std::string_view::npos ||
      told.find("must evaluate to") != std::string_view::npos) {
    return;
  }
  bool dry = path.find("dryRun") != std::string::npos;
  if (method == "POST" && target.name.empty()) {
    if (name.empty()) return;
    Result<Value> made = create(target, body);
    // Who asks for a certificate is written into the request by the server.
    if (recorded.contains("as")) return take_answer();
    compare(where, recorded, made);
    if (made.ok() && !dry) stored_[key] = *made;
    return;
  }
  if (method == "PUT" && !stored_.contains(key)) {
    Result<Value> made = create(target, body);
    compare(where, recorded, made);
    if (made.ok()) stored_[key] = *made;
    return;
  }
  if (!stored_.contains(key) || dry) return;
  bool is_event = target.resource->group == "events.k8s.io";
  const Value old = is_event && stored_[key].contains("involvedObject")
                        ? event_from_core(stored_[key])
                        : stored_[key];
  Value patched;
  if (method == "PUT") {
    patched = body;
  } else if (type == "application/merge-patch+json") {
    patched = json::apply_merge_patch(old, body);
  } else {
    return take_answer();
  }
  if (recorded.contains("as")) return take_answer();
  // The name of the resource, not of the kind: a write the server refuses before the rules.
  if (answer["message"].as_string().find("must be specified for an update") !=
      std::string_view::npos) {
    return;
  }
  Result<Value> object = decoded(target, patched);
  ASSERT_TRUE(object.ok()) << where << object.error().message();
  Result<Value> made = update(target, old, *object);
  compare(where, recorded, made);
  if (made.ok()) stored_[key] = is_event ? event_to_core(*made) : *made;
}

class RecordedKinds : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(RecordedKinds, answers_as_recorded) {
  const char* file = GetParam().first;
  const std::string session = GetParam().second;
  Replay replay;
  bool found = for_each_step(file, [&](const std::string& name, std::size_t i, const Value& step) {
    if (name == session) replay.step(name, i, step);
  });
  if (!found) GTEST_SKIP() << "no recordings at hand";
  EXPECT_GT(replay.judged(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Sessions, RecordedKinds,
    testing::Values(
        std::pair("cluster", "deployment"),
        std::pair("cluster", "replicaset-statefulset-daemonset"),
        std::pair("cluster", "job-cronjob"), std::pair("cluster", "storage-objects"),
        std::pair("cluster", "budget-lease-runtime-class"), std::pair("cluster", "rbac-objects"),
        std::pair("cluster", "pod-priority-runtime-class"), std::pair("cluster", "security-csr"),
        std::pair("cluster", "vap-deny"), std::pair("cluster", "vap-params-warn"),
        std::pair("objects", "generation-rules"), std::pair("objects", "scale-subresource"),
        std::pair("objects", "status-subresource"), std::pair("objects", "names-per-kind"),
        std::pair("objects", "update-creates"), std::pair("reading", "table-workloads"),
        std::pair("reading", "table-jobs"), std::pair("reading", "table-storage"),
        std::pair("reading", "table-access"), std::pair("reading", "table-extensions"),
        std::pair("reading", "events-two-views"), std::pair("reading", "events-tables")),
    [](const auto& info) {
      std::string name = info.param.second;
      for (char& c : name) {
        if (c == '-') c = '_';
      }
      return name;
    });

}  // namespace
}  // namespace dibs::api
