#include "api/served/served_kind.h"

#include "api/expressions/crd_checker.h"
#include "api/expressions/policy_rules.h"
#include "api/kinds/cluster/event.h"
#include "api/kinds/cluster/pod_groups.h"
#include "api/kinds/resource/older_words.h"
#include "api/kinds/resource/rules.h"
#include "api/kinds/resource/versions/conversion.h"
#include "api/kinds/resource/versions/lifecycle.h"
#include "api/kinds/resource/versions/model.h"
#include "api/kinds/workload/autoscaler.h"
#include "api/structural/crd_rules.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kDevices = "resource.k8s.io";
constexpr std::string_view kAdmission = "admissionregistration.k8s.io";
constexpr std::string_view kCertificates = "certificates.k8s.io";
constexpr std::string_view kClassicVersion = "v1alpha2";

/// Of the versions that are no more than a way to v1.
std::string way_deprecation(const ResourceInfo& info, int minor) {
  const bool is_beta = info.version == "v1beta1";
  const int since = is_beta ? 37 : 35;
  if (minor < since) return {};
  std::string text = cat(info.api_version(), " ", info.kind, " is deprecated in v1.", since,
                         "+, unavailable in v1.", since + 3, "+");
  if (is_beta) append(text, "; use ", info.group, "/v1 ", info.kind);
  return text;
}

bool is_pod_certificate(const ResourceInfo& info) {
  return info.group == kCertificates && info.kind == "PodCertificateRequest";
}

Value renamed(Value object, std::string_view api_version) {
  object.set("apiVersion", api_version);
  return object;
}

/// v1 has no other proof of possession than the request that is signed with the key.
void add_pod_certificate_versions(const ResourceInfo& info, int minor, ServedKind& served) {
  if (info.version == info.hub_version) {
    served.deprecation = way_deprecation(info, minor);
    return;
  }
  served.to_storage = [hub = cat(kCertificates, "/", info.hub_version)](
                          const Value& object, const Value*, bool) -> Result<Value> {
    Value stored = renamed(object, hub);
    if (!stored["spec"].is_object()) return stored;
    for (const char* field : {"pkixPublicKey", "proofOfPossession"}) {
      stored.mut("spec").set(field, Value());
    }
    return stored;
  };
  served.from_storage = [own = info.api_version()](const Value& stored) {
    Value shown = renamed(stored, own);
    if (!shown["spec"].is_object()) return shown;
    for (const char* field : {"pkixPublicKey", "proofOfPossession"}) {
      shown.mut("spec").erase(field);
    }
    return shown;
  };
}

const KindRules& rules_of(const ResourceInfo& info) {
  // Definitions stand above the other kinds: judging one means compiling schemas.
  if (info.group == "apiextensions.k8s.io" && info.kind == "CustomResourceDefinition") {
    static const KindRules definitions = make_definition_rules(make_cel_checker());
    return definitions;
  }
  // So do the kinds of admission, whose expressions are compiled.
  if (info.group == kAdmission) return admission_rules_with_expressions(info.kind);
  return kind_rules(info.group, info.kind);
}

KindRules device_rules(const ResourceInfo& info, const Features& features) {
  KindRules rules = make_resource_rules(info.kind, info.version, features);
  const bool classic = info.version == kClassicVersion;
  if (classic) rules.tracks_generation = false;
  rules.judged_as_sent = true;
  // The stable version of taint rules came when upstream had stopped to answer so.
  rules.returns_deleted = !(info.kind == "DeviceTaintRule" && info.version == "v1");
  rules.selectable = resource_selectable(info.version, info.kind, features.minor());
  rules.refuse_selector = [kind = info.kind, version = info.api_version()](std::string_view field) {
    return cat("field label not supported for ", version, ", Kind=", kind, ": ", field);
  };
  return classic ? rules : in_words_of_release(std::move(rules), info.kind, features.minor());
}

/// An object of these kinds may be stored in the form of another version or model.
void add_device_versions(const ResourceInfo& info, ServedKind& served) {
  auto conversion = std::make_shared<const Conversion>(info.kind, info.version, info.release);
  bool other_form = info.version != info.hub_version ||
                    (info.release != 0 && conversion->shown_as_stored().empty());
  if (!other_form && !has_two_models(info.kind)) return;
  served.to_storage = [conversion](const Value& object, const Value* existing, bool status_write) {
    return conversion->store(object, existing, status_write);
  };
  served.from_storage = [conversion](const Value& stored) { return conversion->show(stored); };
  served.shown_as_stored = conversion->shown_as_stored();
  served.two_models = has_two_models(info.kind);
}

}  // namespace

ServedKind served_kind(const ResourceInfo& info, const Features& features) {
  ServedKind served;
  if (info.group == kDevices) {
    served.rules = std::make_shared<const KindRules>(device_rules(info, features));
    served.deprecation = resource_deprecation(info.version, info.kind, features.minor());
    add_device_versions(info, served);
    return served;
  }
  if (info.group == "autoscaling") {
    served.rules = std::make_shared<const KindRules>(make_autoscaler_rules(features));
    if (info.version != info.hub_version) {
      served.to_storage = [](const Value& object, const Value*, bool) -> Result<Value> {
        return autoscaler_from_v1(object);
      };
      served.from_storage = autoscaler_to_v1;
    }
    return served;
  }
  if (is_group_kind(info.group, info.kind)) {
    served.rules = std::make_shared<const KindRules>(make_group_rules(info.kind, features));
    if (info.version == info.hub_version) return served;
    served.to_storage = [kind = info.kind](const Value& object, const Value*,
                                           bool) -> Result<Value> {
      return group_to_stored(kind, object);
    };
    served.from_storage = [kind = info.kind, version = info.version](const Value& stored) {
      return group_from_stored(kind, version, stored);
    };
    return served;
  }
  const KindRules& rules = rules_of(info);
  if (features.minor() < rules.generation_since) {
    auto older = std::make_shared<KindRules>(rules);
    older->tracks_generation = false;
    served.rules = std::move(older);
  } else {
    // Those of kinds live as long as the program.
    served.rules = std::shared_ptr<const KindRules>(std::shared_ptr<void>(), &rules);
  }
  if (features.minor() >= rules.deprecation.since) served.deprecation = rules.deprecation.text;
  if (info.group == "events.k8s.io") {
    served.to_storage = [](const Value& event, const Value*, bool) -> Result<Value> {
      return event_to_core(event);
    };
    served.from_storage = event_from_core;
  }
  if (info.group == kAdmission && info.version != info.hub_version) {
    // These versions differ in nothing but their names.
    served.to_storage = [hub = cat(kAdmission, "/", info.hub_version)](
                            const Value& object, const Value*, bool) -> Result<Value> {
      return renamed(object, hub);
    };
    served.from_storage = [own = info.api_version()](const Value& stored) {
      return renamed(stored, own);
    };
    served.deprecation = way_deprecation(info, features.minor());
  }
  if (is_pod_certificate(info)) add_pod_certificate_versions(info, features.minor(), served);
  return served;
}

bool can_be_served(const ResourceInfo& info, const Features& features) {
  if (is_pod_certificate(info)) return features.on("PodCertificateRequest");
  return !is_group_kind(info.group, info.kind) || features.on(group_gate(info.kind));
}

bool is_served_by_default(const ResourceInfo& info) {
  // Groups of pods have a gate that asks for them.
  if (is_group_kind(info.group, info.kind)) return true;
  // Alpha and beta versions have to be asked for, but what this server is about has not.
  return info.group == kDevices || is_measured(info) ||
         (info.version.find("alpha") == std::string::npos &&
          info.version.find("beta") == std::string::npos);
}

bool is_measured(const ResourceInfo& info) { return info.group == "metrics.k8s.io"; }

bool keeps_ended_versions(std::string_view group) { return group == kDevices; }

}  // namespace dibs::api
