// Deployments, replica sets, stateful sets, daemon sets, and what belongs to them.
#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

Column containers_column() { return wide(text_column("Containers", "Names of the containers")); }
Column images_column() { return wide(text_column("Images", "Images of the containers")); }
Column selector_column() { return wide(text_column("Selector", "Which pods belong to it")); }

void add_containers(Row& row) {
  const json::Value& containers = row.object["spec"]["template"]["spec"]["containers"];
  row.add(containers_text(containers, "name"));
  row.add(containers_text(containers, "image"));
}

std::string ready_of(const Row& row) {
  return cat(row.object["status"]["readyReplicas"].as_int(), '/',
             row.object["spec"]["replicas"].as_int());
}

void print_deployment(Row& row) {
  row.name();
  row.add(ready_of(row));
  row.integer(row.object["status"]["updatedReplicas"]);
  row.integer(row.object["status"]["availableReplicas"]);
  row.age();
  add_containers(row);
  row.add(selector_text(row.object["spec"]["selector"]));
}

void add_replicas(Row& row) {
  row.name();
  row.integer(row.object["spec"]["replicas"]);
  row.integer(row.object["status"]["replicas"]);
  row.integer(row.object["status"]["readyReplicas"]);
  row.age();
  add_containers(row);
}

void print_replica_set(Row& row) {
  add_replicas(row);
  row.add(selector_text(row.object["spec"]["selector"]));
}

void print_replication_controller(Row& row) {
  add_replicas(row);
  row.add(labels_text(row.object["spec"]["selector"]));
}

void print_stateful_set(Row& row) {
  row.name();
  row.add(ready_of(row));
  row.age();
  add_containers(row);
}

void print_daemon_set(Row& row) {
  const json::Value& status = row.object["status"];
  row.name();
  row.integer(status["desiredNumberScheduled"]);
  row.integer(status["currentNumberScheduled"]);
  row.integer(status["numberReady"]);
  row.integer(status["updatedNumberScheduled"]);
  row.integer(status["numberAvailable"]);
  row.add(labels_text(row.object["spec"]["template"]["spec"]["nodeSelector"]));
  row.age();
  add_containers(row);
  row.add(selector_text(row.object["spec"]["selector"]));
}

std::string controller_of(const json::Value& object) {
  for (const json::Value& owner : object["metadata"]["ownerReferences"].items()) {
    if (!owner["controller"].as_bool()) continue;
    std::string_view api_version = owner["apiVersion"].as_string();
    std::size_t slash = api_version.find('/');
    std::string kind = to_lower(owner["kind"].as_string());
    if (slash != std::string_view::npos) append(kind, '.', api_version.substr(0, slash));
    return cat(kind, '/', owner["name"].as_string());
  }
  return "<none>";
}

void print_controller_revision(Row& row) {
  row.name();
  row.add(controller_of(row.object));
  row.integer(row.object["revision"]);
  row.age();
}

std::vector<Column> replica_columns() {
  return {name_column(),
          integer_column("Desired", "How many pods are wanted"),
          integer_column("Current", "How many pods there are"),
          integer_column("Ready", "How many of them are ready"),
          age_column(),
          containers_column(),
          images_column(),
          selector_column()};
}

}  // namespace

void add_workloads(Printers& printers) {
  printers.add("apps", "Deployment",
               {name_column(), text_column("Ready", "Pods that are ready, of those wanted"),
                text_column("Up-to-date", "Pods that have the newest template"),
                text_column("Available", "Pods that have been ready long enough"), age_column(),
                containers_column(), images_column(), selector_column()},
               print_deployment);
  printers.add("apps", "ReplicaSet", replica_columns(), print_replica_set);
  printers.add("", "ReplicationController", replica_columns(), print_replication_controller);
  printers.add("apps", "StatefulSet",
               {name_column(), text_column("Ready", "Pods that are ready, of those wanted"),
                age_column(), containers_column(), images_column()},
               print_stateful_set);
  printers.add("apps", "DaemonSet",
               {name_column(), integer_column("Desired", "Nodes that should run a pod of it"),
                integer_column("Current", "Nodes that run at least one"),
                integer_column("Ready", "Nodes on which it is ready"),
                integer_column("Up-to-date", "Nodes that run the newest template"),
                integer_column("Available", "Nodes on which it has been ready long enough"),
                text_column("Node Selector", "Labels a node must have"), age_column(),
                containers_column(), images_column(), selector_column()},
               print_daemon_set);
  printers.add("apps", "ControllerRevision",
               {name_column(), text_column("Controller", "What the revision belongs to"),
                text_column("Revision", "Its number"), age_column()},
               print_controller_revision);
}

}  // namespace dibs::api::print
