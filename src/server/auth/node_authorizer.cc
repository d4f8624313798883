#include "server/auth/node_authorizer.h"

#include <tuple>

#include "base/strings.h"
#include "server/auth/bootstrap_roles.h"
#include "server/auth/pod_references.h"

namespace dibs::server::auth {
namespace {

constexpr std::string_view kNodePrefix = "system:node:";
constexpr std::string_view kNodeGroup = "system:nodes";
constexpr std::string_view kLeaseNamespace = "kube-node-lease";
constexpr int kClaimGraphSince = 28;

Decision allow() { return {true, ""}; }
Decision no_opinion(std::string reason = {}) { return {false, std::move(reason)}; }

std::string id_of(std::string_view resource, std::string_view name_space, std::string_view name) {
  return cat(resource, '/', name_space, '/', name);
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> texts) {
  for (std::string_view one : texts) {
    if (one == text) return true;
  }
  return false;
}

Decision no_relationship(const std::string& node) {
  return no_opinion(cat("no relationship found between node '", node, "' and this object"));
}

/// The selector demands that the field be the value.
bool selects(std::string_view selector, std::string_view field, std::string_view value) {
  for (std::string_view part : split(selector, ',')) {
    std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || part[equals - 1] == '!') continue;
    std::string_view wanted = part.substr(equals + 1);
    if (wanted.starts_with('=')) wanted.remove_prefix(1);
    if (trim(part.substr(0, equals)) == field && trim(wanted) == value) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> node_identity(const UserInfo& user) {
  if (!user.name.starts_with(kNodePrefix) || !user.in_group(kNodeGroup)) return std::nullopt;
  return user.name.substr(kNodePrefix.size());
}

bool may_have_lost_a_pod(const UserInfo& user, std::string_view resource,
                         std::string_view refusal) {
  if (!node_identity(user)) return false;
  return is_one_of(resource, {"pods", "podcertificaterequests"}) ||
         refusal.find("no relationship found") != std::string_view::npos;
}

NodeAuthorizer::NodeAuthorizer(int release) : claims_by_graph_(release >= kClaimGraphSince) {
  for (const Value& object : bootstrap_roles()) {
    if (object["kind"].as_string() == "ClusterRole" &&
        object["metadata"]["name"].as_string() == "system:node") {
      rules_ = rules_of(object);
    }
  }
}

void NodeAuthorizer::upsert(const Value& object) {
  std::string_view kind = object["kind"].as_string();
  const Value& metadata = object["metadata"];
  const WriterLock lock(mutex_);
  if (kind == "Pod") {
    put_pod(object);
  } else if (kind == "PersistentVolume") {
    put_volume(object);
  } else if (kind == "VolumeAttachment" || kind == "ResourceSlice" ||
             kind == "PodCertificateRequest") {
    std::string_view resource = kind == "VolumeAttachment" ? "volumeattachments"
                                : kind == "ResourceSlice"  ? "resourceslices"
                                                           : "podcertificaterequests";
    // Slices of the classic model have no spec.
    const Value& node =
        object.contains("nodeName") ? object["nodeName"] : object["spec"]["nodeName"];
    put_owned(id_of(resource, metadata["namespace"].as_string(), metadata["name"].as_string()),
              node.as_string());
  }
}

void NodeAuthorizer::remove(std::string_view kind, std::string_view name_space,
                            std::string_view name) {
  const WriterLock lock(mutex_);
  if (kind == "Pod") {
    drop_pod(cat(name_space, '/', name));
  } else if (kind == "PersistentVolume") {
    drop_volume(std::string(name));
  } else if (kind == "VolumeAttachment") {
    drop_owned(id_of("volumeattachments", name_space, name));
  } else if (kind == "ResourceSlice") {
    drop_owned(id_of("resourceslices", name_space, name));
  } else if (kind == "PodCertificateRequest") {
    drop_owned(id_of("podcertificaterequests", name_space, name));
  }
}

NodeAuthorizer::NodeName NodeAuthorizer::hold_name(std::string_view node) {
  auto& held = *node_names_.try_emplace(std::string(node), 0).first;
  ++held.second;
  return &held;
}

void NodeAuthorizer::drop_name(NodeName node) {
  if (--node->second > 0) return;
  // By iterator: the key is in what goes.
  node_names_.erase(node_names_.find(node->first));
}

void NodeAuthorizer::put_owned(Id id, std::string_view node) {
  drop_owned(id);
  if (!node.empty()) node_of_.emplace(std::move(id), hold_name(node));
}

void NodeAuthorizer::drop_owned(const Id& id) {
  auto found = node_of_.find(id);
  if (found == node_of_.end()) return;
  drop_name(found->second);
  node_of_.erase(found);
}

void NodeAuthorizer::put_pod(const Value& pod) {
  const Value& metadata = pod["metadata"];
  std::string_view space = metadata["namespace"].as_string();
  std::string key = cat(space, '/', metadata["name"].as_string());
  drop_pod(key);
  std::string_view node = pod["spec"]["nodeName"].as_string();
  if (node.empty()) return;
  Pod made;
  made.node = hold_name(node);
  // A node may say what it likes about pods of its own; that must not open other objects to it.
  if (!is_mirror_pod(pod)) {
    visit_references(pod, [&](std::string_view resource, std::string_view name)
                              DIBS_REQUIRES(mutex_) { need(made, id_of(resource, space, name)); });
  }
  made.needs.shrink_to_fit();
  pods_.emplace(std::move(key), std::move(made));
}

void NodeAuthorizer::drop_pod(const std::string& key) {
  auto found = pods_.find(key);
  if (found == pods_.end()) return;
  const Pod& pod = found->second;
  for (NeededObject* object : pod.needs) let_go(*object, pod.node);
  drop_name(pod.node);
  pods_.erase(found);
}

void NodeAuthorizer::need(Pod& pod, Id id) {
  NeededObject& object = *needed_by_.try_emplace(std::move(id)).first;
  pod.needs.push_back(&object);
  Users& users = object.second;
  if (users.pods == 0) users.node = pod.node;
  if (users.node == pod.node) {
    ++users.pods;
    return;
  }
  if (users.others == nullptr) {
    users.others = std::make_unique<std::unordered_map<NodeName, std::uint32_t>>();
  }
  ++(*users.others)[pod.node];
}

void NodeAuthorizer::let_go(NeededObject& object, NodeName node) {
  Users& users = object.second;
  if (users.node == node) {
    if (--users.pods > 0) return;
    if (users.others == nullptr) {
      needed_by_.erase(needed_by_.find(object.first));
      return;
    }
    std::tie(users.node, users.pods) = *users.others->begin();
    users.others->erase(users.others->begin());
  } else if (auto found = users.others->find(node); --found->second == 0) {
    users.others->erase(found);
  }
  if (users.others->empty()) users.others = nullptr;
}

void NodeAuthorizer::put_volume(const Value& volume) {
  std::string name = volume["metadata"]["name"].str();
  drop_volume(name);
  const Value& spec = volume["spec"];
  const Value& claim = spec["claimRef"];
  if (!claim.is_object()) return;
  Volume made;
  std::string_view space = claim["namespace"].as_string();
  made.claim = id_of("persistentvolumeclaims", space, claim["name"].as_string());
  auto add = [&](const Value& secret, std::string_view in) {
    if (secret.as_string().empty()) return;
    made.secrets.push_back(id_of("secrets", in.empty() ? space : in, secret.as_string()));
  };
  add(spec["azureFile"]["secretName"], spec["azureFile"]["secretNamespace"].as_string());
  for (std::string_view source :
       {"cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"}) {
    const Value& reference = spec[source]["secretRef"];
    add(reference["name"], reference["namespace"].as_string());
  }
  // Those of the controller are not for nodes.
  for (std::string_view key :
       {"nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"}) {
    const Value& reference = spec["csi"][key];
    add(reference["name"], reference["namespace"].as_string());
  }
  for (const Id& secret : made.secrets) volumes_of_secret_[secret].insert(name);
  volumes_[name] = std::move(made);
}

void NodeAuthorizer::drop_volume(const std::string& name) {
  auto found = volumes_.find(name);
  if (found == volumes_.end()) return;
  for (const Id& secret : found->second.secrets) {
    auto entry = volumes_of_secret_.find(secret);
    if (entry == volumes_of_secret_.end()) continue;
    entry->second.erase(name);
    if (entry->second.empty()) volumes_of_secret_.erase(entry);
  }
  volumes_.erase(found);
}

bool NodeAuthorizer::needs(NodeName node, const Id& id) const {
  auto found = needed_by_.find(id);
  if (found == needed_by_.end()) return false;
  const Users& users = found->second;
  return users.node == node || (users.others != nullptr && users.others->contains(node));
}

bool NodeAuthorizer::has_path(const std::string& name, const RequestAttributes& what) const {
  const ReaderLock lock(mutex_);
  // A name that nothing holds is no object's.
  auto held = node_names_.find(name);
  if (held == node_names_.end()) return false;
  NodeName node = const_cast<NodeName>(&*held);
  if (what.resource == "pods") {
    auto pod = pods_.find(cat(what.name_space, '/', what.name));
    return pod != pods_.end() && pod->second.node == node;
  }
  const Id id = id_of(what.resource, what.name_space, what.name);
  if (needs(node, id)) return true;
  if (auto own = node_of_.find(id); own != node_of_.end()) return own->second == node;
  if (what.resource == "persistentvolumes") {
    auto volume = volumes_.find(what.name);
    return volume != volumes_.end() && needs(node, volume->second.claim);
  }
  if (what.resource != "secrets") return false;
  auto named = volumes_of_secret_.find(id);
  if (named == volumes_of_secret_.end()) return false;
  for (const std::string& volume : named->second) {
    if (needs(node, volumes_.at(volume).claim)) return true;
  }
  return false;
}

Decision NodeAuthorizer::authorize_path(const std::string& node,
                                        const RequestAttributes& what) const {
  if (what.name.empty()) return no_opinion("No Object name found");
  return has_path(node, what) ? allow() : no_relationship(node);
}

Decision NodeAuthorizer::authorize_get(const std::string& node,
                                       const RequestAttributes& what) const {
  if (what.verb != "get") return no_opinion("can only get individual resources of this type");
  if (!what.subresource.empty()) return no_opinion("cannot get subresource");
  return authorize_path(node, what);
}

Decision NodeAuthorizer::authorize_read(const std::string& node,
                                        const RequestAttributes& what) const {
  if (!is_one_of(what.verb, {"get", "list", "watch"})) {
    return no_opinion("can only read resources of this type");
  }
  if (!what.subresource.empty()) return no_opinion("cannot read subresource");
  if (what.name_space.empty()) return no_opinion("can only read namespaced object of this type");
  return authorize_path(node, what);
}

Decision NodeAuthorizer::authorize_account(const std::string& node,
                                           const RequestAttributes& what) const {
  if (what.verb == "get" && what.subresource.empty()) return authorize_read(node, what);
  if (what.verb != "create" || what.name.empty()) {
    return no_opinion("can only create tokens for individual service accounts");
  }
  if (what.subresource != "token") {
    return no_opinion("can only create token subresource of serviceaccount");
  }
  return authorize_path(node, what);
}

namespace {

Decision authorize_lease(const std::string& node, const RequestAttributes& what) {
  if (!is_one_of(what.verb, {"get", "create", "update", "patch", "delete"})) {
    return no_opinion("can only get, create, update, patch, or delete a node lease");
  }
  if (what.name_space != kLeaseNamespace) {
    return no_opinion(
        cat("can only access leases in the ", quoted(kLeaseNamespace), " system namespace"));
  }
  if (what.verb != "create" && what.name != node) {
    return no_opinion("can only access node lease with the same name as the requesting node");
  }
  return allow();
}

Decision authorize_csi_node(const std::string& node, const RequestAttributes& what) {
  if (what.subresource == "status") {
    return no_opinion("CSINode status access requires CSIVolumeHealth feature");
  }
  if (!what.subresource.empty()) return no_opinion("cannot authorize CSINode subresources");
  if (!is_one_of(what.verb, {"get", "create", "update", "patch", "delete"})) {
    return no_opinion("can only get, create, update, patch, or delete a CSINode");
  }
  if (what.verb != "create" && what.name != node) {
    return no_opinion("can only access CSINode with the same name as the requesting node");
  }
  return allow();
}

}  // namespace

Decision NodeAuthorizer::authorize_slice(const std::string& node,
                                         const RequestAttributes& what) const {
  if (!what.subresource.empty()) return no_opinion("cannot authorize ResourceSlice subresources");
  if (what.verb == "create") return allow();
  if (is_one_of(what.verb, {"get", "update", "patch", "delete"})) return authorize_path(node, what);
  if (is_one_of(what.verb, {"watch", "list", "deletecollection"})) {
    const char* field = what.version == "v1alpha2" ? "nodeName" : "spec.nodeName";
    if (selects(what.field_selector, field, node)) return allow();
    return no_opinion(
        "can only list/watch/deletecollection resourceslices with nodeName field selector");
  }
  return no_opinion(
      "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, "
      "patch, delete, deletecollection");
}

Decision NodeAuthorizer::authorize_certificate(const std::string& node,
                                               const RequestAttributes& what) const {
  if (!what.subresource.empty()) {
    return no_opinion("nodes may not access the status subresource of PodCertificateRequests");
  }
  if (what.verb == "create") return allow();
  if (what.verb == "get") return authorize_path(node, what);
  if (what.verb == "list" || what.verb == "watch") {
    if (selects(what.field_selector, "spec.nodeName", node)) return allow();
    return no_opinion("can only list/watch podcertificaterequests with nodeName field selector");
  }
  return no_opinion(cat("nodes may not ", what.verb, " podcertificaterequests"));
}

namespace {

Decision authorize_node(const std::string& node, const RequestAttributes& what) {
  if (what.subresource.empty()) {
    if (is_one_of(what.verb, {"create", "update", "patch"})) return allow();
    if (is_one_of(what.verb, {"get", "list", "watch"})) {
      if (what.name == node) return allow();
      if (what.name.empty()) {
        return no_opinion(cat("node '", node, "' cannot read all nodes, only its own Node object"));
      }
      return no_opinion(
          cat("node '", node, "' cannot read '", what.name, "', only its own Node object"));
    }
  }
  if (what.subresource == "status" && is_one_of(what.verb, {"update", "patch"})) return allow();
  return no_opinion();
}

}  // namespace

Decision NodeAuthorizer::authorize_pod(const std::string& node,
                                       const RequestAttributes& what) const {
  if (what.subresource.empty()) {
    if (what.verb == "get") return authorize_get(node, what);
    if (what.verb == "list" || what.verb == "watch") {
      if (selects(what.field_selector, "spec.nodeName", node)) return allow();
      if (!what.name.empty()) return authorize_path(node, what);
      return no_opinion("can only list/watch pods with spec.nodeName field selector");
    }
    if (what.verb == "create" || what.verb == "delete") return allow();
  }
  if (what.subresource == "status" && is_one_of(what.verb, {"update", "patch"})) return allow();
  if (what.subresource == "eviction" && what.verb == "create") return allow();
  return no_opinion();
}

Decision NodeAuthorizer::authorize(const RequestAttributes& what) const {
  std::optional<std::string> node = node_identity(what.user);
  if (!node) return no_opinion();
  if (node->empty()) return no_opinion(cat("unknown node for user ", quoted(what.user.name)));
  if (what.is_resource) {
    const std::string& resource = what.resource;
    if (what.group.empty()) {
      if (resource == "secrets" || resource == "configmaps") return authorize_read(*node, what);
      if (resource == "persistentvolumeclaims" && what.subresource == "status") {
        if (!is_one_of(what.verb, {"update", "patch"})) {
          return no_opinion("can only get/update/patch this type");
        }
        return authorize_path(*node, what);
      }
      if (resource == "persistentvolumeclaims" || resource == "persistentvolumes") {
        return authorize_get(*node, what);
      }
      if (resource == "serviceaccounts") return authorize_account(*node, what);
      if (resource == "nodes") return authorize_node(*node, what);
      if (resource == "pods") return authorize_pod(*node, what);
    } else if (what.group == "resource.k8s.io") {
      if (resource == "resourceclaims" && claims_by_graph_) return authorize_get(*node, what);
      if (resource == "resourceslices") return authorize_slice(*node, what);
    } else if (what.group == "storage.k8s.io") {
      if (resource == "volumeattachments") return authorize_get(*node, what);
      if (resource == "csinodes") return authorize_csi_node(*node, what);
    } else if (what.group == "coordination.k8s.io" && resource == "leases") {
      return authorize_lease(*node, what);
    } else if (what.group == "certificates.k8s.io" && resource == "podcertificaterequests") {
      return authorize_certificate(*node, what);
    }
  }
  for (const PolicyRule& rule : rules_) {
    if (matches(rule, what)) return allow();
  }
  return no_opinion();
}

}  // namespace dibs::server::auth
