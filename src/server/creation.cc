// Objects::create: a new object, by POST, or where an update finds nothing.
#include "api/kinds/metadata.h"
#include "base/strings.h"
#include "server/field_management.h"
#include "server/objects.h"
#include "server/refusal.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr int kNameAttempts = 8;
constexpr std::size_t kMaxGenerated = 63;

std::string make_name(std::string_view prefix, runtime::Random& random) {
  std::size_t room = kMaxGenerated - 5;
  return cat(prefix.substr(0, room), runtime::make_suffix(random));
}

/// Puts what was posted into the namespace of the request.
Result<> place(Write& write) {
  for (auto& text : api::dedup_owner_references(write.object)) write.context.warn(std::move(text));
  Value& metadata = write.object.mut("metadata");
  for (std::string_view key : {"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"})
    metadata.erase(key);
  if (write.resource.namespaced) {
    auto given = metadata["namespace"].as_string();
    if (!given.empty() && given != write.name_space) return wrong_namespace_error();
    metadata.set("namespace", write.name_space);
  } else {
    metadata.erase("namespace");
  }
  write.name = metadata["name"].str();
  return success();
}

/// The same for an update that found nothing.
Result<> place_updated(Write& write) {
  Value& metadata = write.object.mut("metadata");
  if (auto uid = metadata["uid"].as_string(); !uid.empty() && write.verb == Verb::put) {
    return wrong_uid_error(write.resource.group, write.resource.plural, write.name, write.key(),
                           uid, "");
  }
  metadata.erase("resourceVersion");
  if (write.resource.namespaced) {
    metadata.set("namespace", write.name_space);
  } else {
    metadata.erase("namespace");
  }
  return success();
}

Result<> check_version(const Write& write) {
  if (write.is_dry_run()) return success();
  auto version = write.object["metadata"]["resourceVersion"].as_string();
  if (version.empty() || version == "0" || !version_fault(version).empty()) return success();
  return Error::plain("resourceVersion should not be set on objects to be created");
}

/// 409 for a name that is taken.
Error taken_error(const Write& write, const store::Record& record) {
  Error plain = already_exists_error(write.resource.group, write.resource.plural, write.name);
  auto existing = decode_stored(record);
  if (existing.ok() && (*existing)["metadata"].contains("deletionTimestamp")) {
    return {Code::already_exists, cat("object is being deleted: ", plain.message()),
            *plain.details()};
  }
  if (write.object["metadata"]["generateName"].as_string().empty()) return plain;
  ErrorDetails details = *plain.details();
  details.retry_after_seconds = 1;
  return {
      Code::already_exists,
      cat(plain.message(), ", the server was not able to generate a unique name for the object"),
      std::move(details)};
}

Result<> finish(Write& write) {
  write.outcome.object = write.object;
  write.outcome.created = true;
  if (write.is_dry_run()) return success();
  DIBS_TRY(write.op, write.storing(write.object, 0));
  write.outcome.bytes = write.op->value;
  return success();
}

}  // namespace

Result<> Objects::create(Write& write) const {
  const Resource& resource = write.resource;
  const bool posted = write.verb == Verb::create;
  write.operation = Operation::create;
  DIBS_TRY(Wanted wanted, write.make(nullptr));
  write.object = std::move(wanted.object);
  DIBS_CHECK(posted ? place(write) : place_updated(write));
  if (resource.rules->set_times) resource.rules->set_times(write.object, write.context.now);
  if (write.verb != Verb::apply) {
    write.object = track_write(write.context, resource, nullptr, std::move(write.object),
                               wanted.forgets_managers);
  }
  DIBS_CHECK(admission_.mutate(write));
  if (posted) DIBS_CHECK(check_version(write));

  const Value& metadata = write.object["metadata"];
  const bool generates =
      metadata["name"].as_string().empty() && !metadata["generateName"].as_string().empty();
  const Value nameless = generates ? write.object : Value();
  for (int attempt = 1;; ++attempt) {
    if (generates) write.object = nameless;
    fill_in(write, generates);
    DIBS_CHECK(judge_new(write, wanted.as_sent));
    if (!posted) DIBS_CHECK(write.may_create());
    DIBS_CHECK(admission_.allocate(write));
    DIBS_CHECK(admission_.validate(write));
    // An update that found nothing is told by the store, and begins again over what it then finds.
    auto record = posted ? store_.get(write.key()) : nullptr;
    if (!record) break;
    write.tickets.clear();
    write.fences.clear();
    if (!generates || attempt == kNameAttempts) return taken_error(write, *record);
  }
  return finish(write);
}

void Objects::fill_in(Write& write, bool generates_name) const {
  const api::KindRules& rules = *write.resource.rules;
  Value& metadata = write.object.mut("metadata");
  for (std::string_view key : {"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"})
    metadata.erase(key);
  // A dry run asks no store, which would refuse it or give another.
  if (!write.is_dry_run()) metadata.erase("resourceVersion");
  metadata.set("uid", runtime::make_uuid(runtime_.random));
  metadata.set("creationTimestamp", format_rfc3339(write.context.now));
  if (generates_name) {
    metadata.set("name", make_name(metadata["generateName"].as_string(), runtime_.random));
  }
  write.name = metadata["name"].str();
  if (rules.tracks_generation) metadata.set("generation", 1);
  if (write.resource.custom && rules.has_status) write.object.erase("status");
  if (rules.prepare_create) rules.prepare_create(write.object, rule_context(write));
}

Result<> Objects::judge_new(Write& write, const Value& as_sent) const {
  const Resource& resource = write.resource;
  const api::KindRules& rules = *resource.rules;
  api::FieldErrors errors;
  admission_.judge(write, errors);
  api::validate_metadata(write.object, resource.namespaced, rules.name_rule, errors,
                         !rules.any_finalizers, release_of(resource));
  if (rules.validate && as_sent.is_object()) {
    Value judged = as_sent;
    judged.set("metadata", write.object["metadata"]);
    if (rules.set_times) rules.set_times(judged, write.context.now);
    if (rules.prepare_create) rules.prepare_create(judged, rule_context(write));
    rules.validate(judged, errors);
  } else if (rules.validate) {
    rules.validate(write.object, errors);
  }
  for (const std::string& text : errors.warnings()) write.context.warn(text);
  if (!errors.empty()) return refusal_of(resource, errors, write.name);
  if (rules.warnings) {
    for (auto& text : rules.warnings(write.object, nullptr)) write.context.warn(std::move(text));
  }
  return success();
}

}  // namespace dibs::server
