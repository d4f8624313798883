#include "api/print/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/print/printer.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

Time now() { return *parse_rfc3339("2026-03-01T12:00:00Z"); }

/// The cells of an object given as JSON, as JSON. "made" stands for metadata of an object named x,
/// five minutes old.
std::string cells(std::string_view group, std::string_view kind, std::string text,
                  std::string_view version = "v1") {
  constexpr std::string_view kMade =
      R"("metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z"})";
  if (std::size_t at = text.find("made"); at != std::string::npos) text.replace(at, 4, kMade);
  auto object = json::parse(text);
  EXPECT_TRUE(object.ok()) << text;
  if (!object.ok()) return "";
  return json::write(table_row_cells(group, version, kind, *object, now()));
}

std::string names(const std::vector<Column>& columns) {
  std::string out;
  for (const Column& column : columns) {
    append(out, out.empty() ? "" : ",", column.name, column.priority > 0 ? "*" : "");
  }
  return out;
}

TEST(Table, kinds_without_columns_show_name_and_creation) {
  EXPECT_EQ(names(table_columns("example.com", "v1", "Thing")), "Name,Created At");
  EXPECT_EQ(cells("example.com", "Thing", "{made}"), R"(["x","2026-03-01T11:55:00Z"])");
  EXPECT_EQ(cells("", "LimitRange", "{}"), R"(["","0001-01-01T00:00:00Z"])");
}

TEST(Table, an_empty_object_still_gives_a_row) {
  EXPECT_EQ(cells("", "ConfigMap", "{}"), R"(["",0,"<unknown>"])");
}

TEST(Table, ages_of_what_began_before_time_are_as_old_as_can_be) {
  const Time now = Time::from_seconds(1'800'000'000);
  EXPECT_EQ(print::since("0001-01-01T00:00:00Z", now), "292y");
  EXPECT_EQ(print::since("9999-12-31T23:59:59Z", now), "<invalid>");
  EXPECT_EQ(print::age(now - std::chrono::hours(5), now), "5h");
}

TEST(Table, definitions_carry_all_members) {
  EXPECT_EQ(json::write(column_definitions({{"A", "string", "name", "text", 1}})),
            R"([{"name":"A","type":"string","format":"name","description":"text","priority":1}])");
}

TEST(Table, every_printer_gives_one_cell_per_column) {
  struct Kind {
    const char* group;
    const char* version;
    const char* kind;
  };
  for (const Kind& k : std::initializer_list<Kind>{
           {"", "v1", "Pod"},
           {"", "v1", "PodTemplate"},
           {"", "v1", "Node"},
           {"", "v1", "Namespace"},
           {"", "v1", "Service"},
           {"", "v1", "Endpoints"},
           {"", "v1", "Event"},
           {"", "v1", "Secret"},
           {"", "v1", "ServiceAccount"},
           {"", "v1", "PersistentVolume"},
           {"", "v1", "PersistentVolumeClaim"},
           {"", "v1", "ReplicationController"},
           {"", "v1", "ResourceQuota"},
           {"", "v1", "ComponentStatus"},
           {"apps", "v1", "Deployment"},
           {"apps", "v1", "ReplicaSet"},
           {"apps", "v1", "StatefulSet"},
           {"apps", "v1", "DaemonSet"},
           {"apps", "v1", "ControllerRevision"},
           {"autoscaling", "v1", "Scale"},
           {"autoscaling", "v1", "HorizontalPodAutoscaler"},
           {"autoscaling", "v2", "HorizontalPodAutoscaler"},
           {"batch", "v1", "Job"},
           {"batch", "v1", "CronJob"},
           {"events.k8s.io", "v1", "Event"},
           {"discovery.k8s.io", "v1", "EndpointSlice"},
           {"coordination.k8s.io", "v1", "Lease"},
           {"certificates.k8s.io", "v1", "CertificateSigningRequest"},
           {"certificates.k8s.io", "v1", "PodCertificateRequest"},
           {"rbac.authorization.k8s.io", "v1", "RoleBinding"},
           {"storage.k8s.io", "v1", "StorageClass"},
           {"storage.k8s.io", "v1", "CSIDriver"},
           {"storage.k8s.io", "v1", "CSINode"},
           {"storage.k8s.io", "v1", "VolumeAttachment"},
           {"storage.k8s.io", "v1", "VolumeAttributesClass"},
           {"policy", "v1", "PodDisruptionBudget"},
           {"node.k8s.io", "v1", "RuntimeClass"},
           {"scheduling.k8s.io", "v1", "PriorityClass"},
           {"scheduling.k8s.io", "v1alpha2", "PodGroup"},
           {"scheduling.k8s.io", "v1alpha2", "Workload"},
           {"scheduling.k8s.io", "v1alpha3", "CompositePodGroup"},
           {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"},
           {"apiregistration.k8s.io", "v1", "APIService"},
           {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"},
           {"admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"},
           {"admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"},
           {"admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy"},
           {"resource.k8s.io", "v1", "DeviceClass"},
           {"resource.k8s.io", "v1", "ResourceClaim"},
           {"resource.k8s.io", "v1", "ResourceSlice"},
           {"resource.k8s.io", "v1alpha3", "DeviceTaintRule"},
           {"resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest"},
           {"resource.k8s.io", "v1alpha2", "ResourceClass"},
           {"resource.k8s.io", "v1alpha2", "ResourceClaim"},
           {"resource.k8s.io", "v1alpha2", "ResourceClaimTemplate"},
           {"resource.k8s.io", "v1alpha2", "ResourceSlice"},
           {"resource.k8s.io", "v1alpha2", "ResourceClassParameters"},
           {"resource.k8s.io", "v1alpha2", "PodSchedulingContext"}}) {
    json::Value row = table_row_cells(k.group, k.version, k.kind, json::Value::object(), now());
    EXPECT_EQ(row.size(), table_columns(k.group, k.version, k.kind).size()) << k.group << k.kind;
    EXPECT_NE(names(table_columns(k.group, k.version, k.kind)), "Name,Created At") << k.kind;
  }
}

TEST(PodTable, restarts_name_the_last_one) {
  EXPECT_EQ(cells("", "Pod", R"({made, "spec": {"containers": [{"name": "c"}]},
                "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}],
                  "containerStatuses": [
                  {"name": "c", "ready": true, "restartCount": 3, "state": {"running": {}},
                   "lastState": {"terminated": {"finishedAt": "2026-03-01T11:59:00Z"}}}]}})"),
            R"j(["x","1/1","Running","3 (60s ago)","5m","10.0.0.1","<none>","<none>","<none>"])j");
}

TEST(PodTable, a_failure_hidden_behind_a_completed_container_shows) {
  std::string pod = R"({made, "spec": {"containers": [{}, {}, {}]}, "status": {"phase": "Running",
      "conditions": [READY], "containerStatuses": [
        {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
        {"state": {"terminated": {"exitCode": 1, "reason": "Error"}}},
        {"ready": true, "state": {"running": {}}}]}})";
  auto with = [&](std::string_view condition) {
    std::string text = pod;
    text.replace(text.find("READY"), 5, condition);
    return (*json::parse(cells("", "Pod", text)))[2].str();
  };
  EXPECT_EQ(with(""), "Error");
  EXPECT_EQ(with(R"({"type": "Ready", "status": "True"})"), "Running");
}

TEST(PodTable, only_ended_pods_have_a_condition) {
  json::Value ended = *json::parse(R"({"status": {"phase": "Failed"}})");
  EXPECT_EQ(
      json::write(table_row_conditions("", "v1", "Pod", ended)),
      R"([{"type":"Completed","status":"True","reason":"Failed","message":"The pod failed."}])");
  EXPECT_TRUE(table_row_conditions("", "v1", "Pod", json::Value::object()).is_null());
  EXPECT_TRUE(table_row_conditions("batch", "v1", "Job", ended).is_null());
}

TEST(JobTable, tells_states_apart) {
  auto status = [](std::string_view conditions, std::string_view metadata = "{}") {
    std::string text =
        cat(R"({"metadata": )", metadata, R"(, "status": {"conditions": [)", conditions, "]}}");
    return (*json::parse(cells("batch", "Job", text)))[1].str();
  };
  std::string_view deleted = R"({"deletionTimestamp": "2026-03-01T11:55:00Z"})";
  EXPECT_EQ(status(""), "Running");
  EXPECT_EQ(status(R"({"type": "Complete", "status": "True"})", deleted), "Complete");
  EXPECT_EQ(status(R"({"type": "Suspended", "status": "True"})", deleted), "Terminating");
  EXPECT_EQ(status(R"({"type": "Suspended", "status": "True"})"), "Suspended");
  EXPECT_EQ(status(R"({"type": "Complete", "status": "False"})"), "Running");
}

TEST(ResourceTable, classic_claims_have_columns_of_their_own) {
  EXPECT_EQ(names(table_columns("resource.k8s.io", "v1alpha2", "ResourceClaim")),
            "Name,ResourceClassName,AllocationMode,State,Age");
  EXPECT_EQ(cells("resource.k8s.io", "ResourceClaim",
                  R"({made, "spec": {"resourceClassName": "c", "allocationMode": "Immediate"},
                      "status": {"allocation": {}, "deallocationRequested": true}})",
                  "v1alpha2"),
            R"(["x","c","Immediate","allocated,deallocating","5m"])");
}

TEST(ResourceTable, pool_status_sums_pools) {
  EXPECT_EQ(cells("resource.k8s.io", "ResourcePoolStatusRequest",
                  R"({made, "spec": {"driver": "d"}, "status": {"poolCount": 3,
                      "conditions": [{"type": "Complete", "status": "True",
                                      "lastTransitionTime": "2026-03-01T11:59:30Z"}],
                      "pools": [{"totalDevices": 4, "availableDevices": 1, "allocatedDevices": 3},
                                {"validationError": "bad"}]}})",
                  "v1alpha3"),
            R"j(["x","d","4","1","3","0","1",3,"Complete (2/3 pools)","30s"])j");
  EXPECT_EQ(cells("resource.k8s.io", "ResourcePoolStatusRequest",
                  R"({made, "spec": {"driver": "d"}, "status": {"poolCount": 1,
                      "conditions": [{"type": "Failed", "status": "True"}]}})",
                  "v1alpha3"),
            R"(["x","d","-","-","-","-","-",1,"Failed","<none>"])");
}

TEST(CertificateTable, tells_what_became_of_a_request) {
  const auto row = [](std::string_view conditions) {
    return cells(
        "certificates.k8s.io", "PodCertificateRequest",
        cat(R"({made, "spec": {"podName": "p", "serviceAccountName": "a", "nodeName": "n",)",
            R"("signerName": "e.com/s", "unverifiedUserAnnotations": {"e.com/k": "v"}},)",
            R"("status": {"conditions": [)", conditions, "]}}"));
  };
  EXPECT_EQ(row(""), R"(["x","p","a","n","e.com/s","Pending","e.com/k=v"])");
  EXPECT_EQ(row(R"({"type": "Denied"})"), R"(["x","p","a","n","e.com/s","Denied","e.com/k=v"])");
}

TEST(ServiceTable, puts_ipv6_addresses_in_brackets) {
  EXPECT_EQ(cells("", "Endpoints",
                  R"({made, "subsets": [{"addresses": [{"ip": "fd00::1"}],
                                          "ports": [{"port": 80}]}]})"),
            R"(["x","[fd00::1]:80","5m"])");
}

TEST(ApiServiceTable, tells_why_a_service_is_not_available) {
  EXPECT_EQ(cells("apiregistration.k8s.io", "APIService", R"({made, "spec": {},
                "status": {"conditions": [{"type": "Available", "status": "True"}]}})"),
            R"(["x","Local","True","5m"])");
  EXPECT_EQ(cells("apiregistration.k8s.io", "APIService",
                  R"({made, "spec": {"service": {"namespace": "n", "name": "s"}},
                "status": {"conditions": [{"type": "Available", "status": "False",
                                           "reason": "Why"}]}})"),
            R"j(["x","n/s","False (Why)","5m"])j");
}

TEST(CustomTable, shows_the_first_value_of_each_path) {
  CustomPrinter printer(*json::parse(R"j([
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
    {"name": "Ready", "type": "string",
     "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
    {"name": "All", "type": "string", "jsonPath": ".spec.list[*]"},
    {"name": "When", "type": "date", "jsonPath": ".spec.when"},
    {"name": "Broken", "type": "string", "jsonPath": ".a["}])j"));
  EXPECT_EQ(names(printer.columns()), "Name,Size*,Ready,All,When,Broken");
  EXPECT_EQ(json::write(printer.cells(*json::parse(R"({"metadata": {"name": "x"},
                "spec": {"size": 2.9, "list": ["a", "b"], "when": "2026-03-01T11:59:00Z"},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]}})"),
                                      now())),
            R"(["x",2,"True","a","60s",null])");
  EXPECT_EQ(json::write(
                printer.cells(*json::parse(R"({"spec": {"size": "big", "when": "soon"}})"), now())),
            R"(["",null,null,null,"<invalid>",null])");
}

TEST(CustomTable, without_columns_there_is_the_age) {
  CustomPrinter printer(nullptr);
  EXPECT_EQ(names(printer.columns()), "Name,Age");
  EXPECT_EQ(printer.columns()[1].type, "date");
}

}  // namespace
}  // namespace dibs::api
