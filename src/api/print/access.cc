// Who may do what, and the small things of a namespace: accounts, secrets, config maps, leases.
#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

void print_binding(Row& row) {
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::vector<std::string> accounts;
  for (const json::Value& subject : row.object["subjects"].items()) {
    std::string_view kind = subject["kind"].as_string();
    std::string name = subject["name"].str();
    if (kind == "User") users.push_back(name);
    if (kind == "Group") groups.push_back(name);
    if (kind == "ServiceAccount") {
      accounts.push_back(cat(subject["namespace"].as_string(), '/', name));
    }
  }
  const json::Value& role = row.object["roleRef"];
  row.name();
  row.add(cat(role["kind"].as_string(), '/', role["name"].as_string()));
  row.age();
  row.add(join(users, ", "));
  row.add(join(groups, ", "));
  row.add(join(accounts, ", "));
}

void print_name_and_age(Row& row) {
  row.name();
  row.age();
}

void print_secret(Row& row) {
  row.name();
  row.add(row.object["type"].as_string());
  row.add(static_cast<std::int64_t>(row.object["data"].size()));
  row.age();
}

void print_config_map(Row& row) {
  row.name();
  row.add(static_cast<std::int64_t>(row.object["data"].size() + row.object["binaryData"].size()));
  row.age();
}

void print_lease(Row& row) {
  row.name();
  row.add(row.object["spec"]["holderIdentity"].as_string());
  row.age();
}

std::string csr_condition(const json::Value& status) {
  bool approved = false;
  bool denied = false;
  bool failed = false;
  for (const json::Value& condition : status["conditions"].items()) {
    std::string_view type = condition["type"].as_string();
    approved = approved || type == "Approved";
    denied = denied || type == "Denied";
    failed = failed || type == "Failed";
  }
  std::string text = denied ? "Denied" : approved ? "Approved" : "Pending";
  if (failed) text += ",Failed";
  if (!status["certificate"].as_string().empty()) text += ",Issued";
  return text;
}

void print_signing_request(Row& row) {
  const json::Value& spec = row.object["spec"];
  const json::Value& seconds = spec["expirationSeconds"];
  row.name();
  row.age();
  row.add(text_or(spec["signerName"], "<none>"));
  row.add(spec["username"].as_string());
  row.add(seconds.is_integer() ? human_duration(std::chrono::seconds(seconds.as_int()))
                               : std::string("<none>"));
  row.add(csr_condition(row.object["status"]));
}

std::string pod_certificate_state(const json::Value& status) {
  std::string_view state = "Pending";
  for (const json::Value& condition : status["conditions"].items()) {
    for (std::string_view known : {"Issued", "Denied", "Failed"}) {
      if (condition["type"].as_string() == known) state = known;
    }
  }
  return std::string(state);
}

void print_pod_certificate_request(Row& row) {
  const json::Value& spec = row.object["spec"];
  row.name();
  for (const char* field : {"podName", "serviceAccountName", "nodeName", "signerName"}) {
    row.add(spec[field].as_string());
  }
  row.add(pod_certificate_state(row.object["status"]));
  row.add(labels_text(spec["unverifiedUserAnnotations"]));
}

}  // namespace

void add_access(Printers& printers) {
  constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
  for (std::string_view kind : {"RoleBinding", "ClusterRoleBinding"}) {
    printers.add(kRbac, kind,
                 {name_column(), text_column("Role", "Kind and name of the role"), age_column(),
                  wide(text_column("Users", "Users it is given to")),
                  wide(text_column("Groups", "Groups it is given to")),
                  wide(text_column("ServiceAccounts", "Service accounts it is given to"))},
                 print_binding);
  }
  printers.add("", "ServiceAccount", {name_column(), age_column()}, print_name_and_age);
  printers.add("", "Secret",
               {name_column(), text_column("Type", "What kind of secret"),
                text_column("Data", "How many keys it has"), age_column()},
               print_secret);
  printers.add("", "ConfigMap",
               {name_column(), text_column("Data", "How many keys it has"), age_column()},
               print_config_map);
  printers.add("coordination.k8s.io", "Lease",
               {name_column(), text_column("Holder", "Who holds it"), age_column()}, print_lease);
  printers.add("certificates.k8s.io", "ClusterTrustBundle",
               {name_column(), text_column("SignerName", "Whose authorities they are")},
               [](Row& row) {
                 row.name();
                 row.add(text_or(row.object["spec"]["signerName"], "<none>"));
               });
  printers.add("certificates.k8s.io", "CertificateSigningRequest",
               {name_column(), age_column(), text_column("SignerName", "Who is asked to sign"),
                text_column("Requestor", "Who asked"),
                text_column("RequestedDuration", "How long the certificate should hold"),
                text_column("Condition", "What became of it")},
               print_signing_request);
  printers.add(
      "certificates.k8s.io", "PodCertificateRequest",
      {name_column(), text_column("PodName", "The pod that the certificate is for"),
       text_column("ServiceAccountName", "The service account of the pod"),
       text_column("NodeName", "The node that the pod is on"),
       text_column("SignerName", "Who is asked to sign"),
       text_column("State", "Pending, Issued, Denied or Failed"),
       text_column("UnverifiedUserAnnotations", "What the pod's author says to the signer")},
      print_pod_certificate_request);
}

}  // namespace dibs::api::print
