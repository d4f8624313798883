#include "api/kinds/resource/versions/conversion.h"

#include <vector>

#include "api/kinds/resource/versions/device_forms.h"
#include "api/kinds/resource/versions/model.h"
#include "api/kinds/resource/versions/restore.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "base/release.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kGroup = "resource.k8s.io";

ResourceForm form_of(std::string_view kind, std::string_view version) {
  if (version == "v1alpha2") return ResourceForm::classic;
  if (!has_two_models(kind)) return ResourceForm::same;
  if (version == "v1beta1") return ResourceForm::flat;
  if (version == "v1alpha3") return ResourceForm::quantity;
  return ResourceForm::same;
}

Value with_version(Value object, std::string_view api_version) {
  if (object["apiVersion"].as_string() != api_version) object.set("apiVersion", api_version);
  return object;
}

/// Changes the part of an object whose shape differs, where it has one.
Value reshaped(std::string_view kind, const Value& object, ResourceForm form, bool to_stored) {
  bool plain = form == ResourceForm::quantity;
  auto claim = to_stored ? claim_from_flat : claim_to_flat;
  auto slice = to_stored ? slice_from_flat : slice_to_flat;
  Value out = object;
  if (kind == "ResourceClaim" && object["spec"].contains("devices")) {
    out.mut("spec").set("devices", claim(object["spec"]["devices"]));
  } else if (kind == "ResourceClaimTemplate" && object["spec"]["spec"].contains("devices")) {
    out.mut("spec").mut("spec").set("devices", claim(object["spec"]["spec"]["devices"]));
  } else if (kind == "ResourceSlice" && object["spec"].is_object()) {
    out.set("spec", slice(object["spec"], plain));
  }
  return out;
}

/// What the schema knows of the object; as it is when it does not fit at all.
Value known_part(const Value& object, const Schema* schema) {
  if (!schema) return object;
  std::vector<std::string> ignored;
  auto decoded = decode(object, *schema, Strictness::ignore, ignored);
  return decoded.ok() ? std::move(decoded).value() : object;
}

/// The same with empty lists where a client sent them, since rules may judge them.
Value known_part_as_sent(const Value& object, const Schema* schema) {
  if (!schema) return object;
  auto decoded = decode_as_sent(object, *schema);
  return decoded.ok() ? std::move(decoded).value() : object;
}

}  // namespace

Conversion::Conversion(std::string_view kind, std::string_view version, int release)
    : kind_(kind),
      api_version_(cat(kGroup, "/", version)),
      form_(form_of(kind, version)),
      two_models_(has_two_models(kind)) {
  bool classic = form_ == ResourceForm::classic;
  if (release != 0 && release < kNewestRelease) {
    served_schema_ = builtin_schema(kGroup, version, kind, release);
    stored_schema_ = builtin_schema(kGroup, classic ? "v1alpha2" : "v1", kind);
    // Kinds that v1 does not have are stored in the one version that they have.
    if (!stored_schema_) stored_schema_ = builtin_schema(kGroup, version, kind);
  } else if (classic || api_version_ == kStructuredVersion) {
    shown_as_stored_ = api_version_;
  }
}

Value Conversion::from_own_model(const Value& stored) const {
  Value shown = form_ == ResourceForm::flat || form_ == ResourceForm::quantity
                    ? reshaped(kind_, stored, form_, false)
                    : stored;
  return known_part(with_version(std::move(shown), api_version_), served_schema_);
}

Value Conversion::to_own_model(const Value& served) const {
  Value stored = form_ == ResourceForm::flat || form_ == ResourceForm::quantity
                     ? reshaped(kind_, served, form_, true)
                     : served;
  bool classic = form_ == ResourceForm::classic;
  if (classic || builtin_schema(kGroup, "v1", kind_))
    stored = with_version(std::move(stored), classic ? kClassicVersion : kStructuredVersion);
  return known_part_as_sent(stored, stored_schema_);
}

Value Conversion::show(const Value& stored) const {
  if (two_models_ && is_classic(stored) != (form_ == ResourceForm::classic))
    return from_own_model(in_other_model(kind_, stored));
  return from_own_model(stored);
}

Result<Value> Conversion::store(const Value& served, const Value* existing,
                                bool status_write) const {
  Value wanted = to_own_model(served);
  if (!existing) return wanted;
  if (two_models_ && is_classic(*existing) != (form_ == ResourceForm::classic)) {
    Value shown = to_own_model(show(*existing));
    return changed_by_other_model(kind_, *existing, shown, wanted, status_write);
  }
  if (shown_as_stored_.empty()) {
    Value shown = to_own_model(from_own_model(*existing));
    return restore_hidden(*existing, shown, wanted);
  }
  return wanted;
}

}  // namespace dibs::api
