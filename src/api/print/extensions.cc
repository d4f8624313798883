// What extends the API: definitions, aggregated services, webhooks, admission policies.
#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

constexpr std::string_view kAdmission = "admissionregistration.k8s.io";

void print_definition(Row& row) {
  const json::Value& spec = row.object["spec"];
  std::vector<std::string> versions;
  for (const json::Value& version : spec["versions"].items()) {
    versions.push_back(version["name"].str() + (version["storage"].as_bool() ? "(storage)" : ""));
  }
  row.name();
  row.add(spec["scope"].as_string());
  row.add(join(versions, ","));
  row.add(text_or(row.object["metadata"]["creationTimestamp"], "0001-01-01T00:00:00Z"));
  row.add(spec["group"].as_string());
  row.add(spec["names"]["kind"].as_string());
  row.add(joined(spec["names"]["shortNames"], ","));
  row.add(has_condition(row.object["status"], "Established"));
}

std::vector<Column> definition_columns() {
  Column created = text_column("Created At", "When the definition was created");
  created.type = "date";
  return {name_column(),
          text_column("Scope", "Cluster or Namespaced"),
          text_column("Versions", "Its versions, with the one that is stored"),
          created,
          wide(text_column("Group", "The API group")),
          wide(text_column("Kind", "The kind it defines")),
          wide(text_column("ShortNames", "Short names of the resource")),
          wide(boolean_column("Established", "Whether it is served"))};
}

void print_api_service(Row& row) {
  const json::Value& service = row.object["spec"]["service"];
  const json::Value& available = find_condition(row.object["status"], "Available");
  std::string state = text_or(available["status"], "Unknown");
  if (state != "True" && !available.is_null()) {
    append(state, " (", available["reason"].as_string(), ")");
  }
  row.name();
  row.add(service.is_null()
              ? std::string("Local")
              : cat(service["namespace"].as_string(), '/', service["name"].as_string()));
  row.add(state);
  row.age();
}

void print_webhooks(Row& row) {
  row.name();
  row.add(static_cast<std::int64_t>(row.object["webhooks"].size()));
  row.age();
}

std::string param_kind(const json::Value& spec) {
  const json::Value& kind = spec["paramKind"];
  if (kind.is_null()) return "<unset>";
  return cat(kind["apiVersion"].as_string(), '/', kind["kind"].as_string());
}

void print_validating_policy(Row& row) {
  const json::Value& spec = row.object["spec"];
  row.name();
  row.add(static_cast<std::int64_t>(spec["validations"].size()));
  row.add(param_kind(spec));
  row.age();
}

void print_mutating_policy(Row& row) {
  const json::Value& spec = row.object["spec"];
  row.name();
  row.add(static_cast<std::int64_t>(spec["mutations"].size()));
  row.add(param_kind(spec));
  row.age();
}

void print_policy_binding(Row& row) {
  const json::Value& param = row.object["spec"]["paramRef"];
  std::string text = "<unset>";
  if (!param.is_null()) {
    text = cat(text_or(param["namespace"], "*"), '/', param["name"].as_string());
  }
  row.name();
  row.add(row.object["spec"]["policyName"].as_string());
  row.add(text);
  row.age();
}

void print_migration(Row& row) {
  const json::Value& resource = row.object["spec"]["resource"];
  std::string shown = resource["resource"].str();
  if (const auto group = resource["group"].as_string(); !group.empty())
    shown += "." + std::string(group);
  std::string status = "Unknown";
  for (const json::Value& condition : row.object["status"]["conditions"].items()) {
    if (condition["status"].as_string() == "True") status = condition["type"].str();
  }
  row.name();
  row.add(shown);
  row.add(status);
}

}  // namespace

void add_extensions(Printers& printers) {
  printers.add("storagemigration.k8s.io", "StorageVersionMigration",
               {name_column(), text_column("Resource", "What is written anew"),
                text_column("Status", "Running, Succeeded or Failed")},
               print_migration);
  printers.add("apiextensions.k8s.io", "CustomResourceDefinition", definition_columns(),
               print_definition);
  printers.add("apiregistration.k8s.io", "APIService",
               {name_column(), text_column("Service", "Who serves the group and version"),
                text_column("Available", "Whether it can be reached"), age_column()},
               print_api_service);
  for (std::string_view kind : {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}) {
    printers.add(
        kAdmission, kind,
        {name_column(), integer_column("Webhooks", "How many webhooks it has"), age_column()},
        print_webhooks);
  }
  printers.add(kAdmission, "ValidatingAdmissionPolicy",
               {name_column(), integer_column("Validations", "How many checks it has"),
                text_column("ParamKind", "The kind of its parameters"), age_column()},
               print_validating_policy);
  printers.add(kAdmission, "MutatingAdmissionPolicy",
               {name_column(), integer_column("Mutations", "How many changes it makes"),
                text_column("ParamKind", "The kind of its parameters"), age_column()},
               print_mutating_policy);
  for (std::string_view kind :
       {"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"}) {
    printers.add(kAdmission, kind,
                 {name_column(), text_column("PolicyName", "The policy it puts to work"),
                  text_column("ParamRef", "The parameters it gives"), age_column()},
                 print_policy_binding);
  }
}

}  // namespace dibs::api::print
