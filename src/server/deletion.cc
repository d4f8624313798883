// Objects::remove: grace periods, finalizers and propagation.
#include <algorithm>
#include <limits>

#include "base/finalizers.h"
#include "base/span.h"
#include "base/strings.h"
#include "server/objects.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

/// metadata.finalizers after the propagation policy had its say.
Value finalizers_after(const Resource& resource, const Value& object,
                       const DeleteOptions& options) {
  const Value& current = object["metadata"]["finalizers"];
  bool has_orphan = false;
  bool has_foreground = false;
  Value others = Value::array();
  for (const Value& item : current.items()) {
    if (item.as_string() == kOrphanFinalizer) {
      has_orphan = true;
    } else if (item.as_string() == kForegroundFinalizer) {
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
  } else if (!has_orphan && !has_foreground && resource.rules->orphans_by_default) {
    orphan = true;
  }
  if (orphan == has_orphan && foreground == has_foreground) return current;
  if (orphan) others.push(kOrphanFinalizer);
  if (foreground) others.push(kForegroundFinalizer);
  return others;
}

Error precondition_error(const Write& write, std::string_view what, std::string_view given,
                         std::string_view actual, std::string_view guess) {
  const Resource& resource = write.resource;
  ErrorDetails details;
  details.name = write.name;
  details.group = resource.group;
  details.kind = resource.kind;
  return {
      Code::conflict,
      cat("Operation cannot be fulfilled on ", qualified(resource.kind, resource.group), " \"",
          write.name, "\": the ", what, " in the precondition (", given, ") does not match the ",
          what, " in record (", actual, "). The object might have been ", guess),
      std::move(details)};
}

/// A deleted object, as far as it goes.
struct Marked {
  Value object;
  bool waits = false;
  bool at_once = false;  // it had no time to wait: it is shown as it was
};

void set_deadline(Value& object, Time at, std::int64_t grace) {
  object.mut("metadata").set("deletionTimestamp", format_rfc3339(at));
  object.mut("metadata").set("deletionGracePeriodSeconds", grace);
}

/// True while the time of an object that was deleted before is not over. A second delete may only
/// shorten it.
bool is_still_waiting(const Write& write, Value& object, std::int64_t grace) {
  const Value& metadata = write.old["metadata"];
  std::int64_t before = metadata["deletionGracePeriodSeconds"].as_int();
  if (!write.removal.grace_seconds || grace >= before) return before > 0;
  auto stamp = parse_rfc3339(metadata["deletionTimestamp"].as_string());
  Time base = stamp.ok() ? *stamp - seconds_of(before) : write.context.now;
  set_deadline(object, base + seconds_of(grace), grace);
  return false;
}

Marked mark(const Write& write) {
  const api::KindRules& rules = *write.resource.rules;
  const Value& metadata = write.old["metadata"];
  const bool graceful = static_cast<bool>(rules.grace);
  const bool terminating = metadata.contains("deletionTimestamp");
  const std::int64_t grace = graceful ? rules.grace(write.old, write.removal.grace_seconds) : 0;
  Marked out{write.old};
  Value finalizers = finalizers_after(write.resource, write.old, write.removal);
  if (finalizers.empty()) {
    out.object.mut("metadata").erase("finalizers");
  } else {
    out.object.mut("metadata").set("finalizers", std::move(finalizers));
  }
  if (rules.mark_deleted) rules.mark_deleted(out.object, write.context.now);
  out.waits = grace > 0 || !out.object["metadata"]["finalizers"].empty() ||
              (rules.is_held && rules.is_held(write.old));
  if (terminating) {
    if (graceful && is_still_waiting(write, out.object, grace)) out.waits = true;
  } else if (rules.mark_deleted) {
    out.object.mut("metadata").set("deletionTimestamp", format_rfc3339(write.context.now));
  } else {
    set_deadline(out.object, write.context.now + seconds_of(grace), grace);
    // Of most kinds whoever creates one may have written it.
    const std::int64_t generation = metadata["generation"].as_int();
    if (generation > 0 && generation < std::numeric_limits<std::int64_t>::max())
      out.object.mut("metadata").set("generation", generation + 1);
  }
  out.at_once = !out.waits && !graceful && !terminating;
  return out;
}

Result<> finish(Write& write, Marked marked, store::Revision found) {
  Outcome& outcome = write.outcome;
  outcome.removed = !marked.waits;
  outcome.object = marked.at_once ? write.old : std::move(marked.object);
  if (write.is_dry_run() || (marked.waits && outcome.object == write.old)) return success();
  if (marked.waits) {
    DIBS_TRY(write.op, write.storing(outcome.object, found));
    write.op->frees = true;
    outcome.bytes = write.op->value;
    return success();
  }
  // A pod that goes at once is shown at the version that it had.
  if (!marked.at_once) outcome.version = found;
  if (write.encodes_removed) outcome.bytes = share(encode_stored(outcome.object));
  write.op = store::Op{write.key(), nullptr, found};
  return success();
}

}  // namespace

Result<> check_removal(const Write& write, const Value& object) {
  const Value& metadata = object["metadata"];
  const DeleteOptions& options = write.removal;
  auto uid = metadata["uid"].as_string();
  if (!options.precondition_uid.empty() && options.precondition_uid != uid) {
    return precondition_error(write, "UID", options.precondition_uid, uid,
                              "deleted and then recreated");
  }
  auto version = metadata["resourceVersion"].as_string();
  if (!options.precondition_version.empty() && options.precondition_version != version) {
    return precondition_error(write, "ResourceVersion", options.precondition_version, version,
                              "modified");
  }
  return success();
}

Result<> Objects::remove(Write& write) const {
  auto record = store_.get(write.key());
  if (!record) return not_found_error(write.resource.group, write.resource.plural, write.name);
  DIBS_CHECK(read_old(write, *record));
  DIBS_CHECK(check_removal(write, write.old));
  DIBS_CHECK(admission_.mutate_unstored(write));
  DIBS_CHECK(admission_.allocate(write));
  DIBS_CHECK(admission_.validate(write));
  return finish(write, mark(write), record->modified);
}

}  // namespace dibs::server
