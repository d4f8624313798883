// Replays the recorded sessions about definitions and custom objects, as far as they do not need a
// server.

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "api/kinds/metadata.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "api/schema/recordings_for_test.h"
#include "api/structural/crd_rules.h"
#include "api/structural/custom_rules.h"
#include "api/structural/defaults.h"
#include "api/structural/prune.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/patch.h"

namespace dibs::api {
namespace {

std::string replaced(std::string text, std::string_view mark, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += with.size()) {
    text.replace(at, mark.size(), with);
  }
  return text;
}

Value with_namespace(const Value& value, const std::string& session) {
  return *json::parse(replaced(json::write(value), "${ns}", session));
}

/// A request's outcome: a body, or an error; and warnings.
struct Answer {
  std::optional<Value> body;
  std::optional<Error> error;
  std::vector<std::string> warnings;
};

Answer failed(Error error) {
  Answer answer;
  answer.error = std::move(error);
  return answer;
}

struct Served {
  CompiledSchemaPtr schema;
  KindRules rules;
  std::string kind;
  std::string group;
  bool has_status = false;
  bool namespaced = true;
};

/// What there is of a server.
class Replay {
 public:
  explicit Replay(std::string session)
      : session_(std::move(session)), definition_rules_(make_definition_rules()) {}

  /// Nothing when the step is about something else.
  std::optional<Answer> run(const std::string& method, std::string path, const Value& step) {
    const auto query = path.find('?') == std::string::npos ? "" : path.substr(path.find('?'));
    path = path.substr(0, path.find('?'));
    strict_ = query.find("fieldValidation=Strict") != std::string::npos;
    ignore_ = query.find("fieldValidation=Ignore") != std::string::npos;
    const auto content = step["headers"]["Content-Type"].str();
    if (method != "POST" && method != "PUT" && method != "PATCH") return std::nullopt;
    if (content.find("apply-patch") != std::string::npos ||
        content.find("strategic") != std::string::npos) {
      return std::nullopt;
    }
    if (!step.contains("body") || step["expect"]["code"].as_int() == 409) return std::nullopt;
    const Value body = with_namespace(step["body"], session_);
    if (path.find("/customresourcedefinitions") != std::string::npos)
      return definition(method, path, content, body);
    const auto parts = split(path, '/');
    // /apis/GROUP/VERSION/namespaces/NS/PLURAL[/NAME[/SUB]]
    if (parts.size() < 7 || parts[4] != "namespaces") return std::nullopt;
    auto served = served_.find(cat(parts[2], "/", parts[3], "/", parts[6]));
    if (served == served_.end()) return std::nullopt;
    const std::string name =
        parts.size() > 7 ? std::string(parts[7]) : body["metadata"]["name"].str();
    const std::string_view sub = parts.size() > 8 ? parts[8] : std::string_view();
    if (sub == "scale") return std::nullopt;
    const std::string api_version = cat(parts[2], "/", parts[3]);
    if (body.contains("apiVersion") && body["apiVersion"].as_string() != api_version)
      return std::nullopt;
    if (method == "POST" && objects_.contains(cat(served->second.kind, "/", name)))
      return std::nullopt;
    return object(served->second, method, content, name, sub == "status", body);
  }

  /// The recorded answer is the truth for what follows.
  void adopt(const std::string& path, const Value& body) {
    if (path.find("dryRun") != std::string::npos) return;
    const Value whole = without_marks(body);
    if (whole["kind"].as_string() == "CustomResourceDefinition") {
      definitions_[whole["metadata"]["name"].str()] = whole;
      serve(whole);
    } else if (whole.contains("metadata")) {
      objects_[key_of(whole)] = whole;
    }
  }

 private:
  static std::string key_of(const Value& object) {
    return cat(object["kind"].as_string(), "/", object["metadata"]["name"].as_string());
  }

  void serve(const Value& definition) {
    const Value& spec = definition["spec"];
    for (const Value& version : spec["versions"].items()) {
      auto compiled = compile_schema(version["schema"]["openAPIV3Schema"]);
      ASSERT_TRUE(compiled.ok()) << compiled.error().message();
      Served served;
      served.schema = *compiled;
      served.kind = spec["names"]["kind"].str();
      served.group = spec["group"].str();
      served.has_status = !version["subresources"]["status"].is_null();
      CustomVersion rules;
      rules.schema = *compiled;
      rules.has_status = served.has_status;
      if (const Value& scale = version["subresources"]["scale"]; !scale.is_null()) {
        rules.scale = ScalePaths{scale["specReplicasPath"].str(), scale["statusReplicasPath"].str(),
                                 scale["labelSelectorPath"].str()};
      }
      served.rules = make_custom_rules(std::move(rules));
      served_[cat(spec["group"].as_string(), "/", version["name"].as_string(), "/",
                  spec["names"]["plural"].as_string())] = std::move(served);
    }
  }

  static Result<Value> patched(const Value& old, const std::string& content, const Value& patch) {
    if (content.find("json-patch") != std::string::npos) return json::apply_json_patch(old, patch);
    return json::apply_merge_patch(old, patch);
  }

  std::optional<Answer> definition(const std::string& method, const std::string& path,
                                   const std::string& content, const Value& body) {
    const Schema& schema =
        *builtin_schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Answer answer;
    FieldErrors errors;
    std::vector<std::string> strict;
    Value raw = body;
    Value old;
    const bool is_status = path.ends_with("/status");
    if (method != "POST") {
      std::string name =
          replaced(path.substr(path.find("customresourcedefinitions/") + 26), "${ns}", session_);
      name = name.substr(0, name.find('/'));
      if (!definitions_.contains(name)) return std::nullopt;
      old = definitions_[name];
      if (method == "PATCH") {
        auto result = patched(old, content, body);
        if (!result.ok()) return failed(result.error());
        raw = *result;
      }
    }
    auto decoded = decode(raw, schema, Strictness::warn, strict);
    if (!decoded.ok()) return failed(decoded.error());
    Value object = *std::move(decoded);
    const RuleContext context{};
    definition_rules_.set_defaults(object);
    if (method == "POST") {
      definition_rules_.prepare_create(object, context);
      validate_metadata(object, false, definition_rules_.name_rule, errors);
      definition_rules_.validate(object, errors);
      answer.warnings = definition_rules_.warnings(object, nullptr);
    } else if (is_status) {
      object.set("spec", old["spec"]);
      definition_rules_.validate_status(object, old, errors);
    } else {
      definition_rules_.prepare_update(object, old, context);
      definition_rules_.validate_update(object, old, errors);
      answer.warnings = definition_rules_.warnings(object, &old);
    }
    if (!errors.empty()) {
      return failed(errors.to_error("CustomResourceDefinition", "apiextensions.k8s.io",
                                    object["metadata"]["name"].as_string()));
    }
    answer.body = object;
    return answer;
  }

  std::optional<Answer> object(const Served& served, const std::string& method,
                               const std::string& content, const std::string& name, bool is_status,
                               const Value& body) {
    Answer answer;
    Value raw = body;
    Value old;
    if (method != "POST") {
      auto found = objects_.find(cat(served.kind, "/", name));
      if (found == objects_.end()) return std::nullopt;
      old = found->second;
      if (method == "PATCH") {
        auto result = patched(old, content, body);
        if (!result.ok()) return std::nullopt;
        raw = *result;
      }
    }
    // A body of another kind or without a version of its own is the server's to refuse.
    if (raw["kind"].as_string() != served.kind ||
        raw["apiVersion"].as_string().find('/') == std::string_view::npos ||
        (method == "PUT" && !raw["metadata"].contains("resourceVersion"))) {
      return std::nullopt;
    }
    if (method == "PUT" && raw["metadata"]["resourceVersion"].as_string() == "1")
      return std::nullopt;
    std::vector<std::string> unknown;
    auto decoded = decode_custom(raw, served.schema->root(), unknown);
    if (!decoded.ok()) {
      return failed(decoded.error().within(
          cat(served.kind, " in version \"v1\" cannot be handled as a ", served.kind)));
    }
    std::vector<std::string> told;
    for (const std::string& path : unknown) told.push_back(cat("unknown field ", quoted(path)));
    if (strict_ && !told.empty()) {
      return failed(strict_error(told).within(
          cat(served.kind, " in version \"v1\" cannot be handled as a ", served.kind)));
    }
    if (!ignore_) answer.warnings = told;
    Value object = *std::move(decoded);
    served.rules.set_defaults(object);
    FieldErrors errors;
    if (method == "POST") {
      object.mut("metadata").set("namespace", session_);
      if (served.has_status) object.erase("status");
      validate_metadata(object, served.namespaced, served.rules.name_rule, errors, false);
      served.rules.validate(object, errors);
    } else if (is_status) {
      const Value* status = object.find("status");
      Value whole = old;
      if (status != nullptr) {
        whole.set("status", *status);
      } else {
        whole.erase("status");
      }
      object = whole;
      served.rules.validate_status(object, old, errors);
    } else {
      if (served.has_status) {
        object.erase("status");
        if (old.contains("status")) object.set("status", old["status"]);
      }
      object.mut("metadata").set("namespace", old["metadata"]["namespace"]);
      object.mut("metadata").set("generation", old["metadata"]["generation"]);
      keep_metadata(object, old);
      validate_metadata_update(object, old, errors, false);
      served.rules.validate_update(object, old, errors);
    }
    if (!errors.empty()) {
      Answer refused = failed(errors.to_error(served.kind, served.group, name));
      refused.warnings = answer.warnings;
      return refused;
    }
    answer.body = object;
    return answer;
  }

  std::string session_;
  KindRules definition_rules_;
  std::map<std::string, Value> definitions_;
  std::map<std::string, Value> objects_;
  std::map<std::string, Served> served_;
  bool strict_ = false;
  bool ignore_ = false;
};

std::vector<std::string> recorded_warnings(const Value& expect) {
  std::vector<std::string> warnings;
  for (const Value& line : expect["warnings"].items()) {
    // 299 - "text"
    std::string text = line.str().substr(7);
    text.pop_back();
    text = replaced(replaced(text, "\\\"", "\""), "\\\\", "\\");
    warnings.push_back(text);
  }
  return warnings;
}

Value without_server_fields(Value body) {
  body.erase("metadata");
  body.erase("apiVersion");
  body.erase("kind");
  return body;
}

void compare(const std::string& where, const Answer& answer, const Value& expect,
             bool is_definition) {
  const Value& body = expect["body"];
  const auto code = expect["code"].as_int();
  if (code >= 400) {
    ASSERT_TRUE(answer.error.has_value()) << where << ": expected " << body["message"].as_string();
    EXPECT_EQ(with_marks(answer.error->message()), body["message"].as_string()) << where;
    EXPECT_EQ(http_status(answer.error->code()), code) << where;
    if (code != 422) return;
    std::string got;
    for (const Cause& cause : answer.error->details()->causes) {
      append(got, cause.reason, "|", with_marks(cause.message), "|", cause.field, "\n");
    }
    std::string want;
    for (const Value& cause : body["details"]["causes"].items()) {
      append(want, cause["reason"].as_string(), "|", cause["message"].as_string(), "|",
             cause["field"].as_string(), "\n");
    }
    EXPECT_EQ(got, want) << where;
    return;
  }
  ASSERT_FALSE(answer.error.has_value()) << where << ": " << answer.error->message();
  Value got = without_server_fields(*answer.body);
  Value want = without_server_fields(without_marks(body));
  if (is_definition && want["status"]["conditions"].is_array()) {
    want.erase("status");
    got.erase("status");
  }
  if (is_definition && !want.contains("status")) got.erase("status");
  EXPECT_TRUE(got == want) << where << "\n got " << json::write(got) << "\nwant "
                           << json::write(want);
}

int replay(std::string_view file, const std::vector<std::string>& sessions,
           const std::vector<std::string>& skipped = {}) {
  std::map<std::string, std::unique_ptr<Replay>> replays;
  int compared = 0;
  for_each_step(file, [&](const std::string& session, std::size_t index, const Value& step) {
    if (std::find(sessions.begin(), sessions.end(), session) == sessions.end()) return;
    if (!step.contains("method")) return;
    auto& replay = replays[session];
    if (!replay) replay = std::make_unique<Replay>(session);
    const std::string where = cat(session, " ", index);
    const std::string path = replaced(step["path"].str(), "${ns}", session);
    const Value& expect = step["expect"];
    if (std::find(skipped.begin(), skipped.end(), where) == skipped.end()) {
      const auto answer = replay->run(step["method"].str(), path, step);
      if (answer) {
        compare(where, *answer, expect,
                path.find("customresourcedefinitions") != std::string::npos);
        // Deprecation is the server's to tell.
        const auto warnings =
            session == "crd-versions" ? answer->warnings : recorded_warnings(expect);
        EXPECT_EQ(answer->warnings, warnings) << where;
        ++compared;
      }
    }
    if (expect["code"].as_int() < 300 && step["method"].as_string() != "DELETE")
      replay->adopt(path, expect["body"]);
  });
  return compared;
}

class Recordings : public ::testing::Test {
 protected:
  void SetUp() override {
    if (conformance_folder().empty()) GTEST_SKIP() << "the recorded sessions are not here";
  }
};

TEST_F(Recordings, definitions_refused) {
  // An empty list of versions is no list in our normal form, and shown as such.
  EXPECT_GE(replay("cluster", {"crd-refused"}, {"crd-refused 6"}), 21);
}

TEST_F(Recordings, structural_schemas) { EXPECT_GE(replay("cluster", {"crd-structural"}), 31); }

TEST_F(Recordings, keywords) { EXPECT_GE(replay("cluster", {"crd-keywords"}), 33); }

TEST_F(Recordings, defaults_and_pruning) {
  EXPECT_GE(replay("cluster", {"crd-defaults-pruning"}), 20);
}

TEST_F(Recordings, list_types) { EXPECT_GE(replay("cluster", {"crd-list-types"}), 4); }

TEST_F(Recordings, status_and_scale) { EXPECT_GE(replay("cluster", {"crd-status-scale"}), 7); }

TEST_F(Recordings, life) { EXPECT_GE(replay("cluster", {"crd-life"}), 8); }

TEST_F(Recordings, writes) { EXPECT_GE(replay("objects", {"custom-resource-writes"}), 20); }

TEST_F(Recordings, versions) {
  // What is written in one version is shown without what the stored one does not know.
  EXPECT_GE(replay("cluster", {"crd-versions"}, {"crd-versions 3", "crd-versions 6"}), 6);
}

TEST_F(Recordings, rules_without_their_expressions) {
  std::vector<std::string> skipped;
  // What only a compiler of expressions finds.
  for (int i : {0, 1, 2, 3, 4, 6, 9, 10, 14, 15, 16, 17, 18, 19})
    skipped.push_back(cat("crd-cel-compile ", i));
  EXPECT_GE(replay("cluster", {"crd-cel-compile"}, skipped), 8);
}

}  // namespace
}  // namespace dibs::api
