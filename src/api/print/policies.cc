// Quotas and budgets.
#include <map>

#include "api/print/printer.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

std::string quantity(const json::Value& value) {
  auto parsed = Quantity::parse(value.as_string("0"));
  return parsed.ok() ? parsed->str() : value.str();
}

void print_quota(Row& row) {
  const json::Value& status = row.object["status"];
  std::map<std::string, const json::Value*> hard;
  for (const auto& [name, amount] : status["hard"].members()) hard.emplace(name, &amount);
  std::string requests;
  std::string limits;
  for (const auto& [name, amount] : hard) {
    std::string& text = name.starts_with("limits") ? limits : requests;
    append(text, text.empty() ? "" : ", ", name, ": ", quantity(status["used"][name]), '/',
           quantity(*amount));
  }
  row.name();
  row.add(requests);
  row.add(limits);
  row.age();
}

void print_disruption_budget(Row& row) {
  row.name();
  row.add(int_or_string(row.object["spec"]["minAvailable"], "N/A"));
  row.add(int_or_string(row.object["spec"]["maxUnavailable"], "N/A"));
  row.integer(row.object["status"]["disruptionsAllowed"]);
  row.age();
}

}  // namespace

void add_policies(Printers& printers) {
  printers.add("", "ResourceQuota",
               {name_column(), text_column("Request", "Used and allowed amounts of requests"),
                text_column("Limit", "Used and allowed amounts of limits"), age_column()},
               print_quota);
  printers.add(
      "policy", "PodDisruptionBudget",
      {name_column(), text_column("Min Available", "Pods that must stay"),
       text_column("Max Unavailable", "Pods that may be missing"),
       integer_column("Allowed Disruptions", "Pods that may be disrupted now"), age_column()},
      print_disruption_budget);
}

}  // namespace dibs::api::print
