#include "server/objects.h"

#include <charconv>

#include "api/kinds/metadata.h"
#include "api/kinds/subresource_rules.h"
#include "api/merge/managed_fields.h"
#include "base/strings.h"
#include "server/field_management.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {

using api::FieldErrors;

namespace {

constexpr int kRaces = 50;  // lost races before a client is told so
constexpr int kNameAttempts = 8;
constexpr std::size_t kMaxGenerated = 63;

std::string make_name(std::string_view prefix, runtime::Random& random) {
  std::size_t room = kMaxGenerated - 5;
  return cat(prefix.substr(0, room), runtime::make_suffix(random));
}

Error invalid(const FieldErrors& errors, const Resource& resource, std::string_view name) {
  return errors.to_error(resource.kind, resource.hub_group, name);
}

/// The minor number of the release that is answered as.
int release_of(const Resource& resource) {
  return resource.features ? resource.features->minor() : 37;
}

/// What Go says of text that is no unsigned number; empty when it is one.
std::string version_fault(std::string_view text) {
  std::uint64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code == std::errc::result_out_of_range) {
    return cat("strconv.ParseUint: parsing ", quoted(text), ": value out of range");
  }
  if (code != std::errc() || end != text.data() + text.size()) {
    return cat("strconv.ParseUint: parsing ", quoted(text), ": invalid syntax");
  }
  return {};
}

bool spec_changed(const Value& object, const Value& old) {
  auto differs = [](const Value& a, const Value& b) {
    for (const auto& [key, value] : a.members()) {
      if (key == "metadata" || key == "status" || key == "kind" || key == "apiVersion") continue;
      const Value* other = b.find(key);
      if (!other || !(*other == value)) return true;
    }
    return false;
  };
  return differs(object, old) || differs(old, object);
}

/// The rules of the door that a write comes through: a sub-resource may have its own.
const api::KindRules& rules_for(const Context& context, const Resource& resource) {
  const std::string& sub = context.info.subresource;
  if (resource.custom || sub.empty()) return *resource.rules;
  const api::KindRules* own = api::subresource_rules(resource.group, resource.kind, sub);
  return own ? *own : *resource.rules;
}

void keep_from_old(Value& metadata, const Value& old, std::string_view key) {
  if (const Value* value = old.find(key)) {
    metadata.set(key, *value);
  } else {
    metadata.erase(key);
  }
}

Error wrong_uid(const Resource& resource, std::string_view name, std::string_view key,
                std::string_view wanted, std::string_view actual) {
  return conflict_error(
      resource.group, resource.plural, name,
      cat("StorageError: invalid object, Code: 4, Key: ", key,
          ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ",
          wanted, ", UID in object meta: ", actual));
}

/// The uid and resourceVersion that a client sends say which object it means to change.
Result<> check_preconditions(const Resource& resource, const Value& object, const Value& old,
                             UpdateKind kind, std::string_view key) {
  const Value& metadata = object["metadata"];
  auto name = old["metadata"]["name"].as_string();
  auto uid = metadata["uid"].as_string();
  auto actual = old["metadata"]["uid"].as_string();
  if (kind == UpdateKind::put && !uid.empty() && uid != actual)
    return wrong_uid(resource, name, key, uid, actual);
  auto version = metadata["resourceVersion"].as_string();
  if (version.empty() || version == "0") {
    if (resource.rules->allow_unconditional_update || kind != UpdateKind::put) return success();
    FieldErrors errors;
    errors.invalid(api::Path("metadata").child("resourceVersion"), 0,
                   "must be specified for an update");
    return errors.to_error(resource.plural, resource.group, name);
  }
  if (auto fault = version_fault(version); !fault.empty()) return Error::plain(fault);
  if (version == old["metadata"]["resourceVersion"].as_string()) return success();
  return conflict_error(resource.group, resource.plural, name, kModifiedText);
}

/// 409 for a name that is taken; `generate` is the object's generateName.
Error taken_error(const Resource& resource, std::string_view name, std::string_view generate,
                  const store::Record& record) {
  Error plain = already_exists_error(resource.group, resource.plural, name);
  auto existing = decode_stored(record);
  if (existing.ok() && (*existing)["metadata"].contains("deletionTimestamp")) {
    return {Code::already_exists, cat("object is being deleted: ", plain.message()),
            *plain.details()};
  }
  if (generate.empty()) return plain;
  ErrorDetails details = *plain.details();
  details.retry_after_seconds = 1;
  return {
      Code::already_exists,
      cat(plain.message(), ", the server was not able to generate a unique name for the object"),
      std::move(details)};
}

}  // namespace

Result<Value> Objects::get(const Resource& resource, std::string_view name_space,
                           std::string_view name) const {
  auto record = store_.get(resource.key(name_space, name));
  if (!record) return not_found_error(resource.group, resource.plural, name);
  return decode_stored(*record);
}

Result<Value> Objects::create(Context& context, const Resource& resource,
                              std::string_view name_space, Value object) {
  for (auto& text : api::dedup_owner_references(object)) context.warn(std::move(text));
  Value& metadata = object.mut("metadata");
  if (resource.namespaced) {
    auto given = metadata["namespace"].as_string();
    if (!given.empty() && given != name_space) {
      return Error::bad_request(
          "the namespace of the provided object does not match the namespace sent on the request");
    }
    metadata.set("namespace", name_space);
  } else if (resource.custom) {
    metadata.erase("namespace");
  }
  const auto held =
      std::make_shared<AdmissionRequest>(AdmissionRequest{.context = context,
                                                          .resource = resource,
                                                          .operation = Operation::create,
                                                          .name_space = std::string(name_space),
                                                          .name = metadata["name"].str(),
                                                          .subresource = {},
                                                          .object = &object});
  AdmissionRequest& admission = *held;
  if (resource.rules->set_times) resource.rules->set_times(object, context.now);
  object = track_write(context, resource, nullptr, std::move(object));
  DIBS_CHECK(admission_.mutate(admission));

  auto version = object["metadata"]["resourceVersion"].as_string();
  if (!version.empty() && version != "0" && version_fault(version).empty()) {
    return Error::plain("resourceVersion should not be set on objects to be created");
  }
  return commit_new(context, resource, held, std::move(object));
}

void Objects::defer(Context& context, const AdmissionPtr& held, store::Op op, Value object,
                    const Value* old) const {
  auto made = std::make_shared<DeferredWrite>();
  made->op = std::move(op);
  made->object = std::move(object);
  if (old) made->old = *old;
  // What the request pointed to is gone by then; plugins know it by its address.
  held->object = &made->object;
  held->old = old ? &made->old : nullptr;
  made->stored = [this, held] { admission_.stored(*held); };
  made->roll_back = [this, held] { admission_.roll_back(*held); };
  context.deferred = std::move(made);
}

Result<Value> Objects::commit_new(Context& context, const Resource& resource,
                                  const AdmissionPtr& held, Value object) {
  AdmissionRequest& admission = *held;
  const api::KindRules& rules = *resource.rules;
  api::RuleContext rule_context{context.now, context.info.subresource, resource.features.get()};
  std::string generate(object["metadata"]["generateName"].as_string());
  bool generated = object["metadata"]["name"].as_string().empty() && !generate.empty();

  for (int attempt = 0;; ++attempt) {
    Value made = object;
    Value& metadata = made.mut("metadata");
    metadata.erase("resourceVersion");
    metadata.erase("selfLink");
    metadata.erase("deletionTimestamp");
    metadata.erase("deletionGracePeriodSeconds");
    metadata.set("uid", runtime::make_uuid(runtime_.random));
    metadata.set("creationTimestamp", format_rfc3339(context.now));
    if (generated) metadata.set("name", make_name(generate, runtime_.random));
    std::string name = metadata["name"].str();

    if (rules.tracks_generation) metadata.set("generation", 1);
    if (resource.custom && rules.has_status) made.erase("status");
    if (rules.prepare_create) rules.prepare_create(made, rule_context);

    FieldErrors errors;
    admission.object = &made;
    admission.name = name;
    admission_.judge(admission, errors);
    api::validate_metadata(made, resource.namespaced, rules.name_rule, errors,
                           !rules.any_finalizers, release_of(resource));
    if (rules.validate && context.as_sent.is_object()) {
      Value judged = context.as_sent;
      judged.set("metadata", made["metadata"]);
      if (rules.set_times) rules.set_times(judged, context.now);
      if (rules.prepare_create) rules.prepare_create(judged, rule_context);
      rules.validate(judged, errors);
    } else if (rules.validate) {
      rules.validate(made, errors);
    }
    for (const std::string& text : errors.warnings()) context.warn(text);
    if (!errors.empty()) return invalid(errors, resource, name);
    if (rules.warnings) {
      for (auto& text : rules.warnings(made, nullptr)) context.warn(std::move(text));
    }

    DIBS_CHECK(admission_.validate(admission));

    std::string key = resource.key(admission.name_space, name);
    if (auto record = store_.get(key)) {
      admission_.roll_back(admission);
      if (generated && attempt + 1 < kNameAttempts) continue;
      return taken_error(resource, name, generate, *record);
    }
    if (context.dry_run) {
      admission_.roll_back(admission);
      return made;
    }
    store::Op op = stored_op(key, made, 0);
    if (context.may_defer) {
      defer(context, held, std::move(op), made, nullptr);
      return made;
    }
    auto revision = store_.commit({std::move(op)});
    if (revision.ok()) {
      admission_.stored(admission);
      made.mut("metadata").set("resourceVersion", cat(*revision));
      return made;
    }
    admission_.roll_back(admission);
    if (revision.error().code() != Code::conflict) return std::move(revision).error();
    // Somebody was faster: the next round finds the name taken.
  }
}

Result<Written> Objects::update(Context& context, const Resource& resource,
                                std::string_view name_space, std::string_view name, UpdateKind kind,
                                bool may_create, const Make& make) {
  std::string key = resource.key(name_space, name);
  for (int race = 0; race < kRaces; ++race) {
    auto record = store_.get(key);
    if (!record) {
      if (!may_create) return not_found_error(resource.group, resource.plural, name);
      DIBS_TRY(Value object, make(nullptr));
      if (auto uid = object["metadata"]["uid"].as_string();
          !uid.empty() && kind == UpdateKind::put) {
        return wrong_uid(resource, name, key, uid, "");
      }
      object.mut("metadata").erase("resourceVersion");
      if (resource.namespaced) object.mut("metadata").set("namespace", name_space);
      const auto held =
          std::make_shared<AdmissionRequest>(AdmissionRequest{.context = context,
                                                              .resource = resource,
                                                              .operation = Operation::create,
                                                              .name_space = std::string(name_space),
                                                              .name = std::string(name),
                                                              .subresource = {},
                                                              .object = &object});
      if (resource.rules->set_times) resource.rules->set_times(object, context.now);
      if (kind != UpdateKind::apply)
        object = track_write(context, resource, nullptr, std::move(object));
      DIBS_CHECK(admission_.mutate(*held));
      auto made = commit_new(context, resource, held, std::move(object));
      if (!made.ok() && made.error().code() == Code::already_exists) continue;
      if (!made.ok()) return std::move(made).error();
      return Written{std::move(made).value(), true, false};
    }

    DIBS_TRY(const Value old, decode_stored(*record));
    DIBS_TRY(Value object, make(&old));
    for (auto& text : api::dedup_owner_references(object)) context.warn(std::move(text));
    DIBS_CHECK(check_preconditions(resource, object, old, kind, key));
    object.mut("metadata").set("resourceVersion", old["metadata"]["resourceVersion"]);

    const auto held =
        std::make_shared<AdmissionRequest>(AdmissionRequest{.context = context,
                                                            .resource = resource,
                                                            .operation = Operation::update,
                                                            .name_space = std::string(name_space),
                                                            .name = std::string(name),
                                                            .subresource = context.info.subresource,
                                                            .object = &object,
                                                            .old = &old});
    AdmissionRequest& admission = *held;
    if (resource.rules->set_times) resource.rules->set_times(object, context.now);
    if (kind != UpdateKind::apply) object = track_write(context, resource, &old, std::move(object));
    DIBS_CHECK(admission_.mutate(admission));
    DIBS_TRY(object, prepare_update(context, resource, admission, std::move(object), old));
    object = api::keep_times(old, std::move(object));
    admission.object = &object;
    DIBS_CHECK(admission_.validate(admission));

    const Value& metadata = object["metadata"];
    bool done = metadata.contains("deletionTimestamp") && metadata["finalizers"].empty() &&
                metadata["deletionGracePeriodSeconds"].as_int() == 0 &&
                !(resource.rules->is_held && resource.rules->is_held(object));
    if (!done && object == old) {
      admission_.roll_back(admission);
      return Written{old, false, false};
    }
    if (context.dry_run) {
      admission_.roll_back(admission);
      return Written{std::move(object), false, done};
    }
    store::Op op =
        done ? store::Op{key, nullptr, record->modified} : stored_op(key, object, record->modified);
    if (context.may_defer && !done) {
      defer(context, held, std::move(op), object, &old);
      return Written{std::move(object), false, false};
    }
    auto revision = store_.commit({std::move(op)});
    if (revision.ok()) {
      admission_.stored(admission);
      // Upstream shows a deleted object at the version it last had.
      if (!done) object.mut("metadata").set("resourceVersion", cat(*revision));
      return Written{std::move(object), false, done};
    }
    admission_.roll_back(admission);
    if (revision.error().code() != Code::conflict) return std::move(revision).error();
  }
  return conflict_error(resource.group, resource.plural, name, kModifiedText);
}

Result<Value> Objects::prepare_update(Context& context, const Resource& resource,
                                      AdmissionRequest& admission, Value object, const Value& old) {
  const api::KindRules& rules = rules_for(context, resource);
  api::RuleContext rule_context{context.now, context.info.subresource, resource.features.get()};
  bool status_write =
      context.info.subresource == "status" || context.info.subresource == "approval";
  if (resource.namespaced) {
    auto given = object["metadata"]["namespace"].as_string();
    if (given.empty()) {
      object.mut("metadata").set("namespace", old["metadata"]["namespace"]);
    } else if (given != old["metadata"]["namespace"].as_string()) {
      return Error::bad_request(
          "the namespace of the provided object does not match the namespace sent on the request");
    }
  } else if (resource.custom) {
    object.mut("metadata").erase("namespace");
  }

  keep_from_old(object.mut("metadata"), old["metadata"], "generation");
  if (status_write) {
    Value kept = Value::object({{"kind", old["kind"]}, {"apiVersion", old["apiVersion"]}});
    kept.set("metadata", resource.custom ? old["metadata"] : object["metadata"]);
    if (resource.custom && object["metadata"].contains("managedFields")) {
      kept.mut("metadata").set("managedFields", object["metadata"]["managedFields"]);
    }
    for (const auto& [key, value] : old.members()) {
      if (key != "kind" && key != "apiVersion" && key != "metadata" && key != "status")
        kept.set(key, value);
    }
    if (const Value* status = object.find("status")) kept.set("status", *status);
    object = std::move(kept);
    if (rules.prepare_status) rules.prepare_status(object, old, rule_context);
    if (rules.protect && context.request.protects_allocation) rules.protect(object, old);
  } else if (context.info.subresource != "binding") {
    if (rules.has_status) {
      if (const Value* status = old.find("status")) {
        object.set("status", *status);
      } else {
        object.erase("status");
      }
    }
    if (rules.prepare_update) rules.prepare_update(object, old, rule_context);
    if (resource.rules->tracks_generation && spec_changed(object, old)) {
      object.mut("metadata").set("generation", old["metadata"]["generation"].as_int() + 1);
    }
  }

  object.mut("metadata").erase("selfLink");
  api::keep_metadata(object, old);

  FieldErrors errors;
  admission.object = &object;
  admission_.judge(admission, errors);
  api::validate_metadata_update(object, old, errors, !resource.rules->any_finalizers,
                                release_of(resource));
  const auto& validate = status_write ? rules.validate_status : rules.validate_update;
  // A binding sets what no update may.
  if (validate && context.info.subresource != "binding") validate(object, old, errors);
  for (const std::string& text : errors.warnings()) context.warn(text);
  if (!errors.empty()) return invalid(errors, resource, object["metadata"]["name"].as_string());
  if (rules.warnings && !status_write) {
    for (auto& text : rules.warnings(object, &old)) context.warn(std::move(text));
  }
  return object;
}

}  // namespace dibs::server
