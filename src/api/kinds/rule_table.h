#pragma once
// Where each file of this folder hands in the rules of its kinds. registry.cc calls them all once.

#include <map>
#include <string>
#include <utility>

#include "api/schema/kind.h"

namespace dibs::api {

/// (group, kind) to rules; the core group is "".
using RuleTable = std::map<std::pair<std::string, std::string>, KindRules>;

void add_pod_rules(RuleTable& table);   // Pod, PodTemplate
void add_node_rules(RuleTable& table);  // Node
void add_core_rules(
    RuleTable& table);  // Namespace, ConfigMap, Secret, ServiceAccount, LimitRange, …
void add_service_rules(RuleTable& table);      // Service, Endpoints, EndpointSlice, networking
void add_storage_rules(RuleTable& table);      // PersistentVolume(Claim), storage.k8s.io
void add_workload_rules(RuleTable& table);     // apps, ReplicationController
void add_job_rules(RuleTable& table);          // batch
void add_policy_rules(RuleTable& table);       // policy, scheduling, node.k8s.io, coordination
void add_access_rules(RuleTable& table);       // rbac, certificates
void add_event_rules(RuleTable& table);        // events
void add_admission_rules(RuleTable& table);    // admissionregistration
void add_api_service_rules(RuleTable& table);  // apiregistration
void add_flow_rules(RuleTable& table);         // flowcontrol.apiserver
void add_migration_rules(RuleTable& table);    // storagemigration

}  // namespace dibs::api
