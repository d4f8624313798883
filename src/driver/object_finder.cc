#include "driver/object_finder.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::driver {
namespace {

using json::Value;

/// "ClaimParameters.cats.example.com", as kubectl prints kinds.
std::string shown(const ParameterKind& kind) {
  return kind.group.empty() ? kind.kind : cat(kind.kind, ".", kind.group);
}

/// All versions of a group, the preferred one first.
std::vector<std::string> versions_of(const Value& group) {
  std::vector<std::string> versions = {group["preferredVersion"]["version"].str()};
  for (const auto& version : group["versions"].items()) {
    if (version["version"].as_string() != versions[0]) versions.push_back(version["version"].str());
  }
  return versions;
}

}  // namespace

Result<ServedKind> ObjectFinder::discover(const ParameterKind& wanted) {
  const Error none = Error::not_found(
      cat("no matches for kind ", quoted(wanted.kind), " in group ", quoted(wanted.group)));
  std::vector<std::string> versions = {"v1"};
  if (!wanted.group.empty()) {
    // A group comes from whoever wrote the reference: it must not lead out of its place.
    if (wanted.group.find_first_of("/?%#") != std::string::npos) return none;
    auto group = api_.call(client::make_request("GET", cat("/apis/", wanted.group)));
    if (!group) return group.error().code() == Code::not_found ? none : group.error();
    versions = versions_of(*group);
  }
  for (const auto& version : versions) {
    const std::string path =
        wanted.group.empty() ? "/api/v1" : cat("/apis/", wanted.group, "/", version);
    DIBS_TRY(const Value list, api_.call(client::make_request("GET", path)));
    for (const auto& resource : list["resources"].items()) {
      const auto name = resource["name"].as_string();
      if (resource["kind"].as_string() != wanted.kind || name.find('/') != std::string::npos) {
        continue;
      }
      return ServedKind{{wanted.group, version, std::string(name)},
                        resource["namespaced"].as_bool()};
    }
  }
  return none;
}

Result<ServedKind> ObjectFinder::kind(const ParameterKind& wanted) {
  const auto key = std::make_pair(wanted.group, wanted.kind);
  {
    const MutexLock lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  DIBS_TRY(auto found, discover(wanted));
  const MutexLock lock(mutex_);
  known_[key] = found;
  return found;
}

Result<Value> ObjectFinder::get(const ParameterKind& wanted, std::string_view name_space,
                                std::string_view name) {
  DIBS_TRY(const ServedKind served, kind(wanted));
  if (served.namespaced && name_space.empty()) {
    return Error::invalid(cat(shown(wanted), " ", name, ": the reference needs a namespace"));
  }
  auto object = api_.get(served.gvr, served.namespaced ? name_space : "", name);
  if (!object && object.error().code() == Code::not_found) {
    // The definition may have gone, too, and come back as something else.
    const MutexLock lock(mutex_);
    known_.erase({wanted.group, wanted.kind});
  }
  return object;
}

Result<Value> ObjectFinder::parameters(const Value& reference, std::string_view name_space,
                                       const std::vector<ParameterKind>& kinds) {
  if (!reference.is_object()) return Value();
  const ParameterKind wanted{reference["apiGroup"].str(), reference["kind"].str()};
  const bool known = std::any_of(kinds.begin(), kinds.end(), [&](const ParameterKind& kind) {
    return kind.group == wanted.group && kind.kind == wanted.kind;
  });
  if (!known) {
    std::string taken;
    for (const auto& kind : kinds) append(taken, taken.empty() ? "" : ", ", shown(kind));
    return Error::invalid(cat("parametersRef: ", shown(wanted),
                              " is no kind of parameters of this driver, which takes ",
                              taken.empty() ? "none" : taken));
  }
  return get(wanted, name_space, reference["name"].as_string());
}

}  // namespace dibs::driver
