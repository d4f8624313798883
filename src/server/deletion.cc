// Objects::remove: grace periods, finalizers and propagation.
#include <algorithm>

#include "base/strings.h"
#include "server/objects.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::string_view kForeground = "foregroundDeletion";
constexpr std::string_view kOrphan = "orphan";

/// metadata.finalizers after the propagation policy had its say.
Value finalizers_after(const Resource& resource, const Value& object,
                       const DeleteOptions& options) {
  const Value& current = object["metadata"]["finalizers"];
  bool has_orphan = false;
  bool has_foreground = false;
  Value others = Value::array();
  for (const Value& item : current.items()) {
    if (item.as_string() == kOrphan) {
      has_orphan = true;
    } else if (item.as_string() == kForeground) {
      has_foreground = true;
    } else {
      others.push(item);
    }
  }
  bool orphan = has_orphan;
  bool foreground = has_foreground;
  if (options.orphan_dependents) {
    orphan = *options.orphan_dependents;
    foreground = false;
  } else if (!options.propagation.empty()) {
    orphan = options.propagation == "Orphan";
    foreground = options.propagation == "Foreground";
  } else if (!has_orphan && !has_foreground && !resource.rules->orphans_warning.empty()) {
    orphan = true;
  }
  if (orphan == has_orphan && foreground == has_foreground) return current;
  if (orphan) others.push(kOrphan);
  if (foreground) others.push(kForeground);
  return others;
}

}  // namespace

Result<Deleted> Objects::remove(Context& context, const Resource& resource,
                                std::string_view name_space, std::string_view name,
                                const DeleteOptions& options) {
  std::string key = resource.key(name_space, name);
  for (int race = 0; race < 50; ++race) {
    auto record = store_.get(key);
    if (!record) return not_found_error(resource.group, resource.plural, name);
    DIBS_TRY(const Value old, decode_stored(*record));
    const Value& metadata = old["metadata"];

    auto precondition = [&](std::string_view what, std::string_view given, std::string_view actual,
                            std::string_view guess) -> Error {
      ErrorDetails details;
      details.name = name;
      details.group = resource.group;
      details.kind = resource.kind;
      return {
          Code::conflict,
          cat("Operation cannot be fulfilled on ", qualified(resource.kind, resource.group), " \"",
              name, "\": the ", what, " in the precondition (", given, ") does not match the ",
              what, " in record (", actual, "). The object might have been ", guess),
          std::move(details)};
    };
    if (!options.precondition_uid.empty() &&
        options.precondition_uid != metadata["uid"].as_string()) {
      return precondition("UID", options.precondition_uid, metadata["uid"].as_string(),
                          "deleted and then recreated");
    }
    if (!options.precondition_version.empty() &&
        options.precondition_version != metadata["resourceVersion"].as_string()) {
      return precondition("ResourceVersion", options.precondition_version,
                          metadata["resourceVersion"].as_string(), "modified");
    }

    AdmissionRequest admission{.context = context,
                               .resource = resource,
                               .operation = Operation::remove,
                               .name_space = std::string(name_space),
                               .name = std::string(name),
                               .subresource = {},
                               .object = nullptr,
                               .old = &old,
                               .options = &options.raw};
    DIBS_CHECK(admission_.validate(admission));

    Value object = old;
    Value finalizers = finalizers_after(resource, old, options);
    if (finalizers.empty()) {
      object.mut("metadata").erase("finalizers");
    } else {
      object.mut("metadata").set("finalizers", finalizers);
    }
    const api::KindRules& rules = *resource.rules;
    bool graceful = static_cast<bool>(rules.grace);
    bool own_way = static_cast<bool>(rules.mark_deleted);
    std::int64_t grace = graceful ? rules.grace(old, options.grace_seconds) : 0;
    if (own_way) rules.mark_deleted(object, context.now);
    bool waits = grace > 0 || !object["metadata"]["finalizers"].empty() ||
                 (rules.is_held && rules.is_held(old));
    bool terminating = metadata.contains("deletionTimestamp");

    if (!terminating) {
      object.mut("metadata")
          .set("deletionTimestamp", format_rfc3339(context.now + std::chrono::seconds(grace)));
      if (!own_way) object.mut("metadata").set("deletionGracePeriodSeconds", grace);
      if (metadata["generation"].as_int() > 0 && !own_way) {
        object.mut("metadata").set("generation", metadata["generation"].as_int() + 1);
      }
    } else if (graceful && options.grace_seconds) {
      // A second delete may only shorten the wait.
      std::int64_t before = metadata["deletionGracePeriodSeconds"].as_int();
      if (grace < before) {
        auto stamp = parse_rfc3339(metadata["deletionTimestamp"].as_string());
        Time base = stamp.ok() ? *stamp - std::chrono::seconds(before) : context.now;
        object.mut("metadata")
            .set("deletionTimestamp", format_rfc3339(base + std::chrono::seconds(grace)));
        object.mut("metadata").set("deletionGracePeriodSeconds", grace);
      } else {
        waits = waits || before > 0;
      }
    } else if (graceful) {
      waits = waits || metadata["deletionGracePeriodSeconds"].as_int() > 0;
    }

    // What has no time to wait is shown as it was.
    bool at_once = !waits && !graceful && !terminating;
    if (context.dry_run || options.dry_run) {
      return at_once ? Deleted{old, true} : Deleted{std::move(object), !waits};
    }
    if (waits && object == old) return Deleted{old, false};
    store::Op op = waits ? stored_op(key, object, record->modified)
                         : store::Op{key, nullptr, record->modified};
    if (context.may_defer) {
      const Deleted out{at_once ? old : std::move(object), !waits};
      auto write = std::make_shared<DeferredWrite>();
      write->object = out.object;
      // A pod that goes at once is shown at the version that it had.
      if (!waits) {
        write->shown = share("");
        if (!at_once) write->shown_at = record->modified;
      }
      write->op = std::move(op);
      write->stored = [] {};
      write->roll_back = [] {};
      context.deferred = std::move(write);
      return out;
    }
    auto revision = store_.commit({std::move(op)});
    if (revision.ok()) {
      if (waits) object.mut("metadata").set("resourceVersion", cat(*revision));
      if (at_once) {
        Value gone = old;
        gone.mut("metadata").set("resourceVersion", cat(*revision));
        return Deleted{std::move(gone), true};
      }
      return Deleted{std::move(object), !waits};
    }
    if (revision.error().code() != Code::conflict) return std::move(revision).error();
  }
  return conflict_error(resource.group, resource.plural, name, kModifiedText);
}

}  // namespace dibs::server
