#include "server/selection.h"

#include <algorithm>

#include "api/kinds/selector_limits.h"
#include "api/merge/selectors.h"
#include "base/strings.h"

namespace dibs::server {

struct Selection::Parts {
  api::LabelSelector labels;
  api::FieldSelector fields;
  const std::vector<api::SelectableField>* selectable = nullptr;
};

namespace {

/// Kinds with fields of their own have words of their own for the others.
std::string unknown_field(const Resource& resource, std::string_view field) {
  const api::KindRules& rules = *resource.rules;
  if (resource.custom || !rules.selectable.empty()) {
    return rules.refuse_selector ? rules.refuse_selector(field)
                                 : cat("field label not supported: ", field);
  }
  return cat(quoted(field),
             " is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
}

/// A built-in kind of the cluster that lists its fields leaves metadata.namespace out.
bool knows_namespace(const Resource& resource) {
  return resource.namespaced || resource.custom || resource.rules->selectable.empty();
}

}  // namespace

Selection::Selection() : parts_(std::make_unique<Parts>()) {}
Selection::Selection(Selection&&) noexcept = default;
Selection& Selection::operator=(Selection&&) noexcept = default;
Selection::~Selection() = default;

Result<Selection> Selection::parse(const net::Target& target, const Resource& resource) {
  Selection selection;
  DIBS_TRY(selection.parts_->labels, api::parse_label_selector(target.get("labelSelector")));
  DIBS_TRY(selection.parts_->fields, api::parse_field_selector(target.get("fieldSelector")));
  std::size_t terms = selection.parts_->fields.requirements().size();
  for (const auto& one : selection.parts_->labels.requirements()) terms += 1 + one.values.size();
  if (terms > api::kMaxSelectorTerms) {
    return Error::bad_request(cat("unable to parse requirement: selectors have ", terms,
                                  " terms and values, at most ", api::kMaxSelectorTerms,
                                  " are allowed"));
  }
  const auto& selectable = resource.rules->selectable;
  for (const auto& requirement : selection.parts_->fields.requirements()) {
    const std::string& field = requirement.field;
    bool known = field == "metadata.name" ||
                 (field == "metadata.namespace" && knows_namespace(resource)) ||
                 std::any_of(selectable.begin(), selectable.end(),
                             [&](const auto& candidate) { return candidate.label == field; });
    if (!known) return Error::bad_request(unknown_field(resource, field));
  }
  selection.parts_->selectable = &selectable;
  return selection;
}

bool Selection::everything() const { return parts_->labels.empty() && parts_->fields.empty(); }

bool Selection::matches(const Value& object) const {
  const Value& metadata = object["metadata"];
  if (!parts_->labels.empty() && !parts_->labels.matches(metadata["labels"])) return false;
  if (parts_->fields.empty()) return true;
  std::string held;
  return parts_->fields.matches([&](std::string_view field) -> std::string_view {
    if (field == "metadata.name") return metadata["name"].as_string();
    if (field == "metadata.namespace") return metadata["namespace"].as_string();
    if (parts_->selectable) {
      for (const auto& candidate : *parts_->selectable) {
        if (candidate.label == field) {
          held = candidate.get(object);
          return held;
        }
      }
    }
    return {};
  });
}

std::optional<std::string> Selection::exact_name() const {
  return parts_->fields.exact("metadata.name");
}

void Selection::require_name(std::string name) {
  auto requirements = parts_->fields.requirements();
  requirements.push_back({"metadata.name", true, std::move(name)});
  parts_->fields = api::FieldSelector(std::move(requirements));
}

}  // namespace dibs::server
