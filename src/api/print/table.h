#pragma once
// Tables of meta.k8s.io/v1: what `kubectl get` shows of an object, worked out by the server.
//
// A kind has a list of columns and a function that makes one cell per column out of an object in
// the version that was asked for. Cells are strings unless the column's meaning is a number or a
// boolean. Kinds without columns of their own show their name and creation time. Pure functions,
// thread-safe.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/print/json_path.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::api {

struct Column {
  std::string name;
  std::string type;
  std::string format;
  std::string description;
  int priority = 0;  // above 0: only in wide output
};

/// The version counts only where versions of a group show different columns.
const std::vector<Column>& table_columns(std::string_view group, std::string_view version,
                                         std::string_view kind);
/// An array with one cell per column.
json::Value table_row_cells(std::string_view group, std::string_view version, std::string_view kind,
                            const json::Value& object, Time now);
/// The row's conditions, or null when it has none: only pods that ended have one.
json::Value table_row_conditions(std::string_view group, std::string_view version,
                                 std::string_view kind, const json::Value& object);

/// Table.columnDefinitions.
json::Value column_definitions(const std::vector<Column>& columns);

/// The columns of one version of a custom resource.
class CustomPrinter {
 public:
  /// additionalPrinterColumns of the version; null or empty gives the age alone.
  explicit CustomPrinter(const json::Value& printer_columns);

  const std::vector<Column>& columns() const { return columns_; }
  json::Value cells(const json::Value& object, Time now) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::optional<JsonPath>> paths_;  // of columns_[1] and on; a broken one shows null
};

}  // namespace dibs::api
