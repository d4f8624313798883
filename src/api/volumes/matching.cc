#include "api/volumes/matching.h"

#include <algorithm>

#include "api/merge/selectors.h"
#include "api/volumes/volumes.h"
#include "base/quantity.h"

namespace dibs::api {
namespace {

Quantity amount(const Value& text) {
  auto parsed = Quantity::parse(text.as_string());
  return parsed.ok() ? std::move(parsed).value() : Quantity();
}

Quantity size_of(const Value& volume) { return amount(volume["spec"]["capacity"]["storage"]); }

Quantity size_wanted(const Value& claim) {
  return amount(claim["spec"]["resources"]["requests"]["storage"]);
}

std::string_view mode_of(const Value& object) {
  return object["spec"]["volumeMode"].as_string("Filesystem");
}

bool has_modes(const Value& volume, const Value& claim) {
  const auto had = volume["spec"]["accessModes"].items();
  const auto wanted = claim["spec"]["accessModes"].items();
  return std::all_of(wanted.begin(), wanted.end(), [&had](const Value& mode) {
    return std::find(had.begin(), had.end(), mode) != had.end();
  });
}

std::string_view attributes_of(const Value& object) {
  return object["spec"]["volumeAttributesClassName"].as_string();
}

bool is_going(const Value& volume) { return !volume["metadata"]["deletionTimestamp"].is_null(); }

/// What holds for reserved and for free volumes.
bool could_serve(const Value& volume, const Value& claim) {
  return size_of(volume) >= size_wanted(claim) && same_volume_mode(volume, claim) &&
         attributes_of(volume) == attributes_of(claim) && !is_going(volume);
}

struct Ranked {
  std::size_t modes;
  Quantity size;
  Value volume;

  bool operator<(const Ranked& other) const {
    if (modes != other.modes) return modes < other.modes;
    if (const int order = size.compare(other.size); order != 0) return order < 0;
    return volume["metadata"]["name"].as_string() < other.volume["metadata"]["name"].as_string();
  }
};

}  // namespace

bool same_volume_mode(const Value& volume, const Value& claim) {
  return mode_of(volume) == mode_of(claim);
}

std::string volume_mismatch(const Value& volume, const Value& claim) {
  if (is_going(volume))
    return "the volume is marked for deletion \"" + volume["metadata"]["name"].str() + "\"";
  if (size_of(volume) < size_wanted(claim)) return "requested PV is too small";
  if (class_of_volume(volume) != class_of_claim(claim)) return "storageClassName does not match";
  if (attributes_of(volume) != attributes_of(claim))
    return "volumeAttributesClassName does not match";
  if (!same_volume_mode(volume, claim)) return "incompatible volumeMode";
  if (!has_modes(volume, claim)) return "incompatible accessMode";
  return {};
}

bool volume_reaches(const Value& volume, const Value& node) {
  const Value& required = volume["spec"]["nodeAffinity"]["required"];
  return required.is_null() || node_selector_matches(required, node);
}

std::vector<Value> serving_volumes(const Value& claim, const std::vector<Value>& reserved,
                                   const std::vector<Value>& free,
                                   const std::function<bool(const Value& volume)>& excluded) {
  const auto is_out = [&](const Value& volume) {
    return (excluded && excluded(volume)) || !could_serve(volume, claim);
  };
  for (const Value& volume : reserved)
    if (is_bound_to(volume, claim) && !is_out(volume)) return {volume};
  const Value& wanted_labels = claim["spec"]["selector"];
  LabelSelector selector;
  if (!wanted_labels.is_null()) {
    auto read = to_label_selector(wanted_labels);
    selector = read.ok() ? std::move(read).value() : LabelSelector::nothing();
  }
  std::vector<Ranked> found;
  for (const Value& volume : free) {
    if (!volume["spec"]["claimRef"].is_null() || is_out(volume)) continue;
    // One in another phase is about to change: to bind it now would most likely fail.
    if (volume["status"]["phase"].as_string() != "Available") continue;
    if (class_of_volume(volume) != class_of_claim(claim) || !has_modes(volume, claim)) continue;
    if (!selector.matches(volume["metadata"]["labels"])) continue;
    found.push_back({volume["spec"]["accessModes"].size(), size_of(volume), volume});
  }
  std::sort(found.begin(), found.end());
  std::vector<Value> out;
  out.reserve(found.size());
  for (Ranked& one : found) out.push_back(std::move(one.volume));
  return out;
}

Value bound_volume(const Value& volume, const Value& claim) {
  const Value& own = claim["metadata"];
  Value next = volume;
  if (!is_bound_to(volume, claim) && !has_annotation(volume, kBoundByController))
    next.mut("metadata").mut("annotations").set(kBoundByController, "yes");
  if (!is_bound_to(volume, claim) || volume["spec"]["claimRef"]["uid"] != own["uid"]) {
    next.mut("spec").set("claimRef", Value::object({{"kind", "PersistentVolumeClaim"},
                                                    {"namespace", own["namespace"]},
                                                    {"name", own["name"]},
                                                    {"uid", own["uid"]},
                                                    {"apiVersion", "v1"},
                                                    {"resourceVersion", own["resourceVersion"]}}));
  }
  return next;
}

bool topology_allows(const Value& storage_class, const Value& node) {
  const auto terms = storage_class["allowedTopologies"].items();
  if (terms.size() == 0) return true;
  const Value& labels = node["metadata"]["labels"];
  return std::any_of(terms.begin(), terms.end(), [&labels](const Value& term) {
    const auto expressions = term["matchLabelExpressions"].items();
    return std::all_of(expressions.begin(), expressions.end(), [&labels](const Value& expression) {
      const Value& label = labels[expression["key"].as_string()];
      const auto values = expression["values"].items();
      return label.is_string() && std::find(values.begin(), values.end(), label) != values.end();
    });
  });
}

}  // namespace dibs::api
