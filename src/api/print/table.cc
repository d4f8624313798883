#include "api/print/table.h"

#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api {

namespace print {

namespace {

std::string key_of(std::string_view group, std::string_view version, std::string_view kind) {
  return cat(group, '/', version, '/', kind);
}

// The creation time of an object that was never created, as the API's zero time reads.
constexpr std::string_view kZeroTime = "0001-01-01T00:00:00Z";

Printer make_default_printer() {
  Column created;
  created.name = "Created At";
  created.type = "date";
  created.description = "When the object was created";
  return {{name_column(), created}, [](Row& row) {
            row.name();
            row.add(text_or(row.object["metadata"]["creationTimestamp"], kZeroTime));
          }};
}

const Printers& all_printers() {
  static const Printers* const printers = [] {
    auto* made = new Printers;
    add_pods(*made);
    add_workloads(*made);
    add_autoscaling(*made);
    add_jobs(*made);
    add_nodes(*made);
    add_services(*made);
    add_access(*made);
    add_storage(*made);
    add_policies(*made);
    add_events(*made);
    add_extensions(*made);
    add_scheduling(*made);
    add_flow_control(*made);
    add_resource(*made);
    return made;
  }();
  return *printers;
}

const Printer& printer_of(std::string_view group, std::string_view version, std::string_view kind) {
  static const Printer* const fallback = new Printer(make_default_printer());
  const Printer* printer = all_printers().find(group, version, kind);
  return printer != nullptr ? *printer : *fallback;
}

}  // namespace

void Printers::add(std::string_view group, std::string_view kind, std::vector<Column> columns,
                   void (*print)(Row&)) {
  add_version(group, "", kind, std::move(columns), print);
}

void Printers::add_version(std::string_view group, std::string_view version, std::string_view kind,
                           std::vector<Column> columns, void (*print)(Row&)) {
  printers_.emplace(key_of(group, version, kind), Printer{std::move(columns), print});
}

const Printer* Printers::find(std::string_view group, std::string_view version,
                              std::string_view kind) const {
  auto found = printers_.find(key_of(group, version, kind));
  if (found == printers_.end()) found = printers_.find(key_of(group, "", kind));
  return found == printers_.end() ? nullptr : &found->second;
}

}  // namespace print

const std::vector<Column>& table_columns(std::string_view group, std::string_view version,
                                         std::string_view kind) {
  return print::printer_of(group, version, kind).columns;
}

json::Value table_row_cells(std::string_view group, std::string_view version, std::string_view kind,
                            const json::Value& object, Time now) {
  print::Row row(object, now);
  print::printer_of(group, version, kind).print(row);
  return std::move(row.cells);
}

json::Value table_row_conditions(std::string_view group, std::string_view /*version*/,
                                 std::string_view kind, const json::Value& object) {
  if (!group.empty() || kind != "Pod") return nullptr;
  return print::pod_conditions(object);
}

json::Value column_definitions(const std::vector<Column>& columns) {
  json::Value definitions = json::Value::array();
  for (const Column& column : columns) {
    definitions.push(json::Value::object({{"name", column.name},
                                          {"type", column.type},
                                          {"format", column.format},
                                          {"description", column.description},
                                          {"priority", column.priority}}));
  }
  return definitions;
}

}  // namespace dibs::api
