// Devices: classes, claims, slices, taints, and the classic kinds of v1alpha2.
#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

constexpr std::string_view kGroup = "resource.k8s.io";
constexpr std::string_view kClassic = "v1alpha2";

void print_name_and_age(Row& row) {
  row.name();
  row.age();
}

std::string claim_state(const json::Value& claim, bool classic) {
  const json::Value& status = claim["status"];
  bool deleted = !claim["metadata"]["deletionTimestamp"].is_null();
  std::vector<std::string> states;
  if (deleted) states.emplace_back("deleted");
  if (status["allocation"].is_null()) {
    if (!deleted) states.emplace_back("pending");
  } else {
    states.emplace_back("allocated");
    if (!status["reservedFor"].empty()) {
      states.emplace_back("reserved");
    } else if (classic && (deleted || status["deallocationRequested"].as_bool())) {
      states.emplace_back("deallocating");
    }
  }
  return join(states, ",");
}

void print_claim(Row& row) {
  row.name();
  row.add(claim_state(row.object, false));
  row.age();
}

void print_slice(Row& row) {
  const json::Value& spec = row.object["spec"];
  row.name();
  row.add(spec["nodeName"].as_string());
  row.add(spec["driver"].as_string());
  row.add(spec["pool"]["name"].as_string());
  row.age();
}

void print_taint_rule(Row& row) {
  const json::Value& taint = row.object["spec"]["taint"];
  row.name();
  row.add(taint["key"].as_string());
  row.add(taint["value"].as_string());
  row.add(taint["effect"].as_string());
  row.add(taint["timeAdded"].is_null() ? std::string() : since(taint["timeAdded"], row.now));
  row.age();
}

struct PoolSums {
  std::int64_t total = 0;
  std::int64_t available = 0;
  std::int64_t allocated = 0;
  std::int64_t unavailable = 0;
  std::int64_t errors = 0;
};

PoolSums sum_pools(const json::Value& pools) {
  PoolSums sums;
  for (const json::Value& pool : pools.items()) {
    sums.total += pool["totalDevices"].as_int();
    sums.available += pool["availableDevices"].as_int();
    sums.allocated += pool["allocatedDevices"].as_int();
    sums.unavailable += pool["unavailableDevices"].as_int();
    if (!pool["validationError"].as_string().empty()) ++sums.errors;
  }
  return sums;
}

void print_pool_status_request(Row& row) {
  const json::Value& status = row.object["status"];
  const json::Value& pools = status["pools"];
  std::int64_t pool_count = status["poolCount"].as_int();
  std::string state = "Pending";
  std::string completed = "<none>";
  for (const json::Value& condition : status["conditions"].items()) {
    std::string_view type = condition["type"].as_string();
    if (condition["status"].as_string() != "True") continue;
    if (type != "Complete" && type != "Failed") continue;
    state = type;
    if (type == "Complete") completed = since(condition["lastTransitionTime"], row.now);
    break;
  }
  bool failed = state == "Failed";
  if (state == "Complete" && pool_count > static_cast<std::int64_t>(pools.size())) {
    state = cat("Complete (", pools.size(), '/', pool_count, " pools)");
  }
  PoolSums sums = sum_pools(pools);
  row.name();
  row.add(row.object["spec"]["driver"].as_string());
  for (std::int64_t number :
       {sums.total, sums.available, sums.allocated, sums.unavailable, sums.errors}) {
    row.add(status.is_null() || failed ? std::string("-") : std::to_string(number));
  }
  row.add(pool_count);
  row.add(state);
  row.add(completed);
}

void print_scheduling_context(Row& row) {
  row.name();
  row.add(row.object["spec"]["selectedNode"].as_string());
  row.age();
}

void print_classic_class(Row& row) {
  row.name();
  row.add(row.object["driverName"].as_string());
  row.age();
}

void print_classic_claim(Row& row) {
  const json::Value& spec = row.object["spec"];
  row.name();
  row.add(spec["resourceClassName"].as_string());
  row.add(spec["allocationMode"].as_string());
  row.add(claim_state(row.object, true));
  row.age();
}

void print_classic_template(Row& row) {
  const json::Value& spec = row.object["spec"]["spec"];
  row.name();
  row.add(spec["resourceClassName"].as_string());
  row.add(spec["allocationMode"].as_string());
  row.age();
}

void print_classic_slice(Row& row) {
  row.name();
  row.add(row.object["nodeName"].as_string());
  row.add(row.object["driverName"].as_string());
  row.age();
}

void print_parameters(Row& row) {
  const json::Value& source = row.object["generatedFrom"];
  row.name();
  row.add(source.is_null() ? std::string()
                           : cat(source["kind"].as_string(), '.', source["apiGroup"].as_string(),
                                 ' ', source["name"].as_string()));
  row.age();
}

void add_classic(Printers& printers) {
  Column class_name = text_column("ResourceClassName", "The class it asks for");
  Column mode = text_column("AllocationMode", "When it is allocated");
  printers.add_version(
      kGroup, kClassic, "ResourceClass",
      {name_column(), text_column("DriverName", "The driver of the class"), age_column()},
      print_classic_class);
  printers.add_version(
      kGroup, kClassic, "ResourceClaim",
      {name_column(), class_name, mode, text_column("State", "How far the claim is"), age_column()},
      print_classic_claim);
  printers.add_version(kGroup, kClassic, "ResourceClaimTemplate",
                       {name_column(), class_name, mode, age_column()}, print_classic_template);
  printers.add_version(kGroup, kClassic, "ResourceSlice",
                       {name_column(), text_column("Node", "The node of the resources"),
                        text_column("Driver", "The driver that published it"), age_column()},
                       print_classic_slice);
  for (std::string_view kind : {"ResourceClaimParameters", "ResourceClassParameters"}) {
    printers.add_version(
        kGroup, kClassic, kind,
        {name_column(), text_column("GeneratedFrom", "The object it was made from"), age_column()},
        print_parameters);
  }
}

}  // namespace

void add_resource(Printers& printers) {
  for (std::string_view kind : {"DeviceClass", "ResourceClaimTemplate"}) {
    printers.add(kGroup, kind, {name_column(), age_column()}, print_name_and_age);
  }
  printers.add(kGroup, "ResourceClaim",
               {name_column(), text_column("State", "How far the claim is"), age_column()},
               print_claim);
  printers.add(kGroup, "ResourceSlice",
               {name_column(), text_column("Node", "The node of the devices"),
                text_column("Driver", "The driver that published it"),
                text_column("Pool", "The pool it is part of"), age_column()},
               print_slice);
  printers.add(
      kGroup, "DeviceTaintRule",
      {name_column(), text_column("Key", "Key of the taint"),
       text_column("Value", "Value of the taint"), text_column("Effect", "What the taint does"),
       text_column("TimeAdded", "Time since the taint holds"), age_column()},
      print_taint_rule);
  printers.add(kGroup, "ResourcePoolStatusRequest",
               {name_column(), text_column("Driver", "The driver that is asked about"),
                text_column("Total", "All devices"), text_column("Available", "Free devices"),
                text_column("Allocated", "Devices in use"),
                text_column("Unavailable", "Devices that cannot be used"),
                text_column("Errors", "Pools with an error"),
                integer_column("Pools", "How many pools match"),
                text_column("Status", "What became of the request"),
                text_column("Completed", "Time since it was answered")},
               print_pool_status_request);
  printers.add(
      kGroup, "PodSchedulingContext",
      {name_column(), text_column("SelectedNode", "The node the scheduler wants"), age_column()},
      print_scheduling_context);
  add_classic(printers);
}

}  // namespace dibs::api::print
