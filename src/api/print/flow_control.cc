// FlowSchemas and the levels that they lead to.
#include "api/print/printer.h"

namespace dibs::api::print {
namespace {

constexpr const char* kGroup = "flowcontrol.apiserver.k8s.io";

void print_schema(Row& row) {
  const json::Value& spec = row.object["spec"];
  row.name();
  row.add(spec["priorityLevelConfiguration"]["name"].str());
  row.integer(spec["matchingPrecedence"]);
  row.add(text_or(spec["distinguisherMethod"]["type"], "<none>"));
  row.age();
  std::string missing = "?";
  for (const json::Value& condition : row.object["status"]["conditions"].items()) {
    if (condition["type"].as_string() == "Dangling") missing = condition["status"].str();
  }
  row.add(missing);
}

void print_level(Row& row) {
  const json::Value& limited = row.object["spec"]["limited"];
  const json::Value& queuing = limited["limitResponse"]["queuing"];
  const auto number = [&row](const json::Value& value) {
    row.add(value.is_null() ? json::Value("<none>") : json::Value(value.as_int()));
  };
  row.name();
  row.add(row.object["spec"]["type"].str());
  number(limited["nominalConcurrencyShares"]);
  number(queuing["queues"]);
  number(queuing["handSize"]);
  number(queuing["queueLengthLimit"]);
  row.age();
}

}  // namespace

void add_flow_control(Printers& printers) {
  printers.add(kGroup, "FlowSchema",
               {name_column(), text_column("PriorityLevel", "The level of its requests"),
                text_column("MatchingPrecedence", "The lowest that matches counts"),
                text_column("DistinguisherMethod", "What tells its flows apart"), age_column(),
                text_column("MissingPL", "Whether there is no such level")},
               print_schema);
  printers.add(kGroup, "PriorityLevelConfiguration",
               {name_column(), text_column("Type", "Limited, or Exempt from all limits"),
                text_column("NominalConcurrencyShares", "Its share of the seats"),
                text_column("Queues", "How many queues it has"),
                text_column("HandSize", "In how many of them a flow may wait"),
                text_column("QueueLengthLimit", "How many may wait in each"), age_column()},
               print_level);
}

}  // namespace dibs::api::print
