// Replays what a real API server was asked to create and change, as far as it goes without a
// server: decoding, defaults, preparation, validation. Compared are the messages of refusals and
// the objects stored.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "api/kinds/cluster/quota.h"
#include "api/kinds/metadata.h"
#include "api/kinds/pod/pod.h"
#include "api/kinds/subresource_rules.h"
#include "api/schema/decode.h"
#include "api/schema/defaults.h"
#include "api/schema/recordings_for_test.h"
#include "base/strings.h"
#include "json/patch.h"

namespace dibs::api {
namespace {

const Time kNow = Time::from_seconds(1577836800);  // what without_marks() puts for <time>

struct Target {
  const ResourceInfo* resource = nullptr;
  std::string object_path;  // without query and sub-resource
  std::string subresource;
  std::string name_space;
};

Target target_of(std::string_view path, bool is_create) {
  path = path.substr(0, path.find('?'));
  auto parts = split(path, '/');
  Target target;
  if (parts.size() < 4) return target;
  bool core = parts[1] == "api";
  std::string group = core ? "" : std::string(parts[2]);
  std::size_t at = core ? 3 : 4;
  if (parts.size() <= at) return target;
  std::string version(parts[at - 1]);
  if (parts[at] == "namespaces" && parts.size() > at + 2 && parts[at + 2] != "status" &&
      parts[at + 2] != "finalize") {
    target.name_space = parts[at + 1];
    at += 2;
  }
  target.resource = builtin_catalog(37).find(group, version, parts[at]);
  std::size_t name = at + 1;
  if (!is_create && parts.size() > name + 1) target.subresource = parts[name + 1];
  if (is_create && parts.size() > name) target.resource = nullptr;
  std::size_t end = is_create ? at : name;
  for (std::size_t i = 1; i <= end && i < parts.size(); ++i) {
    target.object_path += "/";
    target.object_path += parts[i];
  }
  return target;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string marked(const std::string& text) {
  static const std::regex uid("\\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\\b");
  return std::regex_replace(with_marks(text), uid, "<uid>");
}

void drop(Value& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (object.contains(key)) object.erase(key);
  }
}

// What the server's admission adds to pods, and what differs from run to run.
Value comparable(const Value& stored, std::string_view kind) {
  Value object = json::parse(marked(json::write(stored))).value();
  for (std::size_t i = 0; i < object["metadata"]["ownerReferences"].size(); ++i) {
    object.mut("metadata").mut("ownerReferences").mut(i).erase("uid");
  }
  drop(object.mut("metadata"),
       {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation",
        "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"});
  if (kind == "Pod") {
    Value& spec = object.mut("spec");
    drop(spec, {"tolerations", "serviceAccount", "serviceAccountName", "priority",
                "preemptionPolicy", "imagePullSecrets"});
    for (const char* list : {"containers", "initContainers"}) {
      for (std::size_t i = 0; i < spec[list].size(); ++i) {
        Value mounts = Value::array();
        for (const Value& mount : spec[list][i]["volumeMounts"].items()) {
          if (mount["name"].as_string().substr(0, 15) != "kube-api-access") mounts.push(mount);
        }
        Value& container = spec.mut(list).mut(i);
        if (mounts.empty())
          drop(container, {"volumeMounts"});
        else
          container.set("volumeMounts", mounts);
      }
    }
    Value volumes = Value::array();
    for (const Value& volume : spec["volumes"].items()) {
      if (volume["name"].as_string().substr(0, 15) != "kube-api-access") volumes.push(volume);
    }
    if (volumes.empty())
      drop(spec, {"volumes"});
    else
      spec.set("volumes", volumes);
  }
  if (kind == "Service") drop(object.mut("spec"), {"clusterIP", "clusterIPs"});
  return object;
}

// What pods have been given by admission before they are judged.
void admit(Value& object, std::string_view kind, const std::map<std::string, Value>& stored) {
  if (kind != "Pod") return;
  for (const auto& [path, range] : stored) {
    if (path.find("/limitranges/") != std::string::npos) apply_limit_range_defaults(object, range);
  }
  Value& spec = object.mut("spec");
  if (spec["serviceAccountName"].as_string().empty()) {
    spec.set("serviceAccountName", "default");
    spec.set("serviceAccount", "default");
  }
}

struct Outcome {
  std::string message;  // "" when accepted
  std::vector<Cause> causes;
  Value object;
  std::vector<std::string> warnings;
};

Outcome refused(const FieldErrors& errors, const ResourceInfo& resource, const Value& object) {
  Error error =
      errors.to_error(resource.kind, resource.group, object["metadata"]["name"].as_string());
  return {error.message(), error.details()->causes, object, {}};
}

class Replay {
 public:
  explicit Replay(std::set<std::string> kinds) : kinds_(std::move(kinds)) {}

  void step(const std::string& session, std::size_t index, const Value& step) {
    where_ =
        cat(session, " ", index, " ", step["method"].as_string(), " ", step["path"].as_string());
    if (session != session_) {
      session_ = session;
      stored_.clear();
    }
    std::string method = step["method"].str();
    std::int64_t code = step["expect"]["code"].as_int();
    bool dry_run = step["path"].as_string().find("dryRun") != std::string_view::npos;
    std::string path = replaced(step["path"].str(), "${ns}", session);
    Target target = target_of(path, method == "POST");
    if (method == "POST" && path.find("/binding") != std::string::npos) bind(path, step, code);
    if (target.resource == nullptr) return;
    const Value& expected = step["expect"]["body"];
    if (kinds_.count(target.resource->kind) != 0 && (code == 200 || code == 201 || code == 422) &&
        step["as"].is_null() && step["subset"].is_null()) {
      if (method == "POST")
        create(target, step, expected, code);
      else if (method == "PUT" || method == "PATCH")
        change(target, step, expected, code);
    }
    if ((code == 200 || code == 201) && !dry_run && expected["metadata"]["name"].is_string()) {
      std::string key = target.object_path;
      if (method == "POST") append(key, "/", expected["metadata"]["name"].as_string());
      stored_[key] = restored(expected);
    }
    if (method == "DELETE" && code == 200 && !dry_run) stored_.erase(target.object_path);
  }

  int seen() const { return seen_; }

 private:
  // As it was before the recorder put marks and left allocated addresses out.
  static Value restored(const Value& expected) {
    std::string text = json::write(without_marks(expected));
    text = replaced(replaced(text, "<suffix>", "abcde"), "<ip>", "10.2.0.5");
    Value object = json::parse(replaced(text, "${ip}", "10.0.0.7")).value();
    const Value& spec = object["spec"];
    if (object["kind"].as_string() == "Service" && is_ip(spec["clusterIP"].as_string())) {
      Value ip = spec["clusterIP"];
      object.mut("spec").set("clusterIPs", Value::array({ip}));
    }
    return object;
  }

  void bind(const std::string& path, const Value& step, std::int64_t code) {
    std::string name = step["body"]["metadata"]["name"].str();
    bool of_pod = path.find("/pods/") != std::string::npos;
    std::string pods = path.substr(0, path.rfind(of_pod ? "/pods/" : "/bindings"));
    std::string in_url = of_pod ? std::string(split(path, '/')[6]) : "";
    auto found = stored_.find(cat(pods, "/pods/", of_pod ? in_url : name));
    if (found == stored_.end() || !step["body"]["metadata"]["uid"].is_null()) return;
    Value binding = json::parse(replaced(json::write(step["body"]), "${ns}", session_)).value();
    ++seen_;

    auto checked = check_binding(binding, in_url);
    auto bound = checked.ok() ? bind_pod(found->second, binding, kNow)
                              : Result<Value>(std::move(checked).error());

    const Value& expected = step["expect"]["body"];
    EXPECT_EQ(bound.ok() ? "" : bound.error().message(), expected["message"].str()) << where_;
    if (bound.ok())
      found->second = *bound;
    else
      EXPECT_EQ(http_status(bound.error().code()), code) << where_;
  }

  void create(const Target& target, const Value& step, const Value& expected, std::int64_t code) {
    const Value& body = step["body"];
    if (!body.is_object()) return;
    Value raw = json::parse(replaced(json::write(body), "${ns}", session_)).value();
    if (json::write(raw).find("${") != std::string::npos) return;
    std::vector<std::string> strict;
    auto decoded = decode(raw, *target.resource->schema, Strictness::warn, strict);
    if (!decoded.ok()) return;
    Value object = std::move(decoded).value();
    const KindRules& rules = kind_rules(target.resource->group, target.resource->kind);
    Value& metadata = object.mut("metadata");
    if (target.resource->namespaced) metadata.set("namespace", target.name_space);
    if (metadata["name"].as_string().empty() && !metadata["generateName"].as_string().empty()) {
      metadata.set("name", cat(metadata["generateName"].as_string(), "abcde"));
    }
    drop(metadata, {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
                    "deletionGracePeriodSeconds"});
    apply_defaults(object, *target.resource->schema);
    if (rules.set_defaults) rules.set_defaults(object);
    admit(object, target.resource->kind, stored_);
    if (rules.prepare_create) rules.prepare_create(object, {kNow, ""});
    dedup_owner_references(object);
    FieldErrors errors;
    validate_metadata(object, target.resource->namespaced, rules.name_rule, errors);
    if (rules.validate) rules.validate(object, errors);
    Outcome outcome;
    outcome.object = object;
    if (!errors.empty()) outcome = refused(errors, *target.resource, object);
    if (rules.warnings && errors.empty()) outcome.warnings = rules.warnings(object, nullptr);
    compare(target, outcome, expected, code, step);
  }

  void change(const Target& target, const Value& step, const Value& expected, std::int64_t code) {
    auto found = stored_.find(target.object_path);
    if (found == stored_.end() || step["body"].is_null()) return;
    const Value old = found->second;
    Value raw = json::parse(replaced(json::write(step["body"]), "${ns}", session_)).value();
    if (json::write(raw).find("${") != std::string::npos) return;
    if (step["method"].as_string() == "PATCH") {
      std::string_view type = step["headers"]["Content-Type"].as_string();
      if (type == "application/merge-patch+json") {
        raw = json::apply_merge_patch(old, raw);
      } else if (type == "application/json-patch+json") {
        auto patched = json::apply_json_patch(old, raw);
        if (!patched.ok()) return;
        raw = *patched;
      } else {
        return;
      }
    }
    std::vector<std::string> strict;
    auto decoded = decode(raw, *target.resource->schema, Strictness::warn, strict);
    if (!decoded.ok()) return;
    Value object = std::move(decoded).value();
    const KindRules& rules = kind_rules(target.resource->group, target.resource->kind);
    apply_defaults(object, *target.resource->schema);
    if (rules.set_defaults) rules.set_defaults(object);
    if (target.resource->namespaced)
      object.mut("metadata").set("namespace", Value(old["metadata"]["namespace"]));
    object.mut("metadata").set("generation", Value(old["metadata"]["generation"]));
    if (object["metadata"]["generation"].is_null()) object.mut("metadata").erase("generation");
    keep_metadata(object, old);
    FieldErrors errors;
    RuleContext context{kNow, target.subresource};
    const KindRules* special =
        subresource_rules(target.resource->group, target.resource->kind, target.subresource);
    if (target.subresource == "status") {
      if (old.contains("spec")) object.set("spec", Value(old["spec"]));
      if (rules.prepare_status) rules.prepare_status(object, old, context);
      validate_metadata_update(object, old, errors);
      if (rules.validate_status) rules.validate_status(object, old, errors);
    } else if (special != nullptr) {
      special->prepare_update(object, old, context);
      validate_metadata_update(object, old, errors);
      special->validate_update(object, old, errors);
    } else if (target.subresource.empty()) {
      if (rules.has_status && old.contains("status")) object.set("status", Value(old["status"]));
      if (rules.prepare_update) rules.prepare_update(object, old, context);
      validate_metadata_update(object, old, errors);
      if (rules.validate_update) rules.validate_update(object, old, errors);
    } else {
      return;
    }
    Outcome outcome;
    outcome.object = object;
    if (!errors.empty()) outcome = refused(errors, *target.resource, object);
    compare(target, outcome, expected, code, step);
  }

  void compare(const Target& target, const Outcome& outcome, const Value& expected,
               std::int64_t code, const Value& step) {
    std::string wanted = expected["message"].str();
    // What is taken already only an allocator knows.
    for (const char* other : {"allocated", "not in the valid range",
                              ": patch: ", "Options.meta.k8s.io", "ValidatingAdmissionPolicy"}) {
      if (wanted.find(other) != std::string::npos) return;
    }
    if (is_set_in(step["body"], "runtimeClassName")) return;
    for (const Value& cause : expected["details"]["causes"].items()) {
      if (cause["field"].as_string() == "patch") return;
    }
    ++seen_;
    if (code == 422) {
      // A message that shows internals was not kept; its causes were.
      if (expected["message"].is_string()) {
        EXPECT_EQ(marked(outcome.message), wanted) << where_;
      }
      std::vector<std::string> got;
      std::vector<std::string> want;
      for (const Cause& cause : outcome.causes) got.push_back(cat(cause.reason, " ", cause.field));
      for (const Value& cause : expected["details"]["causes"].items()) {
        want.push_back(cat(cause["reason"].as_string(), " ", cause["field"].as_string()));
      }
      EXPECT_EQ(got, want) << where_;
      return;
    }
    EXPECT_EQ(outcome.message, "") << where_;
    if (!outcome.message.empty() || expected["kind"].as_string() != target.resource->kind) return;
    std::string text = json::write(expected);
    if (text.find("<suffix>\",\"generateName") != std::string::npos ||
        text.find("${") != std::string::npos) {
      return;
    }
    Value got = comparable(outcome.object, target.resource->kind);
    Value want = comparable(expected, target.resource->kind);
    drop(got, {"kind", "apiVersion"});
    drop(want, {"kind", "apiVersion"});
    if (!want["metadata"]["generateName"].is_null()) {
      drop(got.mut("metadata"), {"name", "labels"});
      drop(want.mut("metadata"), {"name", "labels"});
    }
    EXPECT_EQ(difference(got, want), "") << where_;
    check_warnings(outcome, step);
  }

  // The first difference, "" when there is none; <ip> stands for any address.
  static std::string difference(const Value& got, const Value& want) {
    if (want.is_string() && want.as_string() == "<ip>") return "";
    if (want.is_object() && got.is_object()) {
      for (const std::string& key : sorted_keys(want)) {
        std::string inner = difference(got[key], want[key]);
        if (!inner.empty()) return cat(key, ".", inner);
      }
      for (const std::string& key : sorted_keys(got)) {
        if (!want.contains(key)) return cat(key, ": unexpected ", json::write(got[key]));
      }
      return "";
    }
    if (want.is_array() && got.is_array() && want.size() == got.size()) {
      for (std::size_t i = 0; i < want.size(); ++i) {
        std::string inner = difference(got[i], want[i]);
        if (!inner.empty()) return cat("[", i, "].", inner);
      }
      return "";
    }
    if (got == want) return "";
    return cat(": got ", json::write(got), ", want ", json::write(want));
  }

  static bool is_set_in(const Value& body, std::string_view key) {
    return !body["spec"][key].is_null();
  }

  void check_warnings(const Outcome& outcome, const Value& step) {
    if (step["method"].as_string() != "POST") return;
    std::vector<std::string> want;
    for (const Value& warning : step["expect"]["warnings"].items()) {
      std::string text = warning.str();
      if (text.find("unknown field") != std::string::npos ||
          text.find("duplicate") != std::string::npos ||
          text.find("ValidatingAdmissionPolicy") != std::string::npos ||
          text.find("is deprecated in") != std::string::npos) {
        continue;
      }
      want.push_back(text);
    }
    std::vector<std::string> got;
    for (const std::string& text : outcome.warnings) got.push_back(cat("299 - ", quoted(text)));
    EXPECT_EQ(got, want) << where_;
  }

  std::set<std::string> kinds_;
  std::string session_;
  std::string where_;
  std::map<std::string, Value> stored_;
  int seen_ = 0;
};

class ValidationRecordings : public testing::TestWithParam<const char*> {};

TEST_P(ValidationRecordings, match_for_pods_nodes_services_and_the_like) {
  Replay replay({"Pod", "PodTemplate", "Node", "Namespace", "ConfigMap", "Secret", "ServiceAccount",
                 "LimitRange", "ResourceQuota", "Service", "Endpoints", "EndpointSlice"});

  bool found =
      for_each_step(GetParam(), [&](const std::string& session, std::size_t index,
                                    const Value& step) { replay.step(session, index, step); });

  if (!found) GTEST_SKIP() << "no conformance data at hand";
  EXPECT_GT(replay.seen(), 10);
}

INSTANTIATE_TEST_SUITE_P(Files, ValidationRecordings,
                         testing::Values("cluster", "objects", "resource", "reading"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace dibs::api
