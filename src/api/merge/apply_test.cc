#include "api/merge/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "api/merge/merge.h"
#include "api/merge/test_support.h"
#include "api/merge/typed.h"
#include "api/schema/builtin.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using test::from_text;

std::string text_of(const Value& value) {
  std::string text = json::write(value);
  for (char& c : text) {
    if (c == '"') c = '\'';
  }
  return text;
}

class Apply : public ::testing::Test {
 protected:
  FieldWriter writer(std::string_view manager, std::string_view subresource = "") {
    FieldWriter writer;
    writer.schema = &schemas_.thing();
    writer.api_version = "e.com/v1";
    writer.kind = "Thing";
    writer.manager = manager;
    writer.subresource = subresource;
    writer.custom = true;
    writer.now = Time::from_seconds(++clock_);
    return writer;
  }

  // Applies a spec; returns "" or the error.
  std::string apply_spec(std::string_view manager, std::string_view spec, bool force = false) {
    Value config = from_text("{'apiVersion':'e.com/v1','kind':'Thing','metadata':{'name':'a'}}");
    if (!spec.empty()) config.set("spec", from_text(spec));
    return run(writer(manager), config, force);
  }

  std::string run(const FieldWriter& by, const Value& config, bool force = false) {
    auto result = apply(by, live_.is_null() ? nullptr : &live_, config, force);
    if (!result.ok()) {
      error_ = result.error();
      return result.error().message();
    }
    live_ = result->object;
    changed_ = result->changed;
    live_.mut("metadata").set("uid", "u");
    return "";
  }

  void update(std::string_view manager, std::string_view spec, std::string_view subresource = "") {
    Value object = live_.is_null() ? from_text(
                                         "{'apiVersion':'e.com/v1','kind':'Thing',"
                                         "'metadata':{'name':'a'}}")
                                   : live_;
    object.set(subresource.empty() ? "spec" : subresource, from_text(spec));
    live_ = track_update(writer(manager, subresource), live_.is_null() ? nullptr : &live_, object);
    live_.mut("metadata").set("uid", "u");
  }

  // "name Apply {...}" per entry.
  std::vector<std::string> owners() {
    std::vector<std::string> out;
    for (const Value& entry : live_["metadata"]["managedFields"].items()) {
      out.push_back(cat(entry["manager"].as_string(), entry.contains("subresource") ? "/" : "",
                        entry["subresource"].as_string(), ' ', entry["operation"].as_string(), ' ',
                        text_of(entry["fieldsV1"])));
    }
    return out;
  }
  std::string spec() { return text_of(live_["spec"]); }

  test::SchemaBuilder schemas_;
  Value live_;
  bool changed_ = false;
  std::optional<Error> error_;
  std::int64_t clock_ = 1'600'000'000;
};

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(Apply, creates_and_owns_what_it_says) {
  EXPECT_EQ(apply_spec("one",
                       "{'image':'a','ports':[{'port':80}],'args':['x'],"
                       "'selector':{'a':'b'},"
                       "'labels':{'l':'m'},'set':['s'],'any':{'deep':{'list':[1]}},"
                       "'opaque':{'a':{'b':1}}}"),
            "");
  EXPECT_THAT(owners(),
              ElementsAre("one Apply {'f:spec':{'f:any':{'f:deep':{'.':{},'f:list':{}}},"
                          "'f:args':{},'f:image':{},"
                          "'f:labels':{'f:l':{}},'f:opaque':{},'f:ports':{'k:{\\'port\\':80,"
                          "\\'protocol\\':\\'TCP\\'}':{'.':{},"
                          "'f:port':{}}},'f:selector':{},'f:set':{'v:\\'s\\'':{}}}}"));
}

TEST_F(Apply, removes_what_it_no_longer_says) {
  apply_spec("one",
             "{'image':'a','replicas':1,'ports':[{'port':1},{'port':2}],'set':['s','t'],"
             "'labels':{'x':'y'}}");
  EXPECT_EQ(apply_spec("one", "{'image':'a','ports':[{'port':2}],'set':['t']}"), "");
  EXPECT_EQ(spec(), "{'image':'a','ports':[{'port':2}],'set':['t']}");
}

TEST_F(Apply, leaves_what_others_own_and_what_nobody_owns) {
  apply_spec("one", "{'image':'a','labels':{'x':'1','y':'2'}}");
  apply_spec("two", "{'labels':{'x':'1','z':'3'}}");
  EXPECT_EQ(apply_spec("one", ""), "");
  EXPECT_EQ(spec(), "{'labels':{'x':'1','z':'3'}}");
  EXPECT_THAT(owners(), ElementsAre("two Apply {'f:spec':{'f:labels':{'f:x':{},'f:z':{}}}}"));
}

TEST_F(Apply, conflicts_name_manager_and_field) {
  apply_spec("one", "{'replicas':1,'image':'a'}");
  EXPECT_EQ(apply_spec("two", "{'replicas':2}"),
            "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas");
  ASSERT_NE(error_->details(), nullptr);
  EXPECT_EQ(error_->code(), Code::conflict);
  ASSERT_EQ(error_->details()->causes.size(), 1u);
  EXPECT_EQ(error_->details()->causes[0].reason, "FieldManagerConflict");
  EXPECT_EQ(error_->details()->causes[0].message, "conflict with \"one\"");
  EXPECT_EQ(error_->details()->causes[0].field, ".spec.replicas");

  update("three", "{'replicas':3,'image':'a'}");
  EXPECT_EQ(apply_spec("two", "{'replicas':2,'image':'b'}"),
            "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.image\n"
            "conflicts with \"three\" using e.com/v1:\n- .spec.replicas");
}

TEST_F(Apply, shares_equal_values_and_takes_by_force) {
  apply_spec("one", "{'replicas':1}");
  EXPECT_EQ(apply_spec("two", "{'replicas':1}"), "");
  EXPECT_FALSE(changed_);
  EXPECT_FALSE(live_["metadata"]["managedFields"][0].contains("time"));
  EXPECT_THAT(owners(), ElementsAre("two Apply {'f:spec':{'f:replicas':{}}}",
                                    "one Apply {'f:spec':{'f:replicas':{}}}"));
  EXPECT_EQ(apply_spec("two", "{'replicas':2}", true), "");
  EXPECT_TRUE(changed_);
  EXPECT_THAT(owners(), ElementsAre("two Apply {'f:spec':{'f:replicas':{}}}"));
  EXPECT_TRUE(live_["metadata"]["managedFields"][0].contains("time"));
}

TEST_F(Apply, keeps_its_time_when_nothing_changes) {
  apply_spec("one", "{'replicas':1}");
  const Value before = live_;
  apply_spec("one", "{'replicas':1}");
  EXPECT_TRUE(live_ == before);
  EXPECT_FALSE(changed_);
}

TEST_F(Apply, orders_lists_as_applied) {
  apply_spec("one", "{'set':['a','b']}");
  apply_spec("two", "{'set':['c','b']}");
  EXPECT_EQ(spec(), "{'set':['a','c','b']}");
  apply_spec("one", "{'set':['b']}");
  EXPECT_EQ(spec(), "{'set':['c','b']}");
}

TEST_F(Apply, tells_what_does_not_fit_the_schema) {
  const auto fault = [&](std::string_view spec) {
    const std::string message = apply_spec("one", spec);
    const std::string prefix = "failed to create typed patch object (/a; e.com/v1, Kind=Thing): ";
    EXPECT_EQ(message.substr(0, prefix.size()), prefix);
    EXPECT_EQ(error_->code(), Code::plain);
    return message.substr(std::min(prefix.size(), message.size()));
  };
  EXPECT_EQ(fault("{'image':1}"),
            ".spec.image: expected string, got &value.valueUnstructured{Value:1}");
  EXPECT_EQ(fault("{'labels':['x']}"), ".spec.labels: expected map, got &{[x]}");
  EXPECT_EQ(fault("{'nope':1}"), ".spec.nope: field not declared in schema");
  EXPECT_EQ(fault("{'replicas':'x'}"),
            ".spec.replicas: expected numeric (int or float), got string");
  EXPECT_EQ(fault("{'ports':{'port':1}}"), ".spec.ports: expected list, got &{map[port:1]}");
  EXPECT_EQ(fault("{'ports':[{'port':'x'}]}"),
            ".spec.ports[port=\"x\",protocol=\"TCP\"].port: expected numeric (int or float), got "
            "string");
  EXPECT_EQ(fault("{'ports':[{'port':1},{'port':1,'protocol':'TCP'}]}"),
            ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]");
  EXPECT_EQ(fault("{'set':['z','z']}"), ".spec.set: duplicate entries for key [=\"z\"]");
  EXPECT_EQ(fault("{'containers':[{'image':'x'}]}"),
            ".spec.containers: element 0: associative list with keys has an element that omits "
            "all key fields "
            "[\"name\"] (and doesn't have default values for any key fields)");
  EXPECT_EQ(fault("{'image':1,'replicas':'x'}"),
            "errors:\n  .spec.image: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .spec.replicas: expected numeric (int or float), got string");
}

TEST_F(Apply, takes_a_key_that_is_left_out_of_a_go_structure_for_zero) {
  FieldWriter by = writer("one");
  by.schema = builtin_schema("", "v1", "Pod");
  by.api_version = "v1";
  by.kind = "Pod";
  by.custom = false;
  EXPECT_EQ(
      run(by, from_text("{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a'},'spec':{"
                        "'containers':[{'name':'c','ports':[{'hostPort':1}]},{'image':'x'}]}}")),
      "");
  EXPECT_EQ(live_["spec"]["containers"].size(), 2U);
  const std::string fields = text_of(live_["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]);
  EXPECT_THAT(fields, testing::HasSubstr("'k:{\\'name\\':\\'\\'}'"));
  EXPECT_THAT(fields, testing::HasSubstr("\\'containerPort\\':0"));
}

TEST_F(Apply, refuses_other_kinds_and_managed_fields) {
  EXPECT_EQ(run(writer("one"), from_text("{'apiVersion':'v1','kind':'Secret'}")),
            "invalid object type: /v1, Kind=Secret");
  EXPECT_EQ(run(writer("one"), from_text("{'kind':'Thing'}")),
            "invalid object type: /, Kind=Thing");
  EXPECT_EQ(run(writer("one"), from_text("{'apiVersion':'e.com/v1','kind':'Thing',"
                                         "'metadata':{'managedFields':[]}}")),
            "metadata.managedFields must be nil");
  EXPECT_EQ(error_->code(), Code::bad_request);
}

TEST_F(Apply, tracks_updates) {
  update("maker", "{'image':'a','replicas':1}");
  update("scaler", "{'image':'a','replicas':2}");
  update("cleaner", "{'replicas':2}");
  EXPECT_THAT(owners(), ElementsAre("maker Update {'f:spec':{}}",
                                    "scaler Update {'f:spec':{'f:replicas':{}}}"));
  update("maker", "{'image':'b','replicas':2}");
  EXPECT_THAT(owners(), ElementsAre("scaler Update {'f:spec':{'f:replicas':{}}}",
                                    "maker Update {'f:spec':{'.':{},'f:image':{}}}"));
}

TEST_F(Apply, joins_the_oldest_updaters) {
  update("maker", "{'replicas':0}");
  for (int i = 1; i <= 11; ++i) {
    Value object = live_;
    object.mut("spec").mut("labels").set(cat("l", i), "x");
    live_ = track_update(writer(cat("m", i)), &live_, object);
  }
  const auto names = owners();
  ASSERT_EQ(names.size(), 10u);
  EXPECT_EQ(names[0],
            "ancient-changes Update {'f:spec':{'.':{},'f:labels':{'.':{},'f:l1':{},"
            "'f:l2':{}},'f:replicas':{}}}");
  EXPECT_EQ(names[9], "m11 Update {'f:spec':{'f:labels':{'f:l11':{}}}}");
}

TEST_F(Apply, entries_written_by_hand_count_when_they_are_some) {
  update("maker", "{'replicas':0}");
  const Value good = live_;
  const auto rewrite = [&](std::string_view entries, bool forget = false) {
    Value object = good;
    if (entries.empty()) {
      object.mut("metadata").erase("managedFields");
    } else {
      object.mut("metadata").set("managedFields", from_text(entries));
    }
    live_ = track_update(writer("other"), &good, object, forget);
    return owners();
  };
  const auto kept = ElementsAre("maker Update {'f:spec':{'.':{},'f:replicas':{}}}");
  EXPECT_THAT(rewrite(""), kept);
  EXPECT_THAT(rewrite("[{'manager':'x','operation':'Bad','apiVersion':'v1',"
                      "'fieldsType':'FieldsV1'}]"),
              kept);
  EXPECT_THAT(
      rewrite("[{'manager':'x','operation':'Update','apiVersion':'v1','fieldsType':'Bad'}]"), kept);
  EXPECT_THAT(rewrite("[{'manager':'x','operation':'Update','apiVersion':'v1',"
                      "'fieldsType':'FieldsV1','fieldsV1':{'bad':{}}}]"),
              kept);
  EXPECT_THAT(rewrite("[{'manager':'x','operation':'Update','apiVersion':'a/b/c',"
                      "'fieldsType':'FieldsV1','fieldsV1':{'f:a':{}}}]"),
              kept);
  EXPECT_THAT(rewrite("[{'manager':'x','operation':'Update','apiVersion':'e.com/v1',"
                      "'fieldsType':'FieldsV1','fieldsV1':{'f:a':{}}}]"),
              ElementsAre("x Update {'f:a':{}}"));
  EXPECT_THAT(rewrite("[{}]"), IsEmpty());
  EXPECT_THAT(rewrite("[]"), IsEmpty());
  EXPECT_THAT(rewrite("", true), IsEmpty());
}

TEST_F(Apply, is_not_tracked_after_the_entries_were_forgotten_until_applied_to) {
  update("maker", "{'replicas':1,'image':'a'}");
  live_.mut("metadata").set("managedFields", from_text("[{}]"));
  update("other", "{'replicas':2,'image':'a'}");
  EXPECT_THAT(owners(), IsEmpty());
  update("other", "{'replicas':3,'image':'a'}");
  EXPECT_THAT(owners(), IsEmpty());
  EXPECT_EQ(apply_spec("one", "{'replicas':4}"),
            "Apply failed with 1 conflict: conflict with \"before-first-apply\" using e.com/v1: "
            ".spec.replicas");
  EXPECT_EQ(apply_spec("one", "{'replicas':3}"), "");
  EXPECT_THAT(owners(), ElementsAre("one Apply {'f:spec':{'f:replicas':{}}}",
                                    "before-first-apply Update {'f:spec':{'.':{},'f:image':{},"
                                    "'f:replicas':{}}}"));
}

TEST_F(Apply, does_not_own_what_its_door_resets) {
  const FieldSet status = FieldSet::of({{"status"}});
  FieldWriter main = writer("one");
  main.reset = &status;
  EXPECT_EQ(run(main, from_text("{'apiVersion':'e.com/v1','kind':'Thing','metadata':{'name':'a'},"
                                "'spec':{'replicas':1},'status':{'replicas':5}}")),
            "");
  EXPECT_THAT(owners(), ElementsAre("one Apply {'f:spec':{'f:replicas':{}}}"));
}

TEST_F(Apply, keeps_managers_of_sub_resources_apart) {
  apply_spec("one", "{'replicas':1}");
  update("one", "{'replicas':3,'conditions':[{'type':'Ready','status':'True'}]}", "status");
  EXPECT_THAT(owners(), ElementsAre("one Apply {'f:spec':{'f:replicas':{}}}",
                                    "one/status Update {'f:status':{'.':{},'f:conditions':{'.':{},"
                                    "'k:{\\'type\\':\\'Ready\\'}'"
                                    ":{'.':{},'f:status':{},'f:type':{}}},'f:replicas':{}}}"));
}

TEST_F(Apply, kubectl_takes_over_what_it_applied_on_the_client_side) {
  live_ = from_text(
      "{'apiVersion':'e.com/v1','kind':'Thing','metadata':{'name':'a'},"
      "'spec':{'replicas':1,'image':'a'}}");
  live_.mut("metadata")
      .mut("annotations")
      .set("kubectl.kubernetes.io/last-applied-configuration",
           "{\"apiVersion\":\"e.com/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\"},"
           "\"spec\":{\"replicas\":1}}\n");
  Value created = live_;
  live_ = track_update(writer("kubectl-client-side-apply"), nullptr, created);
  live_.mut("metadata").set("uid", "u");
  const Value before = live_;
  EXPECT_EQ(apply_spec("other", "{'replicas':2}"),
            "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using "
            "e.com/v1: .spec.replicas");
  EXPECT_EQ(apply_spec("kubectl", "{'replicas':2,'image':'b'}"),
            "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using "
            "e.com/v1: .spec.image");
  EXPECT_EQ(apply_spec("kubectl", "{'replicas':2}"), "");
  EXPECT_EQ(spec(), "{'replicas':2,'image':'a'}");
  EXPECT_EQ(live_["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
                .as_string(),
            "{\"apiVersion\":\"e.com/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\"},"
            "\"spec\":{\"replicas\":2}}\n");
}

TEST_F(Apply, asks_for_other_versions_of_managers) {
  // In v0 of the kind the replicas are called `any`.
  const auto rename = [](const Value& object, std::string_view from, std::string_view to) {
    Value out = object;
    if (const Value* value = object["spec"].find(from)) {
      out.mut("spec").set(to, *value);
      out.mut("spec").erase(from);
    }
    return out;
  };
  const VersionConverter convert =
      [&](const Value& object, std::string_view version) -> Result<std::optional<VersionedObject>> {
    if (version == "e.com/v9") return std::optional<VersionedObject>();
    const bool old = version == "e.com/v0";
    Value out = old ? rename(object, "replicas", "any") : rename(object, "any", "replicas");
    out.set("apiVersion", version);
    return std::optional(VersionedObject{out, &schemas_.thing()});
  };
  live_ = from_text(
      "{'apiVersion':'e.com/v1','kind':'Thing','metadata':{'name':'a','uid':'u',"
      "'managedFields':["
      "{'manager':'old','operation':'Apply','apiVersion':'e.com/v0',"
      "'fieldsType':'FieldsV1','fieldsV1':{'f:spec':{'f:any':{}}}},"
      "{'manager':'lost','operation':'Update','apiVersion':'e.com/v9',"
      "'fieldsType':'FieldsV1','fieldsV1':{'f:spec':{'f:any':{}}}}]},"
      "'spec':{'replicas':1,'image':'a'}}");
  Value config = from_text(
      "{'apiVersion':'e.com/v1','kind':'Thing','metadata':{'name':'a'},"
      "'spec':{'replicas':2}}");
  FieldWriter by = writer("new");
  by.convert = &convert;
  EXPECT_EQ(run(by, config), "Apply failed with 1 conflict: conflict with \"old\": .spec.any");
  EXPECT_EQ(run(by, config, true), "");
  EXPECT_THAT(owners(), ElementsAre("new Apply {'f:spec':{'f:replicas':{}}}"));

  by.manager = "old";
  live_.mut("metadata")
      .set("managedFields", from_text("[{'manager':'old','operation':'Apply','apiVersion':'e.com/"
                                      "v0','fieldsType':'FieldsV1',"
                                      "'fieldsV1':{'f:spec':{'f:any':{}}}},"
                                      "{'manager':'keeper','operation':'Update','apiVersion':'e."
                                      "com/v1','fieldsType':'FieldsV1',"
                                      "'fieldsV1':{'f:spec':{'f:image':{}}}}]"));
  EXPECT_EQ(run(by, from_text("{'apiVersion':'e.com/v1','kind':'Thing','metadata':{'name':'a'}}")),
            "");
  EXPECT_EQ(spec(), "{'image':'a'}");
}

TEST_F(Apply, is_idempotent_and_forced_apply_says_what_it_gets) {
  std::mt19937 random(5);
  const auto random_spec = [&] {
    Value spec = Value::object();
    if (random() % 2) spec.set("replicas", static_cast<int>(random() % 3));
    if (random() % 2) spec.set("image", random() % 2 ? "a" : "b");
    for (unsigned n = random() % 3; n > 0; --n) {
      spec.mut("labels").set(std::string(1, static_cast<char>('a' + random() % 3)),
                             random() % 2 ? "1" : "2");
    }
    std::vector<int> ports = {1, 2, 3};
    std::shuffle(ports.begin(), ports.end(), random);
    ports.resize(random() % 3);
    for (const int port : ports) {
      Value item = Value::object({{"port", port}});
      if (random() % 2) item.set("name", random() % 2 ? "x" : "y");
      if (random() % 3 == 0) item.set("protocol", "UDP");
      spec.mut("ports").push(item);
    }
    if (random() % 3 == 0)
      spec.set("args", Value::array({"a", static_cast<int>(random() % 2) ? "b" : "c"}));
    if (random() % 3 == 0)
      spec.set("any",
               Value::object({{"x", Value::object({{"y", static_cast<int>(random() % 2)}})}}));
    return spec;
  };
  const char* managers[] = {"one", "two", "three"};
  for (int round = 0; round < 600; ++round) {
    if (round % 20 == 0) live_ = Value();
    Value config = from_text("{'apiVersion':'e.com/v1','kind':'Thing','metadata':{'name':'a'}}");
    config.set("spec", random_spec());
    const char* manager = managers[random() % 3];
    if (random() % 4 == 0 && !live_.is_null()) {
      update(manager, json::write(random_spec()));
      continue;
    }
    ASSERT_EQ(run(writer(manager), config, true), "");
    const Value once = live_;

    // All that was applied is there, and applying again changes nothing.
    const auto merged = merge_objects(live_, config, schemas_.thing());
    ASSERT_TRUE(merged.ok());
    EXPECT_TRUE(*merged == live_) << json::write(live_) << json::write(config);
    ASSERT_EQ(run(writer(manager), config, false), "") << json::write(once);
    EXPECT_TRUE(once == live_) << json::write(once) << "\n" << json::write(live_);

    // Whatever anybody applied is there, if only as the way to something else.
    const auto leaves = field_set_of(live_, schemas_.thing());
    ASSERT_TRUE(leaves.ok());
    const FieldSet all = with_named_fields(*leaves, schemas_.thing());
    for (const Value& entry : live_["metadata"]["managedFields"].items()) {
      const auto owned = FieldSet::from_json(entry["fieldsV1"]);
      ASSERT_TRUE(owned.ok());
      if (entry["operation"].as_string() == "Apply") {
        EXPECT_TRUE(owned->without(all).empty())
            << json::write(live_) << json::write(owned->without(all).to_json());
      }
    }
  }
}

TEST(ManagedFields, of_a_scale_go_there_and_back) {
  const FieldPath replicas = {PathElement::field("spec"), PathElement::field("replicas")};
  const Value entries = from_text(
      "[{'manager':'a','operation':'Apply','apiVersion':'apps/v1','time':'2020-01-01T00:00:00Z',"
      "'fieldsType':'FieldsV1','fieldsV1':{'f:spec':{'f:x':{}}}},"
      "{'manager':'b','operation':'Update','apiVersion':'apps/v1','time':'2020-01-01T00:00:00Z',"
      "'fieldsType':'FieldsV1','fieldsV1':{'f:spec':{'f:replicas':{},'f:y':{}}}}]");

  const Value scale = managed_fields_to_scale(entries, replicas);

  EXPECT_EQ(text_of(scale),
            "[{'manager':'b','operation':'Update','apiVersion':'autoscaling/v1',"
            "'time':'2020-01-01T00:00:00Z',"
            "'fieldsType':'FieldsV1','fieldsV1':{'f:spec':{'f:replicas':{}}}}]");
  EXPECT_TRUE(managed_fields_from_scale(entries, scale, replicas, "apps/v1") == entries);
  const Value taken = from_text(
      "[{'manager':'c','operation':'Update',"
      "'apiVersion':'autoscaling/v1','time':'2020-01-02T00:00:00Z',"
      "'fieldsType':'FieldsV1','fieldsV1':{'f:spec':{'f:replicas':{}}},"
      "'subresource':'scale'}]");
  EXPECT_EQ(text_of(managed_fields_from_scale(entries, taken, replicas, "apps/v1")),
            "[{'manager':'a','operation':'Apply','apiVersion':'apps/v1',"
            "'time':'2020-01-01T00:00:00Z','fieldsType':'FieldsV1',"
            "'fieldsV1':{'f:spec':{'f:x':{}}}},"
            "{'manager':'c','operation':'Update','apiVersion':'apps/v1','fieldsType':'FieldsV1',"
            "'fieldsV1':{'f:spec':{'f:replicas':{}}},'subresource':'scale'},"
            "{'manager':'b','operation':'Update','apiVersion':'apps/v1',"
            "'time':'2020-01-01T00:00:00Z','fieldsType':'FieldsV1',"
            "'fieldsV1':{'f:spec':{'f:y':{}}}}]");
}

TEST(ManagedFields, keep_their_times_when_only_times_differ) {
  const Value old = from_text(
      "{'metadata':{'resourceVersion':'1','managedFields':[{'manager':'a',"
      "'time':'1'}]},'data':{}}");
  const Value later = from_text(
      "{'metadata':{'managedFields':[{'manager':'a','time':'2'}]},"
      "'data':{}}");
  EXPECT_EQ(keep_times(old, later)["metadata"]["managedFields"][0]["time"].as_string(), "1");
  Value changed = later;
  changed.set("data", from_text("{'k':'v'}"));
  EXPECT_EQ(keep_times(old, changed)["metadata"]["managedFields"][0]["time"].as_string(), "2");
}

TEST(CompareObjects, joins_what_is_modified_with_what_is_added) {
  test::SchemaBuilder schemas;
  const Schema& thing = schemas.thing();
  const char* specs[] = {
      "{}",
      "{'replicas':1,'ports':[{'port':1,'x':1},{'port':2,'x':2}]}",
      "{'replicas':2,'ports':[{'port':2,'x':2},{'port':1,'x':3}]}",
      "{'ports':[{'port':1,'x':1},{'port':2,'x':3}],'set':['a','b']}",
      "{'ports':[{'port':1,'x':1},{'port':1,'x':2}],'set':['b','a'],'labels':{'a':'b'}}",
      "{'ports':[{'port':1,'x':1},{'port':1,'x':3}],'set':['a','a'],'labels':{}}",
      "{'ports':[{'port':1,'protocol':'TCP'}],'any':{'x':[1]},'opaque':{'x':1}}",
      "{'ports':[],'any':{'x':{'y':1}},'opaque':{'x':2},'args':['x']}",
  };
  for (const char* before : specs) {
    for (const char* after : specs) {
      const Value left = Value::object({{"spec", from_text(before)}});
      const Value right = Value::object({{"spec", from_text(after)}});
      const auto apart = compare_objects(left, right, thing);
      const auto joined = compare_objects(left, right, thing, true);
      ASSERT_TRUE(apart.ok() && joined.ok());
      EXPECT_TRUE(joined->modified.empty());
      EXPECT_EQ(joined->added, apart->added.united(apart->modified)) << before << after;
      EXPECT_EQ(joined->removed, apart->removed);
    }
  }
}

TEST(CompareObjects, tells_the_same_whether_items_stay_in_place_or_not) {
  test::SchemaBuilder schemas;
  const Value before = from_text(
      "{'spec':{'ports':[{'port':1,'protocol':'TCP','x':1},{'port':2,'protocol':'TCP'}]}}");
  for (const char* ports : {"[{'port':1,'protocol':'TCP','x':2},{'port':2,'protocol':'TCP'}]",
                            "[{'port':2,'protocol':'TCP'},{'port':1,'protocol':'TCP','x':2}]",
                            "[{'port':1,'x':2},{'port':2,'protocol':'TCP'}]"}) {
    const Value after = Value::object({{"spec", Value::object({{"ports", from_text(ports)}})}});
    const auto comparison = compare_objects(before, after, schemas.thing());
    ASSERT_TRUE(comparison.ok());
    EXPECT_EQ(text_of(comparison->modified.to_json()),
              "{'f:spec':{'f:ports':{'k:{\\'port\\':1,\\'protocol\\':\\'TCP\\'}':{'f:x':{}}}}}")
        << ports;
  }
}

TEST(CompareObjects, does_not_look_at_managed_fields) {
  test::SchemaBuilder schemas;
  const auto comparison = compare_objects(
      from_text("{'metadata':{'managedFields':[{}],'labels':{'a':'b'}}}"),
      from_text("{'metadata':{'managedFields':[],'labels':{'a':'b'}}}"), schemas.thing());
  ASSERT_TRUE(comparison.ok());
  EXPECT_TRUE(comparison->same());
}

}  // namespace
}  // namespace dibs::api
