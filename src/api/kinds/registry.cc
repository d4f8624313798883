#include "api/kinds/pod/claim_gates.h"
#include "api/kinds/rule_table.h"

namespace dibs::api {
namespace {

RuleTable make_table() {
  RuleTable table;
  add_pod_rules(table);
  add_node_rules(table);
  add_core_rules(table);
  add_service_rules(table);
  add_storage_rules(table);
  add_workload_rules(table);
  add_job_rules(table);
  add_policy_rules(table);
  add_access_rules(table);
  add_event_rules(table);
  add_admission_rules(table);
  add_pod_claim_gates(table);
  return table;
}

}  // namespace

const KindRules& kind_rules(std::string_view group, std::string_view kind) {
  static const RuleTable table = make_table();
  static const KindRules none;
  auto found = table.find({std::string(group), std::string(kind)});
  return found == table.end() ? none : found->second;
}

}  // namespace dibs::api
