#include <algorithm>
#include <memory>

#include "api/kinds/rule_table.h"
#include "api/schema/builtin.h"
#include "api/schema/gates.h"

namespace dibs::api {
namespace {

// Lays the gates of a kind's fields over what it does with a new or changed object.
void add_gates(KindRules& rules, const Schema& schema) {
  auto gates = std::make_shared<const Gates>(schema);
  auto drop = [gates](Value& object, const Value* old, const RuleContext& context) {
    if (context.features != nullptr) gates->drop_disabled(object, old, *context.features);
  };
  rules.prepare_create = [drop, create = rules.prepare_create](Value& object,
                                                               const RuleContext& context) {
    drop(object, nullptr, context);
    if (create) create(object, context);
  };
  rules.prepare_update = [drop, update = rules.prepare_update](Value& object, const Value& old,
                                                               const RuleContext& context) {
    drop(object, &old, context);
    if (update) update(object, old, context);
  };
  rules.prepare_status = [drop, status = rules.prepare_status](Value& object, const Value& old,
                                                               const RuleContext& context) {
    if (status) status(object, old, context);
    drop(object, &old, context);
  };
}

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
  add_api_service_rules(table);
  add_flow_rules(table);
  add_migration_rules(table);
  for (auto& [name, rules] : table) {
    const Schema* schema = builtin_schema(name.first, "v1", name.second);
    if (schema != nullptr && schema->gated) add_gates(rules, *schema);
  }
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
