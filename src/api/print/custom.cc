// Rows of custom resources.
#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api {

namespace {

json::Value age_of(std::string_view text, Time now) {
  auto time = parse_rfc3339(text);
  return time.ok() ? json::Value(print::age(*time, now)) : json::Value("<invalid>");
}

/// A value that does not fit the column's type shows nothing.
json::Value cell_of(const Column& column, const json::Value& value, Time now) {
  if (column.type == "string") return json_path_text(value);
  if (column.type == "integer") {
    return value.is_number() ? json::Value(value.as_int()) : json::Value();
  }
  if (column.type == "number") return value.is_number() ? value : json::Value();
  if (column.type == "boolean") return value.is_boolean() ? value : json::Value();
  if (column.type == "date" && value.is_string()) return age_of(value.as_string(), now);
  return nullptr;
}

}  // namespace

CustomPrinter::CustomPrinter(const json::Value& printer_columns) {
  columns_.push_back(print::name_column());
  for (const json::Value& definition : printer_columns.items()) {
    Column column;
    column.name = definition["name"].str();
    column.type = definition["type"].str();
    column.format = definition["format"].str();
    column.description = definition["description"].str();
    column.priority = static_cast<int>(definition["priority"].as_int());
    columns_.push_back(std::move(column));
    auto path = JsonPath::parse(definition["jsonPath"].as_string());
    paths_.push_back(path.ok() ? std::optional(*path) : std::nullopt);
  }
  if (printer_columns.empty()) {
    columns_.push_back(print::age_column());
    columns_.back().type = "date";
    paths_.emplace_back(*JsonPath::parse(".metadata.creationTimestamp"));
  }
}

json::Value CustomPrinter::cells(const json::Value& object, Time now) const {
  json::Value cells = json::Value::array();
  cells.push(object["metadata"]["name"].as_string());
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    json::Value cell;
    if (paths_[i]) {
      // A column has room for one value, so only the first of a list shows.
      auto found = paths_[i]->find(object);
      if (found.ok() && !found->empty()) cell = cell_of(columns_[i + 1], found->front(), now);
    }
    cells.push(cell);
  }
  return cells;
}

}  // namespace dibs::api
