#include "api/served/served_kind.h"

#include "api/expressions/crd_checker.h"
#include "api/expressions/policy_rules.h"
#include "api/kinds/cluster/event.h"
#include "api/kinds/resource/older_words.h"
#include "api/kinds/resource/rules.h"
#include "api/kinds/resource/versions/conversion.h"
#include "api/kinds/resource/versions/lifecycle.h"
#include "api/kinds/resource/versions/model.h"
#include "api/structural/crd_rules.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kDevices = "resource.k8s.io";
constexpr std::string_view kClassicVersion = "v1alpha2";

const KindRules& rules_of(const ResourceInfo& info) {
  // Definitions stand above the other kinds: judging one means compiling schemas.
  if (info.group == "apiextensions.k8s.io" && info.kind == "CustomResourceDefinition") {
    static const KindRules definitions = make_definition_rules(make_cel_checker());
    return definitions;
  }
  // So do the kinds of admission, whose expressions are compiled.
  if (info.group == "admissionregistration.k8s.io")
    return admission_rules_with_expressions(info.kind);
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
  return served;
}

bool is_served_by_default(const ResourceInfo& info) {
  // Alpha and beta versions have to be asked for, but what this server is about has not.
  return info.group == kDevices || (info.version.find("alpha") == std::string::npos &&
                                    info.version.find("beta") == std::string::npos);
}

bool keeps_ended_versions(std::string_view group) { return group == kDevices; }

}  // namespace dibs::api
