// Empties a namespace that is being deleted, then lets it go.
//
// Pods go first and all of them: what they use (claims, volumes, accounts) must not vanish under a
// running container. Then everything else that the server serves, custom resources included. What
// has finalizers stays until their owners let go; the conditions say what is waited for.
#include "controllers/namespaces.h"

#include "base/finalizers.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "controllers/controllers.h"

namespace dibs::controllers {
namespace {

constexpr Duration kFirstLook = std::chrono::milliseconds(50);
constexpr Duration kLongestLook = std::chrono::seconds(5);

std::string counts(const std::map<std::string, std::size_t>& map, std::string_view between) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : map) {
    parts.push_back(cat(name, between, count, " resource instances"));
  }
  return join(parts, ", ");
}

Value condition(std::string_view type, bool on, std::string_view reason, std::string_view message) {
  return Value::object({{"type", type},
                        {"status", on ? "True" : "False"},
                        {"lastTransitionTime", nullptr},
                        {"reason", reason},
                        {"message", message}});
}

class Namespaces : public Controller {
 public:
  explicit Namespaces(Environment& environment)
      : environment_(environment),
        namespaces_(environment.informers.of(kNamespaces)),
        loop_(environment, "namespace", [this](const std::string& key) { return reconcile(key); }) {
    loop_.follow(namespaces_, [this](const Value& object) {
      if (is_deleting(object)) loop_.add(std::string(name_of(object)));
    });
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& name) {
    auto read = environment_.client.get(kNamespaces, "", name);
    if (!read) {
      forget(name);
      if (is_gone(read.error())) return done();
      return read.error();
    }
    Value object = std::move(read).value();
    if (!is_deleting(object)) return done();
    if (!holds(object)) {
      forget(name);
      return done();  // others hold it
    }
    const NamespaceContents contents = empty_out(name);
    Value next = with_conditions(object, contents, environment_.runtime.clock.now());
    if (!(next["status"] == object["status"])) {
      DIBS_TRY(object, environment_.client.update_status(kNamespaces, "", next));
    }
    if (!contents.empty()) return WorkOutcome::again_after(next_look(name));
    DIBS_CHECK(let_go(std::move(object)));
    forget(name);
    return done();
  }

  static bool holds(const Value& object) {
    for (const auto& finalizer : object["spec"]["finalizers"].items()) {
      if (finalizer.as_string() == kNamespaceFinalizer) return true;
    }
    return false;
  }

  Result<> let_go(Value object) {
    Value rest = Value::array();
    for (const auto& finalizer : object["spec"]["finalizers"].items()) {
      if (finalizer.as_string() != kNamespaceFinalizer) rest.push(finalizer);
    }
    object.mut("spec").set("finalizers", rest);
    client::WriteOptions options;
    options.subresource = "finalize";
    auto written = environment_.client.update(kNamespaces, "", object, options);
    if (!written && !is_gone(written.error())) return written.error();
    return success();
  }

  NamespaceContents empty_out(const std::string& name) {
    NamespaceContents contents;
    if (auto known = environment_.discovery.refresh(environment_.client); !known) {
      contents.discovery_error = known.error().message();
      return contents;
    }
    const auto resources = environment_.discovery.resources();
    for (const auto& resource : resources) {
      if (resource.gvr.group.empty() && resource.gvr.resource == "pods") {
        empty_out(name, resource, contents);
      }
    }
    if (!contents.empty()) return contents;
    for (const auto& resource : resources) {
      const bool pods = resource.gvr.group.empty() && resource.gvr.resource == "pods";
      // The same objects are served by both groups of events.
      const bool twice = resource.gvr.group == "events.k8s.io";
      if (resource.namespaced && !pods && !twice && resource.can("list") &&
          resource.can("delete")) {
        empty_out(name, resource, contents);
      }
    }
    return contents;
  }

  void empty_out(const std::string& name, const ServedResource& resource,
                 NamespaceContents& contents) {
    auto before = environment_.client.list(resource.gvr, name);
    if (!before) return failed(before.error(), contents);
    if (before->items.empty()) return;
    client::DeleteOptions options;
    options.propagation = "Background";
    if (resource.can("deletecollection")) {
      auto removed = environment_.client.remove_collection(resource.gvr, name, {}, options);
      if (!removed) failed(removed.error(), contents);
    } else {
      for (const auto& item : before->items) {
        auto removed = environment_.client.remove(resource.gvr, name, name_of(item), options);
        if (!removed) failed(removed.error(), contents);
      }
    }
    auto after = environment_.client.list(resource.gvr, name);
    if (!after) return failed(after.error(), contents);
    if (after->items.empty()) return;
    contents.remaining[cat(resource.gvr.resource, '.', resource.gvr.group)] = after->items.size();
    for (const auto& item : after->items) {
      for (const auto& finalizer : item["metadata"]["finalizers"].items()) {
        ++contents.finalizers[finalizer.str()];
      }
    }
  }

  static void failed(const Error& error, NamespaceContents& contents) {
    // A resource that has gone in between has no contents either.
    if (is_gone(error) || error.code() == Code::method_not_allowed) return;
    contents.deletion_errors.push_back(error.message());
  }

  /// Longer each time: most contents are gone at once, some wait for a node or for a person.
  Duration next_look(const std::string& name) {
    const MutexLock lock(mutex_);
    auto& delay = looks_[name];
    delay = delay.count() == 0 ? kFirstLook : std::min(delay * 2, kLongestLook);
    return delay;
  }

  void forget(const std::string& name) {
    const MutexLock lock(mutex_);
    looks_.erase(name);
  }

  Environment& environment_;
  client::Informer& namespaces_;
  Mutex mutex_;
  std::map<std::string, Duration> looks_ DIBS_GUARDED_BY(mutex_);
  Reconciler loop_;
};

}  // namespace

Value with_conditions(Value object, const NamespaceContents& contents, Time now) {
  std::vector<Value> wanted;
  if (contents.discovery_error.empty()) {
    wanted.push_back(condition("NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered",
                               "All resources successfully discovered"));
  } else {
    wanted.push_back(condition("NamespaceDeletionDiscoveryFailure", true, "DiscoveryFailed",
                               contents.discovery_error));
  }
  wanted.push_back(condition("NamespaceDeletionGroupVersionParsingFailure", false,
                             "ParsedGroupVersions", "All legacy kube types successfully parsed"));
  if (contents.deletion_errors.empty()) {
    wanted.push_back(condition("NamespaceDeletionContentFailure", false, "ContentDeleted",
                               "All content successfully deleted, may be waiting on finalization"));
  } else {
    wanted.push_back(
        condition("NamespaceDeletionContentFailure", true, "ContentDeletionFailed",
                  cat("Failed to delete all resource types, ", contents.deletion_errors.size(),
                      " remaining: ", join(contents.deletion_errors, ", "))));
  }
  if (contents.remaining.empty()) {
    wanted.push_back(condition("NamespaceContentRemaining", false, "ContentRemoved",
                               "All content successfully removed"));
  } else {
    wanted.push_back(
        condition("NamespaceContentRemaining", true, "SomeResourcesRemain",
                  cat("Some resources are remaining: ", counts(contents.remaining, " has "))));
  }
  if (contents.finalizers.empty()) {
    wanted.push_back(condition("NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers",
                               "All content-preserving finalizers finished"));
  } else {
    wanted.push_back(condition("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain",
                               cat("Some content in the namespace has finalizers remaining: ",
                                   counts(contents.finalizers, " in "))));
  }
  Value conditions = object["status"]["conditions"];
  if (!conditions.is_array()) conditions = Value::array();
  for (Value& next : wanted) {
    std::size_t index = 0;
    while (index < conditions.size() && !(conditions[index]["type"] == next["type"])) ++index;
    const Value& before = conditions[index];
    const bool same = before["status"] == next["status"];
    next.set("lastTransitionTime",
             same ? before["lastTransitionTime"] : Value(format_rfc3339(now)));
    if (index == conditions.size()) {
      conditions.push(next);
    } else {
      conditions.mut(index) = next;
    }
  }
  object.mut("status").set("conditions", std::move(conditions));
  return object;
}

ControllerPtr make_namespace_controller(Environment& environment) {
  return std::make_unique<Namespaces>(environment);
}

}  // namespace dibs::controllers
