#include <algorithm>

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

const RuleTable& all_rules() {
  static const RuleTable table = make_table();
  return table;
}

}  // namespace

const KindRules& kind_rules(std::string_view group, std::string_view kind) {
  static const KindRules none;
  auto found = all_rules().find({std::string(group), std::string(kind)});
  return found == all_rules().end() ? none : found->second;
}

bool is_former_version(std::string_view api_version, std::string_view kind) {
  for (const auto& [name, rules] : all_rules()) {
    const auto& former = rules.former_versions;
    if (name.second == kind && std::find(former.begin(), former.end(), api_version) != former.end())
      return true;
  }
  return false;
}

}  // namespace dibs::api
