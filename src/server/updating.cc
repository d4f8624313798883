// Objects::update: PUT, PATCH and apply of an object or one of its sub-resources.
#include "api/kinds/metadata.h"
#include "api/kinds/subresource_rules.h"
#include "api/merge/managed_fields.h"
#include "base/strings.h"
#include "server/field_management.h"
#include "server/objects.h"
#include "server/refusal.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

/// Whether anything but metadata did; `status`: that, too.
bool content_changed(const Value& object, const Value& old, bool status) {
  auto differs = [status](const Value& a, const Value& b) {
    for (const auto& [key, value] : a.members()) {
      if (key == "metadata" || key == "kind" || key == "apiVersion") continue;
      if (key == "status" && !status) continue;
      const Value* other = b.find(key);
      if (!other || !(*other == value)) return true;
    }
    return false;
  };
  return differs(object, old) || differs(old, object);
}

/// The rules of the door that a write comes through: a sub-resource may have its own.
const api::KindRules& rules_for(const Write& write) {
  const Resource& resource = write.resource;
  if (resource.custom || write.subresource.empty()) return *resource.rules;
  const api::KindRules* own =
      api::subresource_rules(resource.group, resource.kind, write.subresource);
  return own ? *own : *resource.rules;
}

void keep_from_old(Value& object, const Value& old, std::string_view key) {
  if (const Value* value = old.find(key)) {
    object.set(key, *value);
  } else {
    object.erase(key);
  }
}

/// The uid and resourceVersion that a client sends say which object it means to change.
Result<> check_preconditions(const Write& write) {
  const Resource& resource = write.resource;
  const Value& metadata = write.object["metadata"];
  const bool put = write.verb == Verb::put;
  auto uid = metadata["uid"].as_string();
  auto actual = write.old["metadata"]["uid"].as_string();
  if (put && !uid.empty() && uid != actual) {
    return wrong_uid_error(resource.group, resource.plural, write.name, write.key(), uid, actual);
  }
  auto version = metadata["resourceVersion"].as_string();
  if (version.empty() || version == "0") {
    if (resource.rules->allow_unconditional_update || !put) return success();
    api::FieldErrors errors;
    errors.invalid(api::Path("metadata").child("resourceVersion"), 0,
                   "must be specified for an update");
    return errors.to_error(resource.plural, resource.group, write.name);
  }
  if (auto fault = version_fault(version); !fault.empty()) return Error::plain(fault);
  if (version == write.old["metadata"]["resourceVersion"].as_string()) return success();
  return conflict_error(resource.group, resource.plural, write.name, kModifiedText);
}

Result<> keep_namespace(Write& write) {
  if (write.resource.namespaced) {
    auto given = write.object["metadata"]["namespace"].as_string();
    if (given.empty()) {
      write.object.mut("metadata").set("namespace", write.old["metadata"]["namespace"]);
    } else if (given != write.old["metadata"]["namespace"].as_string()) {
      return wrong_namespace_error();
    }
  } else {
    write.object.mut("metadata").erase("namespace");
  }
  return success();
}

/// Of what came through /status: everything else is as it was.
void keep_all_but_status(Write& write) {
  const Value& old = write.old;
  Value& object = write.object;
  const bool custom = write.resource.custom;
  Value kept = Value::object({{"kind", old["kind"]}, {"apiVersion", old["apiVersion"]}});
  kept.set("metadata", custom ? old["metadata"] : object["metadata"]);
  if (custom && object["metadata"].contains("managedFields")) {
    kept.mut("metadata").set("managedFields", object["metadata"]["managedFields"]);
  }
  for (const auto& [key, value] : old.members()) {
    if (key != "kind" && key != "apiVersion" && key != "metadata" && key != "status")
      kept.set(key, value);
  }
  if (const Value* status = object.find("status")) kept.set("status", *status);
  object = std::move(kept);
}

/// Step 5.
Result<> prepare(Write& write) {
  const api::KindRules& rules = rules_for(write);
  Value& object = write.object;
  DIBS_CHECK(keep_namespace(write));
  keep_from_old(object.mut("metadata"), write.old["metadata"], "generation");
  if (write.writes_status()) {
    keep_all_but_status(write);
    if (rules.prepare_status) rules.prepare_status(object, write.old, rule_context(write));
    if (rules.protect && write.context.request.protects_allocation)
      rules.protect(object, write.old);
  } else if (write.subresource != "binding") {
    if (rules.has_status) keep_from_old(object, write.old, "status");
    if (rules.prepare_update) rules.prepare_update(object, write.old, rule_context(write));
    // The status of a custom resource without a door of its own is content like the rest.
    if (write.resource.rules->tracks_generation &&
        content_changed(object, write.old, write.resource.custom)) {
      object.mut("metadata").set("generation", write.old["metadata"]["generation"].as_int() + 1);
    }
  }
  object.mut("metadata").erase("selfLink");
  api::keep_metadata(object, write.old);
  return success();
}

/// True when the write takes away the last that kept a deleted object.
bool ends_deletion(const Write& write) {
  const Value& metadata = write.object["metadata"];
  const api::KindRules& rules = *write.resource.rules;
  return metadata.contains("deletionTimestamp") && metadata["finalizers"].empty() &&
         metadata["deletionGracePeriodSeconds"].as_int() == 0 &&
         !(rules.is_held && rules.is_held(write.object));
}

/// For words about the end: conditions, exit codes.
constexpr std::size_t kEndsText = 4096;

/// True of the steps that lead to the removal of a deleted object: finalizers go, its end is told.
/// What grows by more than a few words is none, or a full disk would be filled up by it.
bool brings_end_nearer(const Write& write) {
  return write.old["metadata"].contains("deletionTimestamp") &&
         write.op->value->size() <= encode_stored(write.old).size() + kEndsText;
}

/// Of a StorageVersionMigration, which writes objects as they are so that they are stored as they
/// would be today: with today's key, for one.
constexpr std::string_view kMigrator = "storage-version-migrator-controller";

Result<> finish(Write& write, store::Revision found) {
  Outcome& outcome = write.outcome;
  outcome.removed = ends_deletion(write);
  if (!outcome.removed && !write.moves && write.object == write.old &&
      write.context.field_manager != kMigrator) {
    outcome.object = write.old;
    return success();
  }
  outcome.object = write.object;
  if (write.is_dry_run()) return success();
  if (outcome.removed) {
    // Upstream shows a deleted object at the version it last had.
    outcome.version = found;
    write.op = store::Op{write.key(), nullptr, found};
    return success();
  }
  DIBS_TRY(write.op, write.storing(write.object, found));
  write.op->frees = brings_end_nearer(write);
  outcome.bytes = write.op->value;
  return success();
}

}  // namespace

Result<> Objects::update(Write& write) const {
  const Resource& resource = write.resource;
  auto record = store_.get(write.key());
  if (!record) {
    if (write.may_create) return create(write);
    return not_found_error(resource.group, resource.plural, write.name);
  }
  DIBS_CHECK(read_old(write, *record));
  DIBS_TRY(Wanted wanted, write.make(&write.old));
  write.object = std::move(wanted.object);
  for (auto& text : api::dedup_owner_references(write.object)) write.context.warn(std::move(text));
  DIBS_CHECK(check_preconditions(write));
  write.object.mut("metadata").set("resourceVersion", write.old["metadata"]["resourceVersion"]);
  if (resource.rules->set_times) resource.rules->set_times(write.object, write.context.now);
  if (write.verb != Verb::apply) {
    write.object = track_write(write.context, resource, &write.old, std::move(write.object),
                               wanted.forgets_managers);
  }
  DIBS_CHECK(admission_.mutate(write));
  DIBS_CHECK(server::prepare(write));
  DIBS_CHECK(judge_update(write));
  write.object = api::keep_times(write.old, std::move(write.object));
  DIBS_CHECK(admission_.allocate(write));
  DIBS_CHECK(admission_.validate(write));
  return finish(write, record->modified);
}

Result<> Objects::judge_update(Write& write) const {
  const Resource& resource = write.resource;
  const api::KindRules& rules = rules_for(write);
  api::FieldErrors errors;
  admission_.judge(write, errors);
  api::validate_metadata_update(write.object, write.old, errors, !resource.rules->any_finalizers,
                                release_of(resource));
  const auto& validate = write.writes_status() ? rules.validate_status : rules.validate_update;
  // A binding sets what no update may.
  if (validate && write.subresource != "binding") validate(write.object, write.old, errors);
  if (rules.validate_status_at && write.writes_status()) {
    rules.validate_status_at(write.object, write.old, write.context.now, errors);
  }
  for (const std::string& text : errors.warnings()) write.context.warn(text);
  if (!errors.empty()) {
    return refusal_of(resource, errors, write.object["metadata"]["name"].as_string());
  }
  if (rules.warnings && !write.writes_status()) {
    for (auto& text : rules.warnings(write.object, &write.old)) write.context.warn(std::move(text));
  }
  return success();
}

}  // namespace dibs::server
