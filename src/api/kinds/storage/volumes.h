#pragma once
// Rules of volumes and claims that other kinds need: StatefulSets keep templates of claims,
// VolumeAttachments may hold the spec of a volume.

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// Defaults of a whole PersistentVolumeClaim: volumeMode, phase.
void set_claim_defaults(Value& claim);
/// Of the spec of a claim or of a claim template; `old_spec` on update.
void validate_claim_spec(const Value& spec, const Path& path, FieldErrors& errors,
                         const Value* old_spec = nullptr);

/// Defaults of a PersistentVolumeSpec.
void set_volume_spec_defaults(Value& spec);
/// `is_inline`: inside a VolumeAttachment, where only CSI volumes without claim and size may stand.
void validate_volume_spec(const Value& spec, bool is_inline, const Path& path, FieldErrors& errors);

/// The name of a CSI driver: a sub-domain of at most 63 bytes, in any case.
void check_csi_driver_name(const Value& name, const Path& path, FieldErrors& errors);

KindRules persistent_volume_rules();
KindRules persistent_volume_claim_rules();

}  // namespace dibs::api
