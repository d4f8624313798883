#include "node/plugins/csi_node.h"

#include <algorithm>
#include <limits>

#include "base/strings.h"
#include "json/parse.h"
#include "json/value.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr kNodes{"", "v1", "nodes"};
const client::Gvr kCsiNodes{"storage.k8s.io", "v1", "csinodes"};
constexpr const char* kNodeIds = "csi.volume.kubernetes.io/nodeid";
constexpr int kAttempts = 5;

bool owned_by(const Value& csi_node, std::string_view uid) {
  for (const Value& owner : csi_node["metadata"]["ownerReferences"].items()) {
    if (owner["kind"].as_string() == "Node" && owner["uid"].as_string() == uid) return true;
  }
  return false;
}

Result<Value> create(client::Client& client, const std::string& node, std::string_view uid) {
  const Value owner = Value::object(
      {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", std::string(uid)}});
  return client.create(
      kCsiNodes, "",
      Value::object({{"apiVersion", "storage.k8s.io/v1"},
                     {"kind", "CSINode"},
                     {"metadata",
                      Value::object({{"name", node}, {"ownerReferences", Value::array({owner})}})},
                     {"spec", Value::object({{"drivers", Value::array()}})}}));
}

/// The CSINode of the Node that is there now.
Result<Value> current(client::Client& client, const std::string& node) {
  DIBS_TRY(const Value owner, client.get(kNodes, "", node));
  const auto uid = client::uid_of(owner);
  auto found = client.get(kCsiNodes, "", node);
  if (found && owned_by(*found, uid)) return found;
  if (found) {
    client::DeleteOptions options;
    options.uid = client::uid_of(*found);
    DIBS_CHECK(client.remove(kCsiNodes, "", node, options));
  } else if (found.error().code() != Code::not_found) {
    return found.error();
  }
  return create(client, node, uid);
}

Value entry_of(const std::string& driver, const CsiNodeInfo& info) {
  Value keys = Value::array();
  for (const auto& [key, value] : info.topology) keys.push(key);
  Value out = Value::object({{"name", driver}, {"nodeID", info.node_id}});
  out.set("topologyKeys", std::move(keys));
  if (info.max_volumes > 0) {
    const auto most =
        std::min<std::int64_t>(info.max_volumes, std::numeric_limits<std::int32_t>::max());
    out.set("allocatable", Value::object({{"count", static_cast<long long>(most)}}));
  }
  return out;
}

/// Replaces the driver's entry; null takes it away.
Result<> write_entry(client::Client& client, const std::string& node, const std::string& driver,
                     const Value& entry) {
  Error last = Error::internal("");
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto found = current(client, node);
    if (!found) {
      if (found.error().code() != Code::conflict && found.error().code() != Code::already_exists) {
        return found.error();
      }
      last = found.error();
      continue;
    }
    Value drivers = Value::array();
    bool same = entry.is_null();
    for (const Value& one : (*found)["spec"]["drivers"].items()) {
      if (one["name"].as_string() != driver) {
        drivers.push(one);
      } else {
        same = one == entry;
      }
    }
    if (same) return success();
    if (!entry.is_null()) drivers.push(entry);
    found->mut("spec").set("drivers", std::move(drivers));
    auto written = client.update(kCsiNodes, "", *found);
    if (written) return success();
    if (written.error().code() != Code::conflict) return written.error();
    last = written.error();
  }
  return last;
}

/// The names that drivers have for the node, with that of one changed; "" takes it away.
Result<> write_node(client::Client& client, const std::string& node, const std::string& driver,
                    const std::string& node_id, const Value& labels) {
  DIBS_TRY(const Value known, client.get(kNodes, "", node));
  const Value& metadata = known["metadata"];
  Value changed = Value::object();
  for (const auto& [key, value] : labels.members()) {
    const Value* there = metadata["labels"].find(key);
    if (there == nullptr) {
      changed.set(key, value);
    } else if (!(*there == value)) {
      return Error::conflict(cat("detected topology value collision: driver reported ", quoted(key),
                                 ":", quoted(value.as_string()), " but existing label is ",
                                 quoted(key), ":", quoted(there->as_string())));
    }
  }
  const std::string before = metadata["annotations"][kNodeIds].str();
  Value ids = Value::object();
  if (!before.empty()) {
    // Nobody else writes it: what cannot be read is made anew.
    if (auto read = json::parse(before); read && read->is_object()) ids = std::move(*read);
  }
  if (node_id.empty()) {
    ids.erase(driver);
  } else {
    ids.set(driver, node_id);
  }
  const std::string after = ids.empty() ? std::string() : json::write(ids);
  Value patch = Value::object();
  if (!changed.empty()) patch.set("labels", std::move(changed));
  if (after != before) {
    patch.set("annotations",
              Value::object({{kNodeIds, after.empty() ? Value(nullptr) : Value(after)}}));
  }
  if (patch.empty()) return success();
  // Another driver's name may come between reading and writing.
  patch.set("resourceVersion", metadata["resourceVersion"]);
  DIBS_CHECK(client.patch(kNodes, "", node, client::PatchType::merge,
                          Value::object({{"metadata", std::move(patch)}})));
  return success();
}

Result<> change_node(client::Client& client, const std::string& node, const std::string& driver,
                     const std::string& node_id, const Value& labels) {
  Result<> written = success();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    written = write_node(client, node, driver, node_id, labels);
    if (written || written.error().code() != Code::conflict) return written;
    if (written.error().message().starts_with("detected topology")) return written;
  }
  return written;
}

}  // namespace

Result<> ensure_csi_node(client::Client& client, const std::string& node) {
  auto there = current(client, node);
  if (there || there.error().code() == Code::already_exists) return success();
  return there.error();
}

Result<> install_csi_driver(client::Client& client, const std::string& node,
                            const std::string& driver, const CsiNodeInfo& info) {
  if (info.node_id.empty()) {
    return Error::invalid("error adding CSI driver node info: driverNodeID must not be empty");
  }
  Value labels = Value::object();
  for (const auto& [key, value] : info.topology) labels.set(key, value);
  if (auto written = change_node(client, node, driver, info.node_id, labels); !written) {
    return written.error().within("error updating Node object with CSI driver node info");
  }
  if (auto written = write_entry(client, node, driver, entry_of(driver, info)); !written) {
    return written.error().within("error updating CSINode object with CSI driver node info");
  }
  return success();
}

Result<> uninstall_csi_driver(client::Client& client, const std::string& node,
                              const std::string& driver) {
  DIBS_CHECK(write_entry(client, node, driver, Value()));
  return change_node(client, node, driver, "", Value::object());
}

}  // namespace dibs::node
