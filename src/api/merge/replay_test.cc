// Replays the writes of recorded sessions at the level of functions: each step's object is what the
// real server answered, our functions must come to the same merged values, the same managedFields
// and the same errors.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <map>

#include "api/merge/apply.h"
#include "api/merge/strategic_merge.h"
#include "api/merge/test_support.h"
#include "api/merge/typed.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/patch.h"
#include "json/yaml.h"

namespace dibs::api {
namespace {

using test::SchemaBuilder;

// The marks of a recording as values that decode; ${ns} and the like are left as they are.
Value unmarked(const Value& value) {
  if (value.is_string()) {
    std::string text = value.str();
    const std::pair<std::string_view, std::string_view> marks[] = {
        {"<time>", "2020-01-01T00:00:00Z"}, {"<ip>", "10.0.0.9"}, {"<uid>", "u"}, {"<rv>", "1"}};
    for (const auto& [mark, plain] : marks) {
      for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
        text.replace(at, mark.size(), plain);
      }
    }
    return Value(text);
  }
  if (value.is_array()) {
    Value out = Value::array();
    for (const Value& item : value.items()) out.push(unmarked(item));
    return out;
  }
  if (!value.is_object()) return value;
  Value out = Value::object();
  for (const auto& [key, item] : value.members()) out.set(key, unmarked(item));
  return out;
}

Value with_namespace(const Value& value, std::string_view name) {
  std::string text = json::write(value);
  for (auto at = text.find("${ns}"); at != std::string::npos; at = text.find("${ns}")) {
    text.replace(at, 5, name);
  }
  return *json::parse(text);
}

// The answer with our values where it has only marks.
Value filled(const Value& answer, const Value& ours) {
  const std::string_view text = answer.as_string();
  if (ours.is_string() && (text == "u" || text == "10.0.0.9" || text == "2020-01-01T00:00:00Z")) {
    return ours;
  }
  Value out = answer;
  if (answer.is_array() && ours.is_array()) {
    for (std::size_t i = 0; i < std::min(answer.size(), ours.size()); ++i) {
      out.mut(i) = filled(answer[i], ours[i]);
    }
  }
  for (const auto& [key, value] : answer.members()) {
    if (const Value* own = ours.find(key)) out.set(key, filled(value, *own));
  }
  return out;
}

// A value that stands for "not set", which the server's defaults replace.
bool is_zero(const Value& value) {
  return value.is_null() || (value.is_string() && value.as_string().empty()) ||
         (value.is_number() && value.as_double() == 0) ||
         ((value.is_object() || value.is_array()) && value.empty());
}

// Where `part` is not in `whole`; "" when it all is. Lists must be as long and in the same order.
std::string missing_from(const Value& whole, const Value& part, const std::string& path) {
  if (part.is_object() && whole.is_object()) {
    for (const auto& [key, value] : part.members()) {
      const Value* found = whole.find(key);
      if (is_zero(value)) continue;
      if (found == nullptr) return cat(path, '.', key, ": not in the recording");
      if (auto fault = missing_from(*found, value, cat(path, '.', key)); !fault.empty())
        return fault;
    }
    return "";
  }
  if (part.is_array() && whole.is_array()) {
    if (part.size() != whole.size())
      return cat(path, ": ", part.size(), " items, recorded ", whole.size());
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (auto fault = missing_from(whole[i], part[i], cat(path, '[', i, ']')); !fault.empty())
        return fault;
    }
    return "";
  }
  return part == whole ? "" : cat(path, ": ", json::write(part), ", recorded ", json::write(whole));
}

// managedFields with a mark for every time and every uid.
std::string marked(const Value& entries) {
  Value out = Value::array();
  for (const Value& entry : entries.items()) {
    Value copy = entry;
    if (copy.contains("time")) copy.set("time", "<time>");
    out.push(copy);
  }
  std::string text = json::write(out);
  const std::string_view form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  for (std::size_t at = 0; at + form.size() <= text.size(); ++at) {
    bool is_uid = true;
    for (std::size_t i = 0; is_uid && i < form.size(); ++i) {
      const char c = text[at + i];
      is_uid = form[i] == '-' ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    }
    if (is_uid) text.replace(at, form.size(), "<uid>");
  }
  return text;
}

struct Target {
  std::string group, version, plural, name, subresource;
  std::map<std::string, std::string> query;
};

Target parse_target(std::string_view path) {
  Target target;
  const auto question = path.find('?');
  if (question != std::string_view::npos) {
    for (const auto pair : split(path.substr(question + 1), '&')) {
      std::string value;
      percent_decode(pair.substr(std::min(pair.find('=') + 1, pair.size())), true, value);
      target.query[std::string(pair.substr(0, pair.find('=')))] = value;
    }
  }
  auto parts =
      split(path.substr(1, question == std::string_view::npos ? question : question - 1), '/');
  std::size_t at = 1;
  if (parts.size() < 3 || (parts[0] != "api" && parts[0] != "apis")) return target;
  if (parts[0] == "apis") target.group = parts[at++];
  if (at < parts.size()) target.version = parts[at++];
  if (at + 2 < parts.size() && parts[at] == "namespaces") at += 2;
  if (at < parts.size()) target.plural = parts[at++];
  if (at < parts.size()) target.name = parts[at++];
  if (at < parts.size()) target.subresource = parts[at++];
  return target;
}

class Replay {
 public:
  explicit Replay(std::string session) : session_(std::move(session)) {}

  void run(const Value& recorded_steps) {
    const Value steps = with_namespace(recorded_steps, session_);
    std::size_t number = 0;
    for (const Value& step : steps.items()) {
      ++number;
      if (step.contains("pause")) now_ = now_ + std::chrono::seconds(2);
      if (!step.contains("method")) continue;
      SCOPED_TRACE(cat(session_, " step ", number, ' ', step["method"].as_string(), ' ',
                       step["path"].as_string(), ' ', json::write(step["body"]).substr(0, 300)));
      run_step(step);
    }
  }

  int merges = 0;    // patches compared
  int records = 0;   // managedFields compared
  int refusals = 0;  // errors compared

 private:
  struct Kind {
    const Schema* schema = nullptr;
    std::string api_version;
    std::string kind;
    bool custom = false;
  };

  Kind kind_of(const Target& target) {
    if (const ResourceInfo* info =
            builtin_catalog().find(target.group, target.version, target.plural)) {
      return {info->schema, info->api_version(), info->kind, false};
    }
    const auto custom = custom_.find(cat(target.group, '/', target.version, '/', target.plural));
    return custom == custom_.end() ? Kind() : custom->second;
  }

  void learn_custom(const Value& definition) {
    const Value& spec = definition["spec"];
    for (const Value& version : spec["versions"].items()) {
      const std::string api_version =
          cat(spec["group"].as_string(), '/', version["name"].as_string());
      custom_[cat(api_version, '/', spec["names"]["plural"].as_string())] = {
          &schemas_.from_openapi(version["schema"]["openAPIV3Schema"]), api_version,
          spec["names"]["kind"].str(), true};
    }
  }

  void run_step(const Value& step) {
    const Target target = parse_target(step["path"].as_string());
    const Kind kind = kind_of(target);
    if (kind.schema == nullptr) return;
    if (kind.kind == "CustomResourceDefinition" && step["expect"]["code"].as_int() < 300) {
      learn_custom(step["expect"]["body"]);
    }
    const std::string_view method = step["method"].as_string();
    const Value& expect = step["expect"];
    const auto code = expect["code"].as_int();
    Value answer = unmarked(expect["body"]);
    const std::string name = method == "POST" ? answer["metadata"]["name"].str() : target.name;
    Value& live = live_[cat(target.group, '/', target.plural, '/', name)];
    const bool dry = target.query.contains("dryRun");
    static const FieldSet status = FieldSet::of({{"status"}});
    static const FieldSet spec = FieldSet::of({{"spec"}});
    FieldWriter writer;
    writer.schema = kind.schema;
    writer.api_version = kind.api_version;
    writer.kind = kind.kind;
    const auto manager = target.query.find("fieldManager");
    const std::string agent(step["headers"]["User-Agent"].as_string("conformance"));
    writer.manager =
        manager != target.query.end() && !manager->second.empty()
            ? std::string_view(manager->second)
            : std::string_view(agent).substr(0, std::min<std::size_t>(agent.find('/'), 128));
    writer.subresource = target.subresource;
    writer.reset = target.subresource == "status" ? &spec : &status;
    writer.custom = kind.custom;
    writer.now = now_;
    const Value* old = live.is_null() ? nullptr : &live;
    // Conversion is the server's part: an object written in two versions is left alone from there
    // on.
    if (old != nullptr && live["apiVersion"].as_string() != kind.api_version) {
      if (method != "GET") live = Value("converted");
      return;
    }

    const std::string_view type = step["headers"]["Content-Type"].as_string("application/json");
    if (method == "GET" && code == 200 && !target.name.empty() && target.subresource.empty()) {
      compare_entries(step, answer, live["metadata"]["managedFields"]);
      return;
    }
    if (method == "DELETE" && code == 200 && answer["kind"].as_string() == "Status") {
      live = Value();
      return;
    }
    if (target.subresource == "scale") return scale_step(step, writer, live, code, answer, dry);
    if (type == "application/apply-patch+yaml") {
      return apply_step(step, writer, live, old, code, answer, dry);
    }
    if (method != "POST" && method != "PUT" && method != "PATCH") return;
    if (type == "application/strategic-merge-patch+json") {
      strategic_step(step, *kind.schema, live, code, answer);
    } else {
      answer = filled(answer, sent_object(step, type, live));
    }
    if (code != 200 && code != 201) return;
    Value object = answer;
    bool forget = false;
    object.mut("metadata").erase("managedFields");
    const Value sent = sent_object(step, type, live);
    if (const Value* entries = sent["metadata"].find("managedFields")) {
      object.mut("metadata").set("managedFields", *entries);
      forget = resets_managed_fields(object);
    }
    object = track_update(writer, old, object, forget);
    compare_entries(step, answer, object["metadata"]["managedFields"]);
    if (!dry) live = object;
  }

  // The object as the client would have it.
  Value sent_object(const Value& step, std::string_view type, const Value& live) {
    const Value& sent = step["body"];
    if (type == "application/merge-patch+json") return json::apply_merge_patch(live, sent);
    if (type == "application/json-patch+json") {
      auto patched = json::apply_json_patch(live, sent);
      return patched.ok() ? *patched : Value();
    }
    return type == "application/strategic-merge-patch+json" ? Value() : sent;
  }

  void compare_entries(const Value& step, const Value& answer, const Value& entries) {
    if (step["subset"].as_bool()) return;
    for (const Value& ignored : step["ignore"].items()) {
      if (ignored.as_string() == "/metadata/managedFields") return;
    }
    ++records;
    EXPECT_EQ(marked(entries), marked(answer["metadata"]["managedFields"]));
  }

  // What the merge made is in the answer, as far as it goes: the server adds defaults.
  void compare_merged(const Schema& schema, const Value& merged, const Value& answer, bool custom) {
    std::vector<std::string> unknown;
    auto object = custom ? merged : decode(merged, schema, Strictness::ignore, unknown);
    ASSERT_TRUE(object.ok()) << object.error().message();
    Value ours = *object;
    for (const char* server_side : {"managedFields", "generation", "resourceVersion"}) {
      ours.mut("metadata").erase(server_side);
    }
    ++merges;
    EXPECT_EQ(missing_from(answer, ours, ""), "");
  }

  void strategic_step(const Value& step, const Schema& schema, const Value& live, std::int64_t code,
                      Value& answer) {
    if (live.is_null()) return;
    Value patch = step["body"];
    if (step.contains("raw")) {
      auto parsed = json::parse(step["raw"].as_string());
      if (!parsed.ok()) return;
      patch = *parsed;
    }
    Value bare = live;
    bare.mut("metadata").erase("managedFields");
    const auto merged = strategic_merge(bare, patch, schema);
    if (code == 500 ||
        (code == 400 && answer["message"].as_string().find("name") == std::string_view::npos)) {
      ASSERT_FALSE(merged.ok());
      ++refusals;
      EXPECT_EQ(merged.error().message(), answer["message"].as_string());
      EXPECT_EQ(http_status(merged.error().code()), code);
      EXPECT_EQ(reason(merged.error().code()), answer["reason"].as_string());
      return;
    }
    ASSERT_TRUE(merged.ok()) << merged.error().message();
    if (code != 200) return;
    Value ours = *merged;
    // Through a sub-resource the rest of the patch is dropped; that is the server's part.
    const bool is_status = step["path"].as_string().find("/status") != std::string_view::npos;
    ours.set(is_status ? "spec" : "status", answer[is_status ? "spec" : "status"]);
    if (is_status) ours.mut("metadata").set("labels", answer["metadata"]["labels"]);
    answer = filled(answer, ours);
    compare_merged(schema, ours, answer, false);
  }

  void apply_step(const Value& step, const FieldWriter& writer, Value& live, const Value* old,
                  std::int64_t code, Value& answer, bool dry) {
    Value config = step["body"];
    if (step.contains("raw")) {
      std::vector<std::string> duplicates;
      auto parsed = json::parse_yaml(step["raw"].as_string(), &duplicates);
      if (!parsed.ok()) return;
      config = *parsed;
    }
    const bool force = step["path"].as_string().find("force=true") != std::string_view::npos;
    auto result = apply(writer, old, config, force);
    const std::string_view message = answer["message"].as_string();
    const bool is_ours = message.starts_with("Apply failed") ||
                         message.starts_with("failed to create typed") ||
                         message.starts_with("invalid object type: /v1, Kind=Secret") ||
                         message == "metadata.managedFields must be nil";
    if (is_ours) {
      ASSERT_FALSE(result.ok());
      ++refusals;
      EXPECT_EQ(result.error().message(), message);
      EXPECT_EQ(http_status(result.error().code()), code);
      EXPECT_EQ(reason(result.error().code()), answer["reason"].as_string());
      const Value& causes = answer["details"]["causes"];
      for (std::size_t i = 0; i < causes.size(); ++i) {
        ASSERT_NE(result.error().details(), nullptr);
        const auto& ours = result.error().details()->causes;
        ASSERT_EQ(ours.size(), causes.size());
        EXPECT_EQ(ours[i].reason, causes[i]["reason"].as_string());
        EXPECT_EQ(ours[i].message, causes[i]["message"].as_string());
        EXPECT_EQ(ours[i].field, causes[i]["field"].as_string());
      }
      return;
    }
    if (code != 200 && code != 201) return;
    ASSERT_TRUE(result.ok()) << result.error().message();
    Value ours = result->object;
    const bool is_status = writer.subresource == "status";
    ours.set(is_status ? "spec" : "status", answer[is_status ? "spec" : "status"]);
    answer = filled(answer, ours);
    compare_merged(*writer.schema, ours, answer, writer.custom);
    const Value entries = result->object["metadata"]["managedFields"];
    compare_entries(step, answer, entries);
    if (dry) return;
    live = answer;
    live.mut("metadata").erase("managedFields");
    if (!entries.is_null()) live.mut("metadata").set("managedFields", entries);
  }

  // The Scale is made of the live object, written, and its owners go back into the object.
  void scale_step(const Value& step, const FieldWriter& writer, Value& live, std::int64_t code,
                  Value& answer, bool dry) {
    if (live.is_null() || step["method"].as_string() == "GET") return;
    static const FieldPath replicas = {PathElement::field("spec"), PathElement::field("replicas")};
    const Value& entries = live["metadata"]["managedFields"];
    Value scale = Value::object({{"apiVersion", "autoscaling/v1"}, {"kind", "Scale"}});
    scale.set("metadata", Value::object({{"name", live["metadata"]["name"]},
                                         {"namespace", live["metadata"]["namespace"]},
                                         {"uid", "u"},
                                         {"resourceVersion", "1"},
                                         {"creationTimestamp", "2020-01-01T00:00:00Z"}}));
    scale.set("spec", Value::object());
    if (live["spec"]["replicas"].as_int() != 0)
      scale.mut("spec").set("replicas", live["spec"]["replicas"]);
    scale.set("status", answer["status"]);
    const Value scale_entries = managed_fields_to_scale(entries, replicas);
    if (!scale_entries.is_null()) scale.mut("metadata").set("managedFields", scale_entries);
    FieldWriter scaler = writer;
    scaler.schema = builtin_schema("autoscaling", "v1", "Scale");
    ASSERT_NE(scaler.schema, nullptr);
    scaler.api_version = "autoscaling/v1";
    scaler.kind = "Scale";
    if (step["headers"]["Content-Type"].as_string() == "application/apply-patch+yaml") {
      apply_step(step, scaler, scale, &scale, code, answer, dry);
    } else if (code == 200) {
      scale = track_update(scaler, &scale, answer);
    }
    if (code != 200 || dry) return;
    const Value owners = managed_fields_from_scale(entries, scale["metadata"]["managedFields"],
                                                   replicas, writer.api_version);
    live.mut("spec").set("replicas", answer["spec"]["replicas"]);
    live.mut("metadata").set("managedFields", owners);
  }

  std::string session_;
  SchemaBuilder schemas_;
  std::map<std::string, Kind> custom_;
  std::map<std::string, Value> live_;
  Time now_ = Time::from_seconds(1'700'000'000);
};

class ReplayTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ReplayTest, comes_to_the_recorded_results) {
  const auto names = split(GetParam(), '/');
  const Value steps = test::session_steps(names[0], names[1]);
  if (steps.is_null()) GTEST_SKIP() << "no recordings here";

  Replay replay{std::string(names[1])};
  replay.run(steps);

  EXPECT_GT(replay.merges + replay.records + replay.refusals, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Sessions, ReplayTest,
    ::testing::Values(
        "objects/smp-containers", "objects/smp-pod-lists", "objects/smp-directives",
        "objects/smp-errors", "objects/smp-status-conditions", "objects/apply-configmap",
        "objects/apply-conflicts", "objects/apply-list-maps", "objects/apply-sets-and-atomics",
        "objects/apply-status", "objects/apply-errors", "objects/apply-dry-run",
        "objects/managed-fields-update", "objects/managed-fields-deployment",
        "objects/managed-fields-apply", "objects/managed-fields-reset", "objects/dry-run-verbs",
        "objects/scale-subresource", "objects/delete-finalizers", "objects/custom-resource-writes",
        "cluster/pod-update", "cluster/deployment", "cluster/crd-list-types",
        "cluster/crd-status-scale", "resource/dra-claim-reserved-for",
        "resource/dra-claim-binding-conditions", "resource/dra-claim-patch-status",
        "resource/dra-claim-apply-status", "resource/dra-slice-apply", "resource/dra-slice-patches",
        "resource/dra-claim-delete-protection", "resource/dra-pod-claim-statuses",
        "resource/dra-pod-extended-resources", "resource/dra-workloads-with-claims"),
    [](const auto& info) {
      std::string name = info.param;
      for (char& c : name) {
        if (c == '-' || c == '/') c = '_';
      }
      return name;
    });

// Prints what tracking costs; the bound is far off so that a slow machine does not fail.
TEST(Tracking, of_a_new_pod_is_cheap) {
  const Schema* schema = builtin_schema("", "v1", "Pod");
  ASSERT_NE(schema, nullptr);
  const Value pod = test::from_text(
      "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'n','labels':{'app':'x',"
      "'tier':'y'}},"
      "'spec':{'containers':[{'name':'c','image':'app:1','ports':[{'containerPort':80,"
      "'protocol':'TCP'}],"
      "'env':[{'name':'A','value':'1'},{'name':'B','value':'2'}],"
      "'resources':{'limits':{'cpu':'1'},'requests':{'cpu':'1'}},"
      "'volumeMounts':[{'name':'v','mountPath':'/v'}],"
      "'terminationMessagePath':'/dev/termination-log',"
      "'terminationMessagePolicy':'File','imagePullPolicy':'IfNotPresent'}],"
      "'volumes':[{'name':'v','emptyDir':{}}],"
      "'restartPolicy':'Always','terminationGracePeriodSeconds':30,'dnsPolicy':'ClusterFirst',"
      "'securityContext':{},"
      "'schedulerName':'default-scheduler','enableServiceLinks':true},'status':{}}");
  FieldWriter writer;
  writer.schema = schema;
  writer.api_version = "v1";
  writer.kind = "Pod";
  writer.manager = "bench";
  const FieldSet status = FieldSet::of({{"status"}});
  writer.reset = &status;
  constexpr int kRounds = 2000;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kRounds; ++i) {
    const Value tracked = track_update(writer, nullptr, pod);
    ASSERT_EQ(tracked["metadata"]["managedFields"].size(), 1u);
  }
  const auto spent = std::chrono::steady_clock::now() - begin;
  const auto each = std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count() / kRounds;
  RecordProperty("nanoseconds", std::to_string(each));
  std::printf("tracking a new pod: %lld ns\n", static_cast<long long>(each));
  EXPECT_LT(each, 2'000'000);
}

}  // namespace
}  // namespace dibs::api
