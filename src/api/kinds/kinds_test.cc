// Behaviour of these kinds that no recording shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kinds/cluster/event.h"
#include "api/kinds/rule_table.h"
#include "api/kinds/workload/cron.h"
#include "api/kinds/workload/job.h"
#include "api/kinds/workload/scale.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Value parsed(std::string_view text) {
  Result<Value> value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

const KindRules& rules_of(void (*add)(RuleTable&), const std::string& group,
                          const std::string& kind) {
  static std::map<std::pair<std::string, std::string>, RuleTable> tables;
  RuleTable& table = tables[{group, kind}];
  if (table.empty()) add(table);
  return table.at({group, kind});
}

std::vector<std::string> texts(const FieldErrors& errors) {
  std::vector<std::string> out;
  for (const FieldError& error : errors.errors()) out.push_back(error.field + ": " + error.text);
  return out;
}

// --- schedules ---

TEST(Cron, tells_what_is_wrong_in_the_words_of_the_api) {
  struct Case {
    const char* text;
    const char* fault;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"", "empty spec string"},
           {"not cron", "expected exactly 5 fields, found 2: [not cron]"},
           {"* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"},
           {"61 * * * *", "end of range (61) above maximum (59): 61"},
           {"* 24 * * *", "end of range (24) above maximum (23): 24"},
           {"* * 0 * *", "beginning of range (0) below minimum (1): 0"},
           {"* * * * 7", "end of range (7) above maximum (6): 7"},
           {"5-2 * * * *", "beginning of range (5) beyond end of range (2): 5-2"},
           {"1-2-3 * * * *", "too many hyphens: 1-2-3"},
           {"1/2/3 * * * *", "too many slashes: 1/2/3"},
           {"*/0 * * * *", "step of range should be a positive number: */0"},
           {"x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"},
           {"@often", "unrecognized descriptor: @often"},
           {"TZ=Nowhere/X * * * * *",
            "provided bad location Nowhere/X: unknown time zone Nowhere/X"}}) {
    Result<CronSchedule> schedule = parse_cron(c.text);
    ASSERT_FALSE(schedule.ok()) << c.text;
    EXPECT_EQ(schedule.error().message(), c.fault) << c.text;
  }
}

TEST(Cron, finds_the_next_time) {
  struct Case {
    const char* text;
    const char* after;
    const char* next;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"*/5 * * * *", "2024-01-01T00:00:00Z", "2024-01-01T00:05:00Z"},
           {"*/5 * * * *", "2024-01-01T00:04:59Z", "2024-01-01T00:05:00Z"},
           {"0 3 * * *", "2024-01-01T03:00:00Z", "2024-01-02T03:00:00Z"},
           {"0 0 29 feb *", "2024-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
           {"0 0 13 * fri", "2024-01-01T00:00:00Z", "2024-01-05T00:00:00Z"},
           {"30 9 * * 1-5", "2024-01-06T00:00:00Z", "2024-01-08T09:30:00Z"},
           {"@hourly", "2024-01-01T00:00:00Z", "2024-01-01T01:00:00Z"},
           {"@weekly", "2024-01-01T00:00:00Z", "2024-01-07T00:00:00Z"},
           {"@monthly", "2024-01-15T00:00:00Z", "2024-02-01T00:00:00Z"},
           {"@yearly", "2024-01-15T00:00:00Z", "2025-01-01T00:00:00Z"},
           {"@every 90m", "2024-01-01T00:00:00Z", "2024-01-01T01:30:00Z"},
           {"1,2 5/10 * * *", "2024-01-01T05:02:00Z", "2024-01-01T15:01:00Z"}}) {
    Result<CronSchedule> schedule = parse_cron(c.text);
    ASSERT_TRUE(schedule.ok()) << c.text << schedule.error().message();
    auto next = next_run(*schedule, *parse_rfc3339(c.after));
    ASSERT_TRUE(next.has_value()) << c.text;
    EXPECT_EQ(format_rfc3339(*next), c.next) << c.text;
  }
}

TEST(Cron, gives_up_on_a_day_that_never_comes) {
  EXPECT_FALSE(next_run(*parse_cron("0 0 30 feb *"), Time{}).has_value());
}

TEST(Cron, counts_in_the_zone_of_the_offset) {
  auto next = next_run(*parse_cron("0 0 * * *"), *parse_rfc3339("2024-01-01T12:00:00Z"), 3600);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(format_rfc3339(*next), "2024-01-01T23:00:00Z");
}

TEST(Cron, knows_the_zones) {
  EXPECT_TRUE(is_time_zone("UTC"));
  EXPECT_TRUE(is_time_zone("Europe/Vienna"));
  EXPECT_FALSE(is_time_zone("Mars/Base"));
  EXPECT_FALSE(is_time_zone(""));
}

// --- scale ---

TEST(Scale, shows_selector_with_expressions_in_order) {
  Value object = parsed(R"({"metadata":{"name":"d","uid":"u"},"spec":{"replicas":2,"selector":
    {"matchLabels":{"z":"1","a":"2"},"matchExpressions":[{"key":"m","operator":"In","values":["y","x"]},
     {"key":"b","operator":"Exists"},{"key":"n","operator":"DoesNotExist"}]}},"status":{"replicas":1}})");

  Value scale = scale_of(object);

  EXPECT_EQ(scale["status"]["selector"].str(), "a=2,b,m in (x,y),!n,z=1");
  EXPECT_EQ(scale["spec"]["replicas"].as_int(), 2);
}

TEST(Scale, takes_over_preconditions_of_the_scale) {
  Value object = parsed(R"({"metadata":{"name":"d","resourceVersion":"7"},"spec":{"replicas":2}})");

  Result<Value> free = apply_scale(object, parsed(R"({"spec":{"replicas":5}})"));
  Result<Value> bound =
      apply_scale(object, parsed(R"({"metadata":{"resourceVersion":"6"},"spec":{"replicas":5}})"));

  ASSERT_TRUE(free.ok() && bound.ok());
  EXPECT_FALSE((*free)["metadata"].contains("resourceVersion"));
  EXPECT_EQ((*bound)["metadata"]["resourceVersion"].str(), "6");
  EXPECT_EQ((*bound)["spec"]["replicas"].as_int(), 5);
}

TEST(Scale, of_a_custom_resource_follows_its_paths) {
  ScalePaths paths{".spec.size", ".status.now", ".status.sel"};
  Value object =
      parsed(R"({"metadata":{"name":"a"},"spec":{"size":3},"status":{"now":1,"sel":"x=y"}})");

  Result<Value> scale = scale_of_custom(object, paths);
  Result<Value> changed = apply_scale_custom(object, parsed(R"({"spec":{"replicas":4}})"), paths);

  ASSERT_TRUE(scale.ok() && changed.ok());
  EXPECT_EQ((*scale)["status"]["selector"].str(), "x=y");
  EXPECT_EQ((*changed)["spec"]["size"].as_int(), 4);
}

TEST(Scale, of_a_custom_resource_without_replicas_must_get_some) {
  ScalePaths paths{".spec.size", ".status.now", ""};
  Value object = parsed(R"({"metadata":{"name":"a"}})");
  Value scale = *scale_of_custom(object, paths, true);
  mark_without_replicas(scale, object, paths);

  EXPECT_EQ(apply_scale_custom(object, scale, paths).error().message(),
            "the spec replicas field \".spec.size\" cannot be empty");
  Result<Value> put = apply_scale_custom(object, parsed(R"({"spec":{}})"), paths);
  EXPECT_EQ((*put)["spec"]["size"], Value(0));
}

TEST(Scale, of_a_custom_resource_without_replicas_is_an_error_only_on_read) {
  ScalePaths paths{".spec.size", ".status.now", ""};
  Value object = parsed(R"({"metadata":{"name":"a"}})");

  Result<Value> read = scale_of_custom(object, paths);

  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message(),
            "Internal error occurred: the spec replicas field \".spec.size\" does not exist");
  EXPECT_TRUE(scale_of_custom(object, paths, true).ok());
  Result<Value> changed = apply_scale_custom(object, parsed(R"({"spec":{"replicas":4}})"), paths);
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ((*changed)["spec"]["size"].as_int(), 4);
}

// --- jobs ---

TEST(Job, indexes_rise_and_stay_below_the_completions) {
  struct Case {
    const char* text;
    const char* fault;
  };
  for (const Case& c :
       std::initializer_list<Case>{{"5", "too large index: \"5\""},
                                   {"1-2-3",
                                    "the fragment \"1-2-3\" violates the requirement that an index "
                                    "interval can have at most "
                                    "two parts separated by '-'"},
                                   {"a", "cannot convert string to integer for index: \"a\""},
                                   {"2,1", "non-increasing order, previous: 2, current: 1"},
                                   {"3-1", "non-increasing order, previous: 3, current: 1"}}) {
    Result<std::int64_t> count = parse_job_indexes(c.text, 5);
    ASSERT_FALSE(count.ok()) << c.text;
    EXPECT_EQ(count.error().message(), c.fault);
  }
  EXPECT_EQ(*parse_job_indexes("0,2-4", 5), 4);
  EXPECT_EQ(*parse_job_indexes("", 5), 0);
}

TEST(Job, failed_needs_a_failure_target) {
  const KindRules& rules = rules_of(add_job_rules, "batch", "Job");
  Value old = parsed(R"({"spec":{"completions":1},"status":{"startTime":"2024-01-01T00:00:00Z"}})");
  Value failed = old;
  failed.mut("status").set("conditions", parsed(R"([{"type":"Failed","status":"True"}])"));
  Value targeted = old;
  targeted.mut("status").set("conditions", parsed(R"([{"type":"FailureTarget","status":"True"},
                                                      {"type":"Failed","status":"True"}])"));

  FieldErrors without;
  rules.validate_status(failed, old, without);
  FieldErrors with;
  rules.validate_status(targeted, old, with);

  EXPECT_THAT(texts(without),
              ElementsAre("status.conditions: Invalid value: cannot set Failed=True condition "
                          "without the FailureTarget=true condition"));
  EXPECT_THAT(texts(with), IsEmpty());
}

TEST(Job, counters_do_not_fall) {
  const KindRules& rules = rules_of(add_job_rules, "batch", "Job");
  Value old = parsed(R"({"spec":{},"status":{"failed":3,"succeeded":2}})");
  Value job = parsed(R"({"spec":{},"status":{"failed":1}})");

  FieldErrors errors;
  rules.validate_status(job, old, errors);

  EXPECT_THAT(texts(errors),
              ElementsAre("status.failed: Invalid value: 1: cannot decrease the failed counter",
                          "status.succeeded: Invalid value: 0: cannot decrease the succeeded "
                          "counter"));
}

TEST(Job, keeps_labels_of_its_own_and_follows_those_of_the_template) {
  const KindRules& rules = rules_of(add_job_rules, "batch", "Job");
  auto made = [&](const char* text) {
    Value job = parsed(text);
    job.mut("metadata").set("uid", "u");
    rules.set_defaults(job);
    rules.prepare_create(job, {});
    return job;
  };

  Value plain = made(R"({"metadata":{"name":"j"},"spec":{"template":{"spec":{"containers":[]}}}})");
  Value own = made(R"({"metadata":{"name":"j","labels":{"a":"b"}},
                       "spec":{"template":{"spec":{"containers":[]}}}})");
  Value followed = made(R"({"metadata":{"name":"j"},
                       "spec":{"template":{"metadata":{"labels":{"x":"y"}},"spec":{"containers":[]}}}})");

  EXPECT_EQ(plain["metadata"]["labels"].size(), 4u);
  EXPECT_EQ(own["metadata"]["labels"].size(), 1u);
  EXPECT_EQ(followed["metadata"]["labels"].size(), 5u);
  EXPECT_EQ(followed["metadata"]["labels"], followed["spec"]["template"]["metadata"]["labels"]);
}

// --- others ---

TEST(DaemonSet, counts_changes_of_its_template) {
  const KindRules& rules = rules_of(add_workload_rules, "apps", "DaemonSet");
  constexpr const char* kKey = "deprecated.daemonset.template.generation";
  Value old = parsed(R"({"metadata":{},"spec":{"template":{"spec":{"x":1}}}})");
  rules.prepare_create(old, {});
  Value same = old;
  same.mut("metadata").erase("annotations");
  Value other = old;
  other.mut("spec").mut("template").set("spec", parsed(R"({"x":2})"));

  rules.prepare_update(same, old, {});
  rules.prepare_update(other, old, {});

  EXPECT_EQ(old["metadata"]["annotations"][kKey].str(), "1");
  EXPECT_EQ(same["metadata"]["annotations"][kKey].str(), "1");
  EXPECT_EQ(other["metadata"]["annotations"][kKey].str(), "2");
}

TEST(Event, goes_between_its_two_forms_without_loss) {
  Value core = parsed(R"({"kind":"Event","apiVersion":"v1","metadata":{"name":"e"},
    "involvedObject":{"kind":"Pod"},"reason":"R","message":"m","source":{"component":"c"},
    "firstTimestamp":"2020-01-01T00:00:00Z","lastTimestamp":"2020-01-01T00:00:00Z","count":3,"type":"Normal",
    "eventTime":null,"reportingComponent":"","reportingInstance":""})");

  Value other = event_from_core(core);

  EXPECT_EQ(other["apiVersion"].str(), "events.k8s.io/v1");
  EXPECT_EQ(other["note"].str(), "m");
  EXPECT_EQ(other["deprecatedCount"].as_int(), 3);
  EXPECT_FALSE(other.contains("reportingController"));
  EXPECT_EQ(event_to_core(other), core);
}

TEST(Event, of_the_new_group_must_be_new) {
  const KindRules& rules = rules_of(add_event_rules, "events.k8s.io", "Event");
  FieldErrors errors;

  rules.validate(parsed(R"({"metadata":{"name":"bad","namespace":"events"},"type":"Sideways",
    "regarding":{"kind":"ConfigMap","name":"c","namespace":"events"}})"),
                 errors);

  EXPECT_THAT(texts(errors), ElementsAre("eventTime: Required value",
                                         "type: Invalid value: \"\": has invalid value: Sideways"));
}

TEST(StorageClass, hides_the_value_of_an_immutable_field) {
  const KindRules& rules = rules_of(add_storage_rules, "storage.k8s.io", "StorageClass");
  FieldErrors errors;

  rules.validate_update(parsed(R"({"provisioner":"b"})"), parsed(R"({"provisioner":"a"})"), errors);

  EXPECT_THAT(texts(errors), ElementsAre("provisioner: Invalid value: null: field is immutable"));
}

TEST(PersistentVolumeClaim, shares_its_data_source) {
  const KindRules& rules = rules_of(add_storage_rules, "", "PersistentVolumeClaim");
  Value snapshot = parsed(R"({"metadata":{},"spec":{"dataSource":
    {"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"s"}}})");
  Value other =
      parsed(R"({"metadata":{},"spec":{"dataSource":{"apiGroup":"x.io","kind":"X","name":"s"}}})");

  rules.prepare_create(snapshot, {});
  rules.prepare_create(other, {});

  EXPECT_EQ(snapshot["spec"]["dataSourceRef"]["name"].str(), "s");
  EXPECT_FALSE(other["spec"].contains("dataSource"));
}

TEST(PersistentVolumeClaim, grows_only_when_bound) {
  const KindRules& rules = rules_of(add_storage_rules, "", "PersistentVolumeClaim");
  auto claim = [](const char* size, const char* phase) {
    return parsed(
        std::string(
            R"({"metadata":{},"spec":{"accessModes":["ReadWriteOnce"],"volumeMode":"Filesystem","resources":{"requests":{"storage":")") +
        size + R"("}}},"status":{"phase":")" + phase + R"(","capacity":{"storage":"2Gi"}}})");
  };

  FieldErrors grown;
  rules.validate_update(claim("3Gi", "Bound"), claim("2Gi", "Bound"), grown);
  FieldErrors shrunk;
  rules.validate_update(claim("1Gi", "Bound"), claim("2Gi", "Bound"), shrunk);
  FieldErrors pending;
  rules.validate_update(claim("3Gi", "Pending"), claim("2Gi", "Pending"), pending);

  EXPECT_THAT(texts(grown), IsEmpty());
  EXPECT_THAT(texts(shrunk),
              ElementsAre("spec.resources.requests.storage: Forbidden: field can not be less than "
                          "status.capacity"));
  EXPECT_EQ(pending.size(), 1u);
}

TEST(Webhook, wants_exactly_one_way_to_be_called) {
  const KindRules& rules = rules_of(add_admission_rules, "admissionregistration.k8s.io",
                                    "ValidatingWebhookConfiguration");
  Value object =
      parsed(R"({"webhooks":[{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],
    "clientConfig":{"url":"http://u@h/x?q#f"}},{"name":"short","clientConfig":{}}]})");
  rules.set_defaults(object);

  FieldErrors errors;
  rules.validate(object, errors);

  EXPECT_THAT(
      texts(errors),
      ElementsAre(
          "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL "
          "scheme; desired format: https://host[/path]",
          "webhooks[0].clientConfig.url: Invalid value: \"u\": user information is not permitted "
          "in "
          "the URL",
          "webhooks[0].clientConfig.url: Invalid value: \"f\": fragments are not permitted in the "
          "URL",
          "webhooks[0].clientConfig.url: Invalid value: \"q\": query parameters are not permitted "
          "in "
          "the URL",
          "webhooks[1].name: Invalid value: \"short\": should be a domain with at least three "
          "segments separated by dots",
          "webhooks[1].sideEffects: Required value: must specify one of None, NoneOnDryRun",
          "webhooks[1].clientConfig: Required value: exactly one of url or service is required",
          "webhooks[1].admissionReviewVersions: Required value: must specify one of v1, v1beta1"));
}

// openssl ca -selfsign, with basicConstraints=critical,CA:TRUE
constexpr const char* kAuthority = R"(-----BEGIN CERTIFICATE-----
MIIBKjCB3aADAgECAgECMAUGAytlcDAkMQ4wDAYDVQQDDAVjYXJvbDESMBAGCSsG
AQQBg8JTAgwDdS03MCAXDTIwMDEwMTAwMDAwMFoYDzIwOTkwMTAxMDAwMDAwWjAk
MQ4wDAYDVQQDDAVjYXJvbDESMBAGCSsGAQQBg8JTAgwDdS03MCowBQYDK2VwAyEA
I1hlpE9qzJSf9DujMvv3nVNVchgWXEqaolKZVxC/FZijMjAwMA8GA1UdEwEB/wQF
MAMBAf8wHQYDVR0OBBYEFIHQJrqnGo983bKqyyW86D7EZT89MAUGAytlcANBAMzF
I3KXAa6Zu5CNiqXpzpS/dxXJvN3hCOWBxkaH/c5/HLIRbTiIlHFu+ZDimkwLP1uG
3gMF3DumjbhooQSAwgo=
-----END CERTIFICATE-----
)";

TEST(ClusterTrustBundle, is_looked_at_behind_a_damaged_block) {
  const KindRules& rules = rules_of(add_access_rules, "certificates.k8s.io", "ClusterTrustBundle");
  const auto faults = [&](const std::string& text) {
    Value bundle = parsed(R"({"metadata":{"name":"b"},"spec":{}})");
    bundle.mut("spec").set("trustBundle", text);
    FieldErrors errors;
    rules.validate(bundle, errors);
    return texts(errors);
  };
  const std::string damaged = "-----BEGIN CERTIFICATE-----\nb25l!\n-----END CERTIFICATE-----\n";
  EXPECT_THAT(faults(kAuthority), IsEmpty());
  EXPECT_THAT(faults(kAuthority + damaged + "-----BEGIN KEY-----\nb25l\n-----END KEY-----\n"),
              ElementsAre(testing::HasSubstr("entry 1 has bad block type: KEY")));
}

// --- words of the API ---

std::vector<std::string> faults_of(const KindRules& rules, std::string_view text) {
  Value object = parsed(text);
  if (rules.set_defaults) rules.set_defaults(object);
  FieldErrors errors;
  rules.validate(object, errors);
  return texts(errors);
}

constexpr std::string_view kTemplate =
    R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[
        {"name":"c","image":"i"}]}})";

TEST(Workloads, with_a_selector_that_selects_nothing_are_not_judged_by_their_labels) {
  const std::string spec =
      cat(R"({"metadata":{"name":"x"},"spec":{"selector":{"matchExpressions":[)"
          R"({"operator":"Some","key":"a"}],"matchLabels":{"c":"d","a":"b"}},)",
          kTemplate, "}}");
  constexpr std::string_view kOperator =
      "spec.selector.matchExpressions[0].operator: Invalid value: \"Some\": not a valid selector "
      "operator";
  constexpr std::string_view kShown =
      R"(spec.selector: Invalid value: {"matchLabels":{"a":"b","c":"d"},)"
      R"("matchExpressions":[{"key":"a","operator":"Some"}]})";

  for (const char* kind : {"Deployment", "ReplicaSet"}) {
    EXPECT_THAT(faults_of(rules_of(add_workload_rules, "apps", kind), spec),
                ElementsAre(kOperator, cat(kShown, ": invalid label selector")))
        << kind;
  }
  EXPECT_THAT(faults_of(rules_of(add_workload_rules, "apps", "StatefulSet"), spec),
              ElementsAre(kOperator, kShown));
  EXPECT_THAT(faults_of(rules_of(add_workload_rules, "apps", "DaemonSet"), spec),
              ElementsAre(kOperator));
}

TEST(Workloads, show_a_strategy_of_no_type_as_it_is) {
  EXPECT_THAT(
      faults_of(rules_of(add_workload_rules, "apps", "Deployment"),
                cat(R"({"spec":{"strategy":{"type":"X","rollingUpdate":{"maxSurge":"30%"}},)"
                    R"("selector":{"matchLabels":{"a":"b"}},)",
                    kTemplate, "}}")),
      ElementsAre(R"(spec.strategy: Unsupported value: {"Type":"X","RollingUpdate":)"
                  R"({"MaxUnavailable":0,"MaxSurge":"30%"}}: supported values: "Recreate", )"
                  R"("RollingUpdate")"));
}

TEST(StatefulSet, lacks_its_selector_first) {
  EXPECT_THAT(faults_of(rules_of(add_workload_rules, "apps", "StatefulSet"),
                        cat(R"({"spec":{)", kTemplate, "}}")),
              ElementsAre("spec.selector: Required value",
                          R"(spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` )"
                          "does not match template `labels`"));
}

TEST(ResourceQuota, tells_of_its_scopes_in_the_words_of_the_api) {
  const KindRules& rules = rules_of(add_core_rules, "", "ResourceQuota");
  const auto faults = [&](std::string_view expression) {
    return faults_of(rules, cat(R"({"spec":{"hard":{"services":"1"},"scopeSelector":)"
                                R"({"matchExpressions":[)",
                                expression, "]}}}"));
  };

  EXPECT_THAT(faults(R"({"scopeName":"PriorityClass","operator":"In"})"),
              ElementsAre(R"(spec.scopeSelector.matchExpressions: Invalid value: )"
                          R"({"MatchExpressions":[{"ScopeName":"PriorityClass","Operator":"In",)"
                          R"("Values":null}]}: unsupported scope applied to resource)",
                          "spec.scopeSelector.matchExpressions.values: Required value: must be at "
                          "least one value when `operator` is 'In' or 'NotIn' for scope selector"));
}

TEST(CsiDriver, is_told_where_tokens_are_better_handed_over) {
  const KindRules& rules = rules_of(add_storage_rules, "storage.k8s.io", "CSIDriver");
  const Value open = parsed(R"({"spec":{"tokenRequests":[{"audience":"a"}]}})");
  Value said = open;
  said.mut("spec").set("serviceAccountTokenInSecrets", false);

  EXPECT_EQ(rules.warnings(open, nullptr).size(), 1U);
  EXPECT_THAT(rules.warnings(open, &open), IsEmpty());
  EXPECT_THAT(rules.warnings(said, nullptr), IsEmpty());
  EXPECT_THAT(rules.warnings(parsed(R"({"spec":{}})"), nullptr), IsEmpty());
}

TEST(PriorityLevel, has_the_part_of_its_type_alone) {
  const KindRules& rules =
      rules_of(add_flow_rules, "flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration");
  const auto faults = [&](std::string_view spec) {
    return faults_of(rules, cat(R"({"metadata":{"name":"p"},"spec":)", spec, "}"));
  };

  EXPECT_THAT(faults(R"({"type":"Limited"})"), ElementsAre("spec.limited: Required value"));
  EXPECT_THAT(faults(R"({"exempt":{}})"),
              ElementsAre("spec.exempt: Forbidden", "spec.type: Required value"));
  EXPECT_THAT(
      faults(R"({"type":"Limited","limited":{"limitResponse":{"type":"X","queuing":{}}}})"),
      ElementsAre(R"(spec.limited.limitResponse.type: Unsupported value: "X": supported values: )"
                  R"("Queue", "Reject")",
                  "spec.limited.limitResponse.queuing: Forbidden"));
}

TEST(Job, shows_what_cannot_change_as_the_server_has_it) {
  const Value old =
      parsed(cat(R"({"metadata":{"name":"j"},"spec":{"completions":1,"completionMode":"Indexed",)",
                 kTemplate, "}}"));
  Value changed = old;
  changed.mut("spec").set("successPolicy", parsed(R"({"rules":[{"succeededIndexes":"0"}]})"));
  FieldErrors errors;

  rules_of(add_job_rules, "batch", "Job").validate_update(changed, old, errors);

  EXPECT_THAT(texts(errors),
              testing::Contains(R"(spec.successPolicy: Invalid value: {"Rules":[)"
                                R"({"SucceededIndexes":"0","SucceededCount":null}]}: field is )"
                                "immutable"));
}

}  // namespace
}  // namespace dibs::api
