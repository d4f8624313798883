#pragma once
// How the files of this folder give their kinds to table.cc. Private to the folder.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/print/table.h"

namespace dibs::api::print {

/// Collects the cells of one row.
class Row {
 public:
  Row(const json::Value& object, Time now) : object(object), now(now) {}

  const json::Value& object;
  const Time now;

  void add(json::Value cell) { cells.push(std::move(cell)); }
  /// metadata.name and the time since metadata.creationTimestamp.
  void name();
  void age();
  /// The number, 0 when it is not there.
  void integer(const json::Value& number) { add(json::Value(number.as_int())); }

  json::Value cells = json::Value::array();
};

struct Printer {
  std::vector<Column> columns;
  void (*print)(Row& row);
};

class Printers {
 public:
  void add(std::string_view group, std::string_view kind, std::vector<Column> columns,
           void (*print)(Row&));
  /// For one version of the group only.
  void add_version(std::string_view group, std::string_view version, std::string_view kind,
                   std::vector<Column> columns, void (*print)(Row&));
  const Printer* find(std::string_view group, std::string_view version,
                      std::string_view kind) const;

 private:
  std::map<std::string, Printer, std::less<>> printers_;
};

void add_pods(Printers& printers);
void add_workloads(Printers& printers);
void add_autoscaling(Printers& printers);
void add_jobs(Printers& printers);
void add_nodes(Printers& printers);
void add_services(Printers& printers);
void add_access(Printers& printers);
void add_storage(Printers& printers);
void add_policies(Printers& printers);
void add_events(Printers& printers);
void add_extensions(Printers& printers);
void add_scheduling(Printers& printers);
void add_flow_control(Printers& printers);
void add_resource(Printers& printers);

json::Value pod_conditions(const json::Value& pod);

// Columns.
Column name_column();
Column age_column();
Column text_column(std::string_view name, std::string_view description);
Column integer_column(std::string_view name, std::string_view description);
Column boolean_column(std::string_view name, std::string_view description);
/// The same column, in wide output only.
Column wide(Column column);

// Cells.

/// How long ago; "<unknown>" when unset.
std::string since(const json::Value& timestamp, Time now);
/// The same of a time that was read, however long ago.
std::string age(Time then, Time now);
std::string text_or(const json::Value& value, std::string_view fallback);
/// "True", "False", "<unset>".
std::string yes_or_no(const json::Value& value);
/// "a=b,c=d" by key, "<none>" for none.
std::string labels_text(const json::Value& labels);
/// A LabelSelector: "a=b,c in (d,e),!f", "<none>" for none.
std::string selector_text(const json::Value& selector);
/// The containers' members with commas between them.
std::string containers_text(const json::Value& containers, std::string_view member);
std::string joined(const json::Value& list, std::string_view separator);
/// Three of the pieces, and how many more there are.
std::string first_three(const std::vector<std::string>& pieces);
/// The condition of a type, or null.
const json::Value& find_condition(const json::Value& status, std::string_view type);
bool has_condition(const json::Value& status, std::string_view type);
/// An IntOrString.
std::string int_or_string(const json::Value& value, std::string_view fallback);

}  // namespace dibs::api::print
