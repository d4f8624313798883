// StorageVersionMigrations: every object of a resource that was written before the migration began
// is written anew, as it is, and so comes to be stored in the version and with the key of today.
// Those of a custom resource are then stored in no other version, and its definition says so. Where
// the definition was changed meanwhile, objects may have been written in another version since:
// then it begins anew.
#include <algorithm>
#include <charconv>
#include <map>

#include "base/strings.h"
#include "controllers/controllers.h"

namespace dibs::controllers {
namespace {

const Gvr kMigrations = {"storagemigration.k8s.io", "v1", "storageversionmigrations"};
const Gvr kDefinitions = {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
/// By this name the server knows a write that has to reach the store though it changes nothing.
constexpr const char* kManager = "storage-version-migrator-controller";
/// A definition may be about to be served.
constexpr Duration kMayAppear = std::chrono::minutes(1);
constexpr Duration kLookAgain = std::chrono::seconds(5);

std::uint64_t number_of(std::string_view version) {
  std::uint64_t number = 0;
  std::from_chars(version.data(), version.data() + version.size(), number);
  return number;
}

bool is_over(const Value& migration) {
  return find_condition(migration, "Succeeded")["status"].as_string() == "True" ||
         find_condition(migration, "Failed")["status"].as_string() == "True";
}

class StorageMigrator : public Controller {
 public:
  explicit StorageMigrator(Environment& environment)
      : environment_(environment),
        migrations_(environment.informers.of(kMigrations)),
        loop_(
            environment, "storage-migrations",
            [this](const std::string& key) { return reconcile(key); }, 1) {
    loop_.follow(migrations_);
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto found = migrations_.get(key);
    if (!found || is_deleting(*found) || is_over(*found)) {
      anew_.erase(key);
      return done();
    }
    Value migration = *found;
    const Value& resource = migration["spec"]["resource"];
    const auto served = serving(resource);
    if (!served) {
      const auto made = parse_rfc3339(migration["metadata"]["creationTimestamp"].as_string());
      if (made.ok() && environment_.runtime.clock.now() - *made < kMayAppear)
        return WorkOutcome::again_after(kLookAgain);
      return fail(migration, "unable to obtain GVR from discovery");
    }
    if (!served->can("patch") || !served->can("list"))
      return fail(migration, "the resource cannot be listed and patched");
    if (migration["status"]["resourceVersion"].as_string().empty()) {
      DIBS_TRY(const std::string version, version_now(*served));
      migration.mut("status").set("resourceVersion", version);
      return tell(migration, "Running", "MigrationRunning", "Migration is running");
    }
    return migrate(key, migration, *served);
  }

  Result<std::string> version_now(const ServedResource& served) {
    client::ListOptions first;
    first.limit = 1;
    DIBS_TRY(const client::List list, environment_.client.list_page(served.gvr, "", first));
    return list.resource_version;
  }

  std::optional<ServedResource> serving(const Value& resource) {
    const std::string_view group = resource["group"].as_string();
    const std::string_view plural = resource["resource"].as_string();
    if (auto served = environment_.discovery.find(group, plural)) return served;
    // What was defined since.
    if (!environment_.discovery.refresh(environment_.client).ok()) return std::nullopt;
    return environment_.discovery.find(group, plural);
  }

  Result<WorkOutcome> migrate(const std::string& key, Value& migration,
                              const ServedResource& served) {
    std::uint64_t began = number_of(migration["status"]["resourceVersion"].as_string());
    if (const auto anew = anew_.find(key); anew != anew_.end())
      began = std::max(began, anew->second);
    client::ListOptions all;
    all.metadata_only = true;
    DIBS_TRY(const client::List list, environment_.client.list(served.gvr, "", all));
    client::WriteOptions how;
    how.field_manager = kManager;
    for (const Value& object : list.items) {
      const std::string_view version = object["metadata"]["resourceVersion"].as_string();
      if (number_of(version) > began) continue;
      // At this version: who writes it meanwhile has done the work.
      const Value patch =
          Value::object({{"metadata", Value::object({{"resourceVersion", version}})}});
      const auto written = environment_.client.patch(
          served.gvr, namespace_of(object), name_of(object), client::PatchType::merge, patch, how);
      if (written.ok() || is_gone(written.error()) || written.error().code() == Code::conflict)
        continue;
      if (is_for_now(written.error())) return written.error();
      return fail(migration, written.error().message());
    }
    DIBS_TRY(const bool complete, tell_definition(served, began));
    if (!complete) {
      DIBS_TRY(const std::string version, version_now(served));
      anew_[key] = number_of(version);
      return WorkOutcome::again_after(kLookAgain);
    }
    return tell(migration, "Succeeded", "StorageVersionMigrationSucceeded", "Migration completed");
  }

  static bool is_for_now(const Error& error) {
    return error.code() == Code::timeout || error.code() == Code::unavailable ||
           error.code() == Code::too_many_requests || error.code() == Code::internal;
  }

  /// Nothing is stored in the versions before any more. False: nobody knows, since the definition
  /// was changed after `began`, and what had been written in between was left as it is.
  Result<bool> tell_definition(const ServedResource& served, std::uint64_t began) {
    const std::string name = cat(served.gvr.resource, ".", served.gvr.group);
    const auto definition = environment_.client.get(kDefinitions, "", name);
    if (!definition.ok())
      return definition.error().code() == Code::not_found ? Result<bool>(true) : definition.error();
    for (const Value& version : (*definition)["spec"]["versions"].items()) {
      if (!version["storage"].as_bool()) continue;
      const Value stored = Value::array({version["name"]});
      if ((*definition)["status"]["storedVersions"] == stored) return true;
      const Value& changed = (*definition)["metadata"]["resourceVersion"];
      if (number_of(changed.as_string()) > began) return false;
      client::WriteOptions how;
      how.subresource = "status";
      const Value patch =
          Value::object({{"metadata", Value::object({{"resourceVersion", changed}})},
                         {"status", Value::object({{"storedVersions", stored}})}});
      const auto written =
          environment_.client.patch(kDefinitions, "", name, client::PatchType::merge, patch, how);
      return written.ok() ? Result<bool>(true) : written.error();
    }
    return true;
  }

  Result<WorkOutcome> fail(Value& migration, std::string_view why) {
    return tell(migration, "Failed", "StorageVersionMigrationFailed",
                cat("migration encountered unhandled error: ", why));
  }

  Result<WorkOutcome> tell(Value& migration, std::string_view type, std::string_view reason,
                           std::string_view message) {
    Value conditions = Value::array();
    for (const Value& condition : migration["status"]["conditions"].items()) {
      if (condition["type"].as_string() != type) conditions.push(condition);
    }
    conditions.push(
        Value::object({{"type", type},
                       {"status", "True"},
                       {"lastTransitionTime", format_rfc3339(environment_.runtime.clock.now())},
                       {"reason", reason},
                       {"message", message}}));
    migration.mut("status").set("conditions", std::move(conditions));
    const auto written = environment_.client.update_status(kMigrations, "", migration);
    if (written.ok() || is_gone(written.error()) || written.error().code() == Code::conflict)
      return done();
    return written.error();
  }

  Environment& environment_;
  client::Informer& migrations_;
  /// When those began anew that had to. status.resourceVersion stays what it was first, as
  /// validation has it; a process that does not know this finds out again.
  std::map<std::string, std::uint64_t> anew_;  // of the loop, which is one thread at a time
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_storage_migrator(Environment& environment) {
  if (!environment.discovery.serves("storagemigration.k8s.io", "storageversionmigrations"))
    return nullptr;
  return std::make_unique<StorageMigrator>(environment);
}

}  // namespace dibs::controllers
