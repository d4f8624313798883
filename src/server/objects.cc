#include "server/objects.h"

#include "base/release.h"
#include "base/strings.h"
#include "server/presenting.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {

Result<Value> Objects::get(const Resource& resource, std::string_view name_space,
                           std::string_view name) const {
  auto record = store_.get(resource.key(name_space, name));
  if (!record) return not_found_error(resource.group, resource.plural, name);
  return decode_stored(*record);
}

Result<> Objects::run(Write& write) {
  for (;;) {
    auto prepared = prepare(write);
    if (prepared.ok() && write.op) {
      if (auto charged = charge(write, nullptr); !charged.ok()) prepared = charged.error();
    }
    if (!is_final(write, prepared)) {
      DIBS_CHECK(store_.sync());
      write.context.fresh = true;
      continue;
    }
    if (!prepared.ok() || !write.op) return prepared;
    DIBS_TRY(bool over, settle(write, store_.commit(write.transaction())));
    if (over) return success();
  }
}

bool Objects::is_final(const Write& write, const Result<>& prepared) const {
  if (!shared_ || write.context.fresh) return true;
  // Of a commit the store will judge.
  if (prepared.ok()) return write.op.has_value();
  // What cannot be read does not get better.
  return prepared.error().code() == Code::bad_request;
}

Result<> Objects::prepare(Write& write) const {
  write.begin();
  auto prepared = steps_of(write);
  if (!prepared.ok() || !write.op) write.tickets.clear();
  if (prepared.ok() && write.op && write.outcome.removed) admission_.give_back(write);
  return prepared;
}

Result<bool> Objects::charge(Write& write, const std::function<void()>& go_on) const {
  auto charged = admission_.charge(write, go_on);
  if (!charged.ok()) {
    write.tickets.clear();
    write.op.reset();
  }
  return charged;
}

Result<> Objects::steps_of(Write& write) const {
  switch (write.verb) {
    case Verb::create:
      return create(write);
    case Verb::remove:
      return remove(write);
    default:
      return update(write);
  }
}

Result<bool> Objects::settle(Write& write, const Result<store::Revision>& revision) const {
  write.tickets.clear();
  if (revision.ok()) {
    if (write.outcome.version == 0) write.outcome.version = *revision;
    return true;
  }
  if (revision.error().code() != Code::conflict) return revision.error();
  if (write.may_race_again()) return false;
  return conflict_error(write.resource.group, write.resource.plural, write.name, kModifiedText);
}

Result<> read_old(Write& write, const store::Record& record) {
  const Resource& resource = write.resource;
  DIBS_TRY(write.old, decode_stored(record));
  if (!resource.conversion) return success();
  write.moves =
      write.old["apiVersion"].as_string() != cat(resource.group, "/", resource.storage_version);
  DIBS_TRY(write.old, to_served(resource, write.old));
  return success();
}

api::RuleContext rule_context(const Write& write) {
  return {write.context.now, write.subresource, write.resource.features.get()};
}

int release_of(const Resource& resource) {
  return resource.features ? resource.features->minor() : kNewestRelease;
}

Error wrong_namespace_error() {
  return Error::bad_request(
      "the namespace of the provided object does not match the namespace sent on the request");
}

}  // namespace dibs::server
