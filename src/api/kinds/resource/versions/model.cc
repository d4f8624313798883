#include "api/kinds/resource/versions/model.h"

#include "api/schema/field_error.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

void copy_member(Value& to, std::string_view to_key, const Value& from, std::string_view from_key) {
  if (const Value* value = from.find(from_key)) to.set(to_key, *value);
}

Value classic_spec() {
  // As v1alpha2 defaults it, so that sending it back changes nothing.
  return Value::object({{"resourceClassName", ""}, {"allocationMode", "WaitForFirstConsumer"}});
}

Value structured_spec() {
  return Value::object({{"devices", Value::object({{"requests", nullptr}})}});
}

Value status_in_classic(const Value& status) {
  Value out = Value::object();
  if (const Value* allocation = status.find("allocation"); allocation && !allocation->is_null()) {
    std::string_view driver = (*allocation)["devices"]["results"][0]["driver"].as_string();
    if (!driver.empty()) out.set("driverName", driver);
    Value shown = Value::object();
    copy_member(shown, "availableOnNodes", *allocation, "nodeSelector");
    shown.set("shareable", true);
    out.set("allocation", std::move(shown));
  }
  copy_member(out, "reservedFor", status, "reservedFor");
  return out;
}

Value status_in_structured(const Value& status) {
  Value out = Value::object();
  if (const Value* allocation = status.find("allocation"); allocation && !allocation->is_null()) {
    Value shown = Value::object({{"devices", Value::object()}});
    copy_member(shown, "nodeSelector", *allocation, "availableOnNodes");
    out.set("allocation", std::move(shown));
  }
  copy_member(out, "reservedFor", status, "reservedFor");
  return out;
}

/// A pool of its own, complete and empty.
Value slice_in_structured(const Value& slice) {
  Value spec =
      Value::object({{"driver", slice["driverName"]},
                     {"pool", Value::object({{"name", slice["metadata"]["name"].as_string()},
                                             {"generation", 0},
                                             {"resourceSliceCount", 1}})}});
  if (slice["nodeName"].as_string().empty()) {
    spec.set("allNodes", true);
  } else {
    spec.set("nodeName", slice["nodeName"]);
  }
  return spec;
}

void slice_in_classic(Value& out, const Value& slice) {
  const Value& spec = slice["spec"];
  if (!spec["nodeName"].as_string().empty()) out.set("nodeName", spec["nodeName"]);
  out.set("driverName", spec["driver"].as_string());
  out.set("namedResources", Value::object({{"instances", nullptr}}));
}

Error refused(std::string_view kind, const Value& existing, std::string_view field) {
  std::string_view version = is_classic(existing) ? kClassicVersion : kStructuredVersion;
  FieldErrors errors;
  errors.forbidden(Path(field), cat("was written in ", version, " and can only be changed there"));
  return errors.to_error(kind, "resource.k8s.io", existing["metadata"]["name"].as_string());
}

/// The parts of an object that are neither its metadata nor its status.
bool same_body(const Value& a, const Value& b) {
  auto covers = [](const Value& left, const Value& right) {
    for (const auto& [key, value] : left.members()) {
      if (key == "kind" || key == "apiVersion" || key == "metadata" || key == "status") continue;
      const Value* other = right.find(key);
      if (!other || !(*other == value)) return false;
    }
    return true;
  };
  return covers(a, b) && covers(b, a);
}

Result<> change_status(std::string_view kind, Value& out, const Value& existing, const Value& shown,
                       const Value& wanted) {
  Value status = existing["status"].is_object() ? existing["status"] : Value::object();
  for (const auto& [key, value] : wanted.members()) {
    if (key == "reservedFor") {
      status.set(key, value);
    } else if (const Value* before = shown.find(key); !before || !(*before == value)) {
      return refused(kind, existing, cat("status.", key));
    }
  }
  if (!wanted.contains("reservedFor")) status.erase("reservedFor");
  if (shown.contains("allocation") && !wanted.contains("allocation")) {
    status.erase("allocation");
    status.erase("deallocationRequested");
  }
  out.set("status", std::move(status));
  return success();
}

}  // namespace

bool is_classic(const Value& stored) { return stored["apiVersion"].as_string() == kClassicVersion; }

bool has_two_models(std::string_view kind) {
  return kind == "ResourceClaim" || kind == "ResourceClaimTemplate" || kind == "ResourceSlice";
}

Value in_other_model(std::string_view kind, const Value& stored) {
  bool classic = is_classic(stored);
  Value out = Value::object({{"kind", stored["kind"]},
                             {"apiVersion", classic ? kStructuredVersion : kClassicVersion},
                             {"metadata", stored["metadata"]}});
  if (kind == "ResourceSlice") {
    if (classic) {
      out.set("spec", slice_in_structured(stored));
    } else {
      slice_in_classic(out, stored);
    }
    return out;
  }
  Value spec = classic ? structured_spec() : classic_spec();
  if (kind == "ResourceClaimTemplate") {
    out.set("spec", Value::object({{"metadata", stored["spec"]["metadata"]}, {"spec", spec}}));
    return out;
  }
  out.set("spec", std::move(spec));
  out.set("status",
          classic ? status_in_structured(stored["status"]) : status_in_classic(stored["status"]));
  return out;
}

Result<Value> changed_by_other_model(std::string_view kind, const Value& existing,
                                     const Value& shown, const Value& wanted, bool status_write) {
  Value out = existing;
  out.set("metadata", wanted["metadata"]);
  if (status_write) {
    DIBS_CHECK(change_status(kind, out, existing, shown["status"], wanted["status"]));
    return out;
  }
  if (!same_body(shown, wanted)) {
    bool slice_of_classic = kind == "ResourceSlice" && is_classic(existing);
    return refused(kind, existing, slice_of_classic ? "namedResources" : "spec");
  }
  return out;
}

}  // namespace dibs::api
