#include "alloc/claims.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::alloc {
namespace {

void read_selectors(const json::Value& list, std::vector<std::string>& out, int& unknown) {
  for (const json::Value& selector : list.items()) {
    if (!selector["cel"].is_object() && unknown < 0) unknown = static_cast<int>(out.size());
    out.push_back(selector["cel"]["expression"].str());
  }
}

DeviceRequest read_request(const json::Value& source, std::string_view name) {
  DeviceRequest made;
  made.name = name;
  made.result_name = name;
  made.class_name = source["deviceClassName"].str();
  read_selectors(source["selectors"], made.selectors, made.unknown_selector);
  made.mode_name = source["allocationMode"].str();
  made.mode = made.mode_name == "ExactCount" ? DeviceRequest::Mode::exact_count
              : made.mode_name == "All"      ? DeviceRequest::Mode::all
                                             : DeviceRequest::Mode::other;
  made.count = source["count"].as_int();
  made.states_admin_access = source["adminAccess"].is_boolean();
  made.admin_access = source["adminAccess"].as_bool();
  made.states_capacity = source["capacity"].is_object();
  for (const auto& [key, value] : source["capacity"]["requests"].members()) {
    Quantity quantity = read_quantity(value);
    const Amount amount = to_amount(quantity);
    made.capacity.push_back({std::string(key), std::move(quantity), amount});
  }
  std::sort(made.capacity.begin(), made.capacity.end(),
            [](const CapacityRequest& a, const CapacityRequest& b) { return a.name < b.name; });
  for (const json::Value& derived : source["derivedAttributes"].items()) {
    made.derived.push_back({derived["name"].str(), derived["expression"].str()});
  }
  made.tolerations_source = source["tolerations"];
  for (const json::Value& toleration : source["tolerations"].items()) {
    made.tolerations.push_back({toleration["key"].str(), toleration["operator"].str(),
                                toleration["value"].str(), toleration["effect"].str()});
  }
  return made;
}

}  // namespace

bool Toleration::tolerates(const Taint& taint) const {
  if (!effect.empty() && effect != taint.effect) return false;
  if (!key.empty() && key != taint.key) return false;
  if (op == "Exists") return true;
  return (op.empty() || op == "Equal") && value == taint.value;
}

bool Constraint::applies_to(const Request& request, const DeviceRequest& alternative) const {
  if (requests.empty()) return true;
  return std::any_of(requests.begin(), requests.end(), [&](const std::string& name) {
    return name == request.name || name == alternative.result_name;
  });
}

Claim Claim::read(const json::Value& claim) {
  Claim made;
  const json::Value& metadata = claim["metadata"];
  made.name = metadata["name"].str();
  const std::string_view space = metadata["namespace"].as_string();
  made.id = space.empty() ? made.name : cat(space, "/", made.name);
  const json::Value& devices = claim["spec"]["devices"];
  for (const json::Value& source : devices["requests"].items()) {
    Request request;
    request.name = source["name"].str();
    request.prioritized = !source["firstAvailable"].empty();
    if (request.prioritized) {
      for (const json::Value& alternative : source["firstAvailable"].items()) {
        request.alternatives.push_back(read_request(alternative, alternative["name"].as_string()));
        DeviceRequest& read = request.alternatives.back();
        read.result_name = cat(request.name, "/", read.name);
      }
    } else {
      request.alternatives.push_back(read_request(source["exactly"], request.name));
    }
    made.requests.push_back(std::move(request));
  }
  for (const json::Value& source : devices["constraints"].items()) {
    Constraint constraint;
    if (source["matchAttribute"].is_string()) {
      constraint.kind = Constraint::Kind::match;
      constraint.attribute = source["matchAttribute"].str();
    } else if (source["distinctAttribute"].is_string()) {
      constraint.kind = Constraint::Kind::distinct;
      constraint.attribute = source["distinctAttribute"].str();
    }
    for (const json::Value& name : source["requests"].items()) {
      constraint.requests.push_back(name.str());
    }
    made.constraints.push_back(std::move(constraint));
  }
  made.config = devices["config"];
  return made;
}

DeviceClass DeviceClass::read(const json::Value& object) {
  DeviceClass made;
  made.name = object["metadata"]["name"].str();
  int unknown = -1;
  read_selectors(object["spec"]["selectors"], made.selectors, unknown);
  made.config = object["spec"]["config"];
  return made;
}

}  // namespace dibs::alloc
