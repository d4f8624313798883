#include "api/kinds/resource/rules.h"

#include <memory>

#include "api/kinds/checks.h"
#include "api/kinds/declared.h"
#include "api/kinds/metadata.h"
#include "api/kinds/resource/checks.h"
#include "api/kinds/resource/versions/conversion.h"
#include "api/kinds/resource/versions/model.h"
#include "api/schema/builtin.h"
#include "api/schema/gates.h"
#include "base/finalizers.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using Shared = std::shared_ptr<const Features>;

constexpr std::string_view kGroup = "resource.k8s.io";

/// A kind, and how it was written.
struct Written {
  Shared features;
  std::string kind;
  std::shared_ptr<const Gates> gates;            // of the stored form
  const Schema* schema = nullptr;                // of the version, for what is declared there
  std::shared_ptr<const Conversion> conversion;  // null: the version looks like the stored form

  void drop_disabled(Value& object, const Value* old) const {
    gates->drop_disabled(object, old, *features);
  }
};

/// The schema in the version, or in the first that has the kind.
const Schema* schema_in(std::string_view version, std::string_view kind) {
  for (std::string_view one : {version, std::string_view("v1"), std::string_view("v1alpha3")}) {
    if (const Schema* schema = builtin_schema(kGroup, one, kind)) return schema;
  }
  return nullptr;
}

Written written_in(std::string_view version, std::string_view kind, const Features& features) {
  Written written{std::make_shared<const Features>(features), std::string(kind), {}, {}, {}};
  if (const Schema* stored = schema_in("v1", kind)) {
    written.gates = std::make_shared<const Gates>(*stored);
  }
  written.schema = schema_in(version, kind);
  if (version == "v1beta1" && has_two_models(kind))
    written.conversion = std::make_shared<Conversion>(kind, version);
  return written;
}

/// Declared rules judge beside the older checks from this release on.
constexpr int kDeclaredSince = 37;

// What was written is judged in its own words: paths and values are those of its version.
void judge_declared(const Value& object, const Value* old, const Written& written,
                    FieldErrors& errors) {
  if (!written.conversion) {
    check_declared(*written.schema, object, old, *written.features, errors);
    return;
  }
  const Value shown = written.conversion->show(object);
  const Value before = old == nullptr ? Value() : written.conversion->show(*old);
  check_declared(*written.schema, shown, old == nullptr ? nullptr : &before, *written.features,
                 errors);
}

// Runs the checks of a kind and its declared rules, and tells both.
void judge(const Value& object, const Value* old, const Written& written,
           const std::function<void(Findings&)>& checks, FieldErrors& errors) {
  Findings found(*written.features);
  checks(found);
  FieldErrors declared;
  if (written.features->minor() >= kDeclaredSince) {
    judge_declared(object, old, written, declared);
  }
  tell(found, declared, errors);
}

void set_operator(Value& body) {
  if (!body["tolerations"].is_array()) return;
  Value& list = body.mut("tolerations");
  for (std::size_t i = 0; i < list.size(); ++i) set_default_text(list.mut(i), "operator", "Equal");
}

void set_body_defaults(Value& body) {
  set_default_text(body, "allocationMode", "ExactCount");
  if (body["allocationMode"].as_string() == "ExactCount" && body["count"].as_int() == 0) {
    body.set("count", 1);
  }
  set_operator(body);
}

void set_spec_defaults(Value& spec) {
  if (!spec["devices"]["requests"].is_array()) return;
  Value& requests = spec.mut("devices").mut("requests");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].is_object()) continue;
    Value& request = requests.mut(i);
    if (is_set(request, "exactly")) set_body_defaults(request.mut("exactly"));
    // v1beta1 has the parts of a request in itself; without a class it is none.
    if (!request["deviceClassName"].as_string().empty()) {
      set_body_defaults(request);
    } else {
      set_operator(request);
    }
    if (!request["firstAvailable"].is_array()) continue;
    Value& choices = request.mut("firstAvailable");
    for (std::size_t c = 0; c < choices.size(); ++c) set_body_defaults(choices.mut(c));
  }
}

// A status endpoint leaves alone what does not belong to it; the first releases did not care.
void reset_metadata(Value& object, const Value& old, const Features& features) {
  if (features.minor() < 30) return;
  Value& metadata = object.mut("metadata");
  for (const char* key : {"deletionTimestamp", "generation", "labels", "annotations", "finalizers",
                          "ownerReferences"}) {
    if (const Value* value = old["metadata"].find(key)) {
      metadata.set(key, *value);
    } else {
      metadata.erase(key);
    }
  }
}

bool same_device(const Value& a, const Value& b) {
  for (const char* key : {"driver", "pool", "device", "shareID"}) {
    if (a[key].as_string() != b[key].as_string()) return false;
  }
  return true;
}

bool holds(const Value& claim, const Value& device) {
  for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
    if (same_device(result, device)) return true;
  }
  return false;
}

// What drivers said of devices goes with the allocation of these.
void drop_stale_device_status(Value& claim, const Value& old) {
  const Value& devices = claim["status"]["devices"];
  if (devices.empty()) return;
  Value kept = Value::array();
  for (const Value& device : devices.items()) {
    if (!holds(old, device) || holds(claim, device)) kept.push(device);
  }
  if (kept.size() == devices.size()) return;
  if (kept.empty()) {
    claim.mut("status").erase("devices");
  } else {
    claim.mut("status").set("devices", std::move(kept));
  }
}

// Templates make claims: of their metadata only labels and annotations are taken over.
void check_template_metadata(const Value& metadata, const Path& path, FieldErrors& errors) {
  validate_annotations(metadata["annotations"], path.child("annotations"), errors);
  validate_labels(metadata["labels"], path.child("labels"), errors);
  struct Other {
    const char* key;
    const char* shown;
  };
  for (const Other& other :
       {Other{"name", "name"}, Other{"generateName", "generateName"},
        Other{"namespace", "namespace"}, Other{"selfLink", "selfLink"}, Other{"uid", "uID"},
        Other{"resourceVersion", "resourceVersion"}, Other{"generation", "generation"},
        Other{"creationTimestamp", "creationTimestamp"},
        Other{"deletionTimestamp", "deletionTimestamp"},
        Other{"deletionGracePeriodSeconds", "deletionGracePeriodSeconds"},
        Other{"ownerReferences", "ownerReferences"}, Other{"finalizers", "finalizers"},
        Other{"managedFields", "managedFields"}}) {
    const Value& value = metadata[other.key];
    if (value.is_null() || (value.is_string() && value.as_string().empty()) ||
        (value.is_number() && value.as_int() == 0)) {
      continue;
    }
    errors.forbidden(path.child(other.shown), "cannot be set");
  }
}

/// The write that allocates a claim may protect it, and the one that frees it may end that.
void protect_allocation(Value& claim, const Value& old) {
  const bool allocated = claim["status"]["allocation"].is_object();
  if (old["status"]["allocation"].is_object() == allocated) return;
  const std::string_view ours = is_classic(claim) ? kNamedClaimFinalizer : kClaimFinalizer;
  Value finalizers = Value::array();
  for (const Value& finalizer : claim["metadata"]["finalizers"].items()) {
    if (finalizer.as_string() != ours) finalizers.push(finalizer);
  }
  if (allocated) finalizers.push(ours);
  if (finalizers.empty()) {
    claim.mut("metadata").erase("finalizers");
  } else {
    claim.mut("metadata").set("finalizers", std::move(finalizers));
  }
}

KindRules claim_rules(const Written& written) {
  KindRules rules;
  rules.protect = protect_allocation;
  rules.has_status = true;
  rules.set_defaults = set_device_claim_defaults;
  rules.prepare_create = [written](Value& claim, const RuleContext&) {
    claim.set("status", Value::object());
    if (!is_classic(claim)) written.drop_disabled(claim, nullptr);
  };
  rules.prepare_update = [written](Value& claim, const Value& old, const RuleContext&) {
    if (!is_classic(claim)) written.drop_disabled(claim, &old);
  };
  rules.prepare_status = [written](Value& claim, const Value& old, const RuleContext&) {
    reset_metadata(claim, old, *written.features);
    if (is_classic(claim)) return;
    written.drop_disabled(claim, &old);
    drop_stale_device_status(claim, old);
  };
  rules.validate = [written](const Value& claim, FieldErrors& errors) {
    if (is_classic(claim)) {
      validate_classic("ResourceClaim", claim, *written.features, errors);
      return;
    }
    judge(
        claim, nullptr, written,
        [&](Findings& found) { check_claim_spec(claim["spec"], Path("spec"), found); }, errors);
  };
  rules.validate_update = [written](const Value& claim, const Value& old, FieldErrors& errors) {
    if (is_classic(claim)) {
      validate_classic_update("ResourceClaim", claim, old, *written.features, errors);
      return;
    }
    // A spec that cannot change need not be judged again.
    judge(
        claim, &old, written,
        [&](Findings& found) {
          if (claim["spec"] == old["spec"]) return;
          found.errors.invalid(Path("spec"),
                               shown_part(claim["spec"], written.kind, {"spec"}, *written.features),
                               "field is immutable");
          found.cover(0);
        },
        errors);
  };
  rules.validate_status = [written](const Value& claim, const Value& old, FieldErrors& errors) {
    if (is_classic(claim)) {
      validate_classic_status("ResourceClaim", claim, old, *written.features, errors);
      return;
    }
    judge(
        claim, &old, written, [&](Findings& found) { check_claim_status(claim, old, found); },
        errors);
  };
  return rules;
}

KindRules template_rules(const Written& written) {
  KindRules rules;
  rules.set_defaults = set_device_claim_defaults;
  rules.prepare_create = [written](Value& object, const RuleContext&) {
    if (!is_classic(object)) written.drop_disabled(object, nullptr);
  };
  rules.prepare_update = [written](Value& object, const Value& old, const RuleContext&) {
    if (!is_classic(object)) written.drop_disabled(object, &old);
  };
  rules.validate = [written](const Value& object, FieldErrors& errors) {
    Path path("spec");
    if (is_classic(object)) {
      check_template_metadata(object["spec"]["metadata"], path.child("metadata"), errors);
      validate_classic("ResourceClaimTemplate", object, *written.features, errors);
      return;
    }
    judge(
        object, nullptr, written,
        [&](Findings& found) {
          check_template_metadata(object["spec"]["metadata"], path.child("metadata"), found.errors);
          check_claim_spec(object["spec"]["spec"], path.child("spec"), found);
        },
        errors);
  };
  rules.validate_update = [written](const Value& object, const Value& old, FieldErrors& errors) {
    if (is_classic(object)) {
      validate_classic_update("ResourceClaimTemplate", object, old, *written.features, errors);
      return;
    }
    // The whole is judged again, on top of what may not change.
    judge(
        object, &old, written,
        [&](Findings& found) {
          Path path("spec");
          check_template_metadata(object["spec"]["metadata"], path.child("metadata"), found.errors);
          check_claim_spec(object["spec"]["spec"], path.child("spec"), found);
          if (object["spec"] == old["spec"]) return;
          found.errors.invalid(
              path, shown_part(object["spec"], written.kind, {"spec"}, *written.features),
              "field is immutable");
        },
        errors);
  };
  return rules;
}

KindRules slice_rules(const Written& written) {
  KindRules rules;
  rules.tracks_generation = true;
  rules.set_times = set_taint_times;
  rules.prepare_create = [written](Value& slice, const RuleContext&) {
    if (is_classic(slice)) {
      slice.mut("metadata").erase("generation");
      return;
    }
    written.drop_disabled(slice, nullptr);
  };
  rules.prepare_update = [written](Value& slice, const Value& old, const RuleContext&) {
    if (!is_classic(slice)) written.drop_disabled(slice, &old);
  };
  rules.validate = [written](const Value& slice, FieldErrors& errors) {
    if (is_classic(slice)) {
      validate_classic("ResourceSlice", slice, *written.features, errors);
      return;
    }
    judge(
        slice, nullptr, written,
        [&](Findings& found) { check_slice_spec(slice["spec"], nullptr, Path("spec"), found); },
        errors);
  };
  rules.validate_update = [written](const Value& slice, const Value& old, FieldErrors& errors) {
    if (is_classic(slice)) {
      validate_classic_update("ResourceSlice", slice, old, *written.features, errors);
      return;
    }
    judge(
        slice, &old, written,
        [&](Findings& found) {
          check_slice_spec(slice["spec"], &old["spec"], Path("spec"), found);
        },
        errors);
  };
  rules.warnings = [](const Value& slice, const Value*) {
    std::vector<std::string> texts;
    std::string driver = slice["spec"]["driver"].str();
    if (driver != to_lower(driver)) {
      texts.push_back(cat("spec.driver: driver names should be lowercase; ", quoted(driver),
                          " contains uppercase characters"));
    }
    return texts;
  };
  return rules;
}

KindRules class_rules(const Written& written) {
  KindRules rules;
  rules.tracks_generation = true;
  rules.prepare_create = [written](Value& object, const RuleContext&) {
    written.drop_disabled(object, nullptr);
  };
  rules.prepare_update = [written](Value& object, const Value& old, const RuleContext&) {
    written.drop_disabled(object, &old);
  };
  rules.validate = [written](const Value& object, FieldErrors& errors) {
    judge(
        object, nullptr, written,
        [&](Findings& found) { check_class_spec(object["spec"], nullptr, Path("spec"), found); },
        errors);
  };
  rules.validate_update = [written](const Value& object, const Value& old, FieldErrors& errors) {
    judge(
        object, &old, written,
        [&](Findings& found) {
          check_class_spec(object["spec"], &old["spec"], Path("spec"), found);
        },
        errors);
  };
  return rules;
}

KindRules taint_rule_rules(const Written& written, std::string_view version) {
  KindRules rules;
  rules.has_status = true;
  rules.tracks_generation = true;
  rules.allow_unconditional_update = version != "v1";
  rules.set_times = set_taint_times;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object());
  };
  rules.prepare_update = [](Value& object, const Value& old, const RuleContext& context) {
    const Value& taint = object["spec"]["taint"];
    const Value& before = old["spec"]["taint"];
    // Another effect is another taint, unless the client says since when it holds.
    if (!(taint["effect"] == before["effect"]) && taint["timeAdded"] == before["timeAdded"]) {
      object.mut("spec").mut("taint").set("timeAdded", format_rfc3339(context.now));
    }
  };
  rules.prepare_status = [written](Value& object, const Value& old, const RuleContext&) {
    reset_metadata(object, old, *written.features);
    if (!object["status"].is_object()) object.set("status", Value::object());
  };
  rules.validate = [written](const Value& object, FieldErrors& errors) {
    judge(
        object, nullptr, written,
        [&](Findings& found) {
          check_taint_rule_spec(object["spec"], nullptr, Path("spec"), found);
        },
        errors);
  };
  rules.validate_update = [written](const Value& object, const Value& old, FieldErrors& errors) {
    judge(
        object, &old, written,
        [&](Findings& found) {
          check_taint_rule_spec(object["spec"], &old["spec"], Path("spec"), found);
        },
        errors);
  };
  rules.validate_status = [](const Value& object, const Value&, FieldErrors& errors) {
    const Value& conditions = object["status"]["conditions"];
    Path path("status");
    validate_conditions(conditions, path.child("conditions"), errors);
    if (conditions.size() > 8) errors.too_many(path.child("conditions"), conditions.size(), 8);
  };
  return rules;
}

KindRules pool_request_rules(const Written& written) {
  KindRules rules;
  rules.has_status = true;
  rules.allow_unconditional_update = false;
  rules.set_defaults = [](Value& object) {
    if (object["spec"].is_object()) set_default(object.mut("spec"), "limit", 100);
  };
  rules.prepare_create = [written](Value& object, const RuleContext&) {
    object.erase("status");
    written.drop_disabled(object, nullptr);
  };
  rules.prepare_update = [written](Value& object, const Value& old, const RuleContext&) {
    written.drop_disabled(object, &old);
  };
  rules.prepare_status = [written](Value& object, const Value& old, const RuleContext&) {
    reset_metadata(object, old, *written.features);
  };
  // This kind has no older checks: its rules were declared from its first release on.
  rules.validate = [written](const Value& object, FieldErrors& errors) {
    judge_declared(object, nullptr, written, errors);
  };
  rules.validate_update = [written](const Value& object, const Value& old, FieldErrors& errors) {
    judge_declared(object, &old, written, errors);
  };
  rules.validate_status = [written](const Value& object, const Value& old, FieldErrors& errors) {
    const Value& status = object["status"];
    if (is_set(old, "status")) {
      if (!(status == old["status"])) {
        errors.invalid(Path("status"),
                       shown_part(status, written.kind, {"status"}, *written.features),
                       "field is immutable");
      }
      return;
    }
    Path path("status");
    validate_conditions(status["conditions"], path.child("conditions"), errors);
    judge_declared(object, &old, written, errors);
  };
  return rules;
}

// Kinds that only the classic model has.
KindRules classic_rules(const Written& written) {
  KindRules rules;
  rules.has_status = written.kind == "PodSchedulingContext";
  if (rules.has_status) {
    rules.prepare_create = [](Value& object, const RuleContext&) {
      object.set("status", Value::object());
    };
    rules.prepare_status = [written](Value& object, const Value& old, const RuleContext&) {
      reset_metadata(object, old, *written.features);
    };
  }
  rules.validate = [written](const Value& object, FieldErrors& errors) {
    validate_classic(written.kind, object, *written.features, errors);
  };
  rules.validate_update = [written](const Value& object, const Value& old, FieldErrors& errors) {
    validate_classic_update(written.kind, object, old, *written.features, errors);
  };
  rules.validate_status = [written](const Value& object, const Value& old, FieldErrors& errors) {
    validate_classic_status(written.kind, object, old, *written.features, errors);
  };
  return rules;
}

void set_missing_times(Value& list, const std::string& now) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!is_set(list[i], "timeAdded")) list.mut(i).set("timeAdded", now);
  }
}

}  // namespace

void set_device_claim_defaults(Value& object) {
  if (is_classic(object)) {
    set_classic_defaults(object);
    return;
  }
  if (!object["spec"].is_object()) return;
  Value& spec = object.mut("spec");
  if (object["kind"].as_string() == "ResourceClaimTemplate") {
    if (spec["spec"].is_object()) set_spec_defaults(spec.mut("spec"));
    return;
  }
  set_spec_defaults(spec);
  if (!object["status"]["allocation"]["devices"]["results"].is_array()) return;
  Value& results = object.mut("status").mut("allocation").mut("devices").mut("results");
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].is_object()) set_operator(results.mut(i));
  }
}

void set_taint_times(Value& object, Time now) {
  std::string text = format_rfc3339(now);
  if (object["spec"]["taint"].is_object()) {
    if (!is_set(object["spec"]["taint"], "timeAdded")) {
      object.mut("spec").mut("taint").set("timeAdded", text);
    }
    return;
  }
  for (std::size_t i = 0; i < object["spec"]["devices"].size(); ++i) {
    if (object["spec"]["devices"][i]["taints"].empty()) continue;
    set_missing_times(object.mut("spec").mut("devices").mut(i).mut("taints"), text);
  }
}

KindRules make_resource_rules(std::string_view kind, std::string_view version,
                              const Features& features) {
  Written written = written_in(version, kind, features);
  if (kind == "ResourceClaim") return claim_rules(written);
  if (kind == "ResourceClaimTemplate") return template_rules(written);
  if (kind == "ResourceSlice") return slice_rules(written);
  if (kind == "DeviceClass") return class_rules(written);
  if (kind == "DeviceTaintRule") return taint_rule_rules(written, version);
  if (kind == "ResourcePoolStatusRequest") return pool_request_rules(written);
  if (is_one_of(kind, {"ResourceClass", "PodSchedulingContext", "ResourceClaimParameters",
                       "ResourceClassParameters"})) {
    return classic_rules(written);
  }
  return {};
}

}  // namespace dibs::api
