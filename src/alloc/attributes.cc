#include "alloc/attributes.h"

#include <algorithm>
#include <array>

#include "api/devices/device.h"
#include "api/devices/selector_language.h"
#include "base/strings.h"
#include "cel/environment.h"
#include "cel/libraries/quantity.h"

namespace dibs::alloc {
namespace {

struct ValueType {
  std::string_view one;
  std::string_view many;
};
constexpr std::array<ValueType, 4> kTypes = {
    {{"int", "ints"}, {"bool", "bools"}, {"string", "strings"}, {"version", "versions"}}};

std::string text_of(const json::Value& value) {
  if (value.is_integer()) return std::to_string(value.as_int());
  if (value.is_boolean()) return value.as_bool() ? "true" : "false";
  return value.str();
}

/// The type and text of a scalar that an expression gave; an empty type for anything else.
std::pair<std::string_view, std::string> scalar(const cel::Value& value) {
  switch (value.kind()) {
    case cel::Kind::integer:
      return {"int", std::to_string(value.as_integer())};
    case cel::Kind::boolean:
      return {"bool", value.as_boolean() ? "true" : "false"};
    case cel::Kind::string:
      return {"string", std::string(value.text())};
    case cel::Kind::opaque:
      if (value.type_name() == "kubernetes.Semver") {
        return {"version", cel::semver_of(value).str()};
      }
      return {};
    default:
      return {};
  }
}

/// What is wrong with the outcome of an expression; empty: nothing.
std::string fault_of(const cel::Value& value) {
  if (value.is_error()) return std::string(value.text());
  if (!value.is(cel::Kind::list)) {
    if (!scalar(value).first.empty()) return {};
    return cat("unsupported CEL return type: ", value.type_name());
  }
  std::string_view type;
  for (std::size_t i = 0; i < value.as_list().size(); ++i) {
    const cel::Value item = value.as_list().at(i);
    const std::string_view found = scalar(item).first;
    if (i == 0) {
      if (found.empty()) return cat("unsupported list element type: ", item.type_name());
      type = found;
    } else if (found != type) {
      return cat("expected list element at index ", i, " to be ", type, ", got ", item.type_name());
    }
  }
  return {};
}

}  // namespace

AttributeTable::AttributeTable(const api::SelectorEnvironment& environment, bool lists)
    : environment_(environment), lists_(lists), sets_(kFailed + 1) {}

ColumnId AttributeTable::attribute(std::string_view name) {
  const auto [at, added] = ids_.try_emplace(cat("a", name), static_cast<ColumnId>(columns_.size()));
  if (added) {
    columns_.emplace_back();
    columns_.back().name = name;
  }
  return at->second;
}

ColumnId AttributeTable::derived(std::string_view expression) {
  const auto [at, added] =
      ids_.try_emplace(cat("d", expression), static_cast<ColumnId>(columns_.size()));
  if (!added) return at->second;
  columns_.emplace_back();
  Column& column = columns_.back();
  column.name = expression;
  column.derived = true;
  cel::Compilation compiled = api::selector_language(environment_).compile(expression);
  if (compiled.program == nullptr) {
    column.error = cat("compilation failed: ", cel::format_issues(expression, compiled.issues));
  } else if (!compiled.program->constant_error.empty()) {
    column.error = cat("program instantiation failed: ", compiled.program->constant_error);
  } else {
    column.program = std::move(compiled.program);
  }
  return at->second;
}

SetId AttributeTable::read(ColumnId id, Row row, const Slice& slice, const Device& device) {
  if (row >= columns_[id].sets.size()) columns_[id].sets.resize(row + row / 2 + 16, kUnread);
  const SetId set = columns_[id].derived ? evaluate(columns_[id], slice, device)
                                         : read_attribute(columns_[id], slice, device);
  columns_[id].sets[row] = set;
  return set;
}

SetId AttributeTable::read_attribute(const Column& column, const Slice& slice,
                                     const Device& device) {
  const json::Value& attributes = device.source["attributes"];
  const json::Value* found = attributes.find(column.name);
  if (found == nullptr) {
    const std::size_t slash = column.name.find('/');
    if (slash == std::string::npos || column.name.compare(0, slash, slice.driver) != 0) {
      return kMissing;
    }
    found = attributes.find(std::string_view(column.name).substr(slash + 1));
    if (found == nullptr) return kMissing;
  }
  for (const ValueType& type : kTypes) {
    if (const json::Value* one = found->find(type.one)) {
      return set_id({value_id(type.one, text_of(*one))});
    }
  }
  if (!lists_) return kIncomparable;
  for (const ValueType& type : kTypes) {
    const json::Value& many = (*found)[type.many];
    if (many.empty()) continue;
    std::vector<ValueId> ids;
    for (const json::Value& item : many.items()) ids.push_back(value_id(type.one, text_of(item)));
    return set_id(std::move(ids));
  }
  return kIncomparable;
}

cel::Value AttributeTable::run(const Column& column, const Slice& slice,
                               const Device& device) const {
  const api::DeviceInput input =
      api::DeviceInput::read(slice.driver, device.source, api::lists_are_read(environment_));
  if (!input.error().empty()) return cel::Value::error(input.error());
  cel::Limits limits;
  limits.cost = api::kSelectorCostLimit;
  cel::Value value = column.program->evaluate({&input.value(), 1}, limits).value;
  // Texts are borrowed from the input, which ends here.
  if (value.is(cel::Kind::string)) return cel::Value::string(std::string(value.text()));
  if (!value.is(cel::Kind::list) || !fault_of(value).empty()) return value;
  std::vector<cel::Value> items;
  for (std::size_t i = 0; i < value.as_list().size(); ++i) {
    cel::Value item = value.as_list().at(i);
    if (item.is(cel::Kind::string)) item = cel::Value::string(std::string(item.text()));
    items.push_back(std::move(item));
  }
  return cel::Value::list(std::move(items));
}

SetId AttributeTable::evaluate(const Column& column, const Slice& slice, const Device& device) {
  if (column.program == nullptr) return kFailed;
  const cel::Value value = run(column, slice, device);
  if (!fault_of(value).empty()) return kFailed;
  if (!value.is(cel::Kind::list)) {
    const auto [type, text] = scalar(value);
    return set_id({value_id(type, text)});
  }
  if (!lists_ || value.as_list().size() == 0) return kIncomparable;
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < value.as_list().size(); ++i) {
    const auto [type, text] = scalar(value.as_list().at(i));
    ids.push_back(value_id(type, text));
  }
  return set_id(std::move(ids));
}

std::string AttributeTable::error(ColumnId id, const Slice& slice, const Device& device) const {
  const Column& column = columns_[id];
  if (column.program == nullptr) return column.error;
  return fault_of(run(column, slice, device));
}

ValueId AttributeTable::value_id(std::string_view type, std::string_view text) {
  const auto [at, added] =
      value_ids_.try_emplace(cat(type, " ", text), static_cast<ValueId>(texts_.size()));
  if (added) texts_.push_back(at->first);
  return at->second;
}

SetId AttributeTable::set_id(std::vector<ValueId> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::string key(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(ValueId));
  const auto [at, added] = set_ids_.try_emplace(std::move(key), static_cast<SetId>(sets_.size()));
  if (added) sets_.push_back(std::move(values));
  return at->second;
}

bool AttributeTable::intersect(SetId a, SetId b) const {
  const std::vector<ValueId>& x = sets_[a];
  const std::vector<ValueId>& y = sets_[b];
  if (x.empty() || y.empty() || x.back() < y.front() || y.back() < x.front()) return false;
  if (x.size() == 1) return std::binary_search(y.begin(), y.end(), x.front());
  if (y.size() == 1) return std::binary_search(x.begin(), x.end(), y.front());
  for (auto i = x.begin(), j = y.begin(); i != x.end() && j != y.end();) {
    if (*i == *j) return true;
    *i < *j ? ++i : ++j;
  }
  return false;
}

SetId AttributeTable::intersection(SetId a, SetId b) {
  if (a == b) return a;
  std::vector<ValueId> common;
  std::set_intersection(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                        std::back_inserter(common));
  return common.empty() ? kMissing : set_id(std::move(common));
}

void AttributeTable::forget(Row row) {
  for (Column& column : columns_) {
    if (row < column.sets.size()) column.sets[row] = kUnread;
  }
}

}  // namespace dibs::alloc
