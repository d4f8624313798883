#include "drivers/net/control/networks.h"

#include "base/log.h"
#include "base/strings.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr const char* kByDefinition = "definition";

/// "namespace/name" of the NetworkAttachmentDefinition that a SpiderMultusConfig makes.
std::vector<std::string> definition_of(const Value& config) {
  const auto named = config["metadata"]["annotations"][std::string(kDefinitionName)].as_string();
  return {client::key_of(client::namespace_of(config),
                         named.empty() ? client::name_of(config) : named)};
}

client::InformerHandlers on_change(const std::function<void()>& changed) {
  if (!changed) return {};
  client::InformerHandlers handlers;
  handlers.added = [changed](const Value&, bool initial) {
    if (!initial) changed();
  };
  handlers.updated = [changed](const Value&, const Value&) { changed(); };
  handlers.removed = [changed](const Value&) { changed(); };
  return handlers;
}

}  // namespace

Networks::Networks(client::Client& api, runtime::Runtime& runtime, std::function<void()> changed)
    : configs_(api, runtime, {.gvr = kMultusConfigs}),
      definitions_(api, runtime, {.gvr = kNetAttachDefs}) {
  configs_.add_index(kByDefinition, definition_of);
  for (auto* informer : {&configs_, &definitions_}) {
    informer->add_handler(on_change(changed));
    informer->start();
  }
}

void Networks::stop() {
  configs_.stop();
  definitions_.stop();
}

bool Networks::synced() const { return configs_.synced() && definitions_.synced(); }

Result<MultusConfig> Networks::config(std::string_view key) const {
  if (const auto found = configs_.get(std::string(key))) {
    auto read = parse_multus_config(*found);
    if (!read) return read.error().within(cat("SpiderMultusConfig ", key));
    return read;
  }
  const auto definition = definitions_.get(std::string(key));
  if (!definition) return Error::not_found(cat("there is no SpiderMultusConfig ", key));
  auto read = config_of_definition(*definition);
  if (!read) return read.error().within(cat("NetworkAttachmentDefinition ", key));
  return read;
}

Result<MultusConfig> Networks::definition(std::string_view key) const {
  const auto made_by = configs_.by_index(kByDefinition, std::string(key));
  if (!made_by.empty()) return config(client::key_of(made_by.front()));
  const auto found = definitions_.get(std::string(key));
  if (!found) {
    return Error::not_found(
        cat("there is no NetworkAttachmentDefinition or SpiderMultusConfig ", key));
  }
  auto read = config_of_definition(*found);
  if (!read) return read.error().within(cat("NetworkAttachmentDefinition ", key));
  return read;
}

std::vector<MultusConfig> Networks::all() const {
  std::vector<MultusConfig> out;
  for (const Value& object : configs_.list()) {
    // A wrong one has an event of the reconciler's.
    if (auto read = parse_multus_config(object)) out.push_back(std::move(read).value());
  }
  return out;
}

NodeStates::NodeStates(client::Client& api, runtime::Runtime& runtime,
                       std::function<void()> changed)
    : informer_(api, runtime, {.gvr = kNodeStates}) {
  client::InformerHandlers handlers;
  handlers.added = [this, changed](const Value& object, bool initial) {
    put(object);
    if (changed && !initial) changed();
  };
  handlers.updated = [this, changed](const Value& before, const Value& after) {
    const auto old = get(std::string(client::name_of(before)));
    put(after);
    const auto now = get(std::string(client::name_of(after)));
    // A heartbeat changes nothing.
    if (changed && !(old && now && same_facts(*old, *now))) changed();
  };
  handlers.removed = [this, changed](const Value& object) {
    {
      const MutexLock lock(mutex_);
      states_.erase(std::string(client::name_of(object)));
    }
    if (changed) changed();
  };
  informer_.add_handler(std::move(handlers));
  informer_.start();
}

void NodeStates::stop() { informer_.stop(); }

bool NodeStates::synced() const { return informer_.synced(); }

void NodeStates::put(const Value& object) {
  const std::string name(client::name_of(object));
  auto read = parse_node_state(object);
  if (!read)
    log::warn("report of a node cannot be read", {{"node", name}, {"error", read.error()}});
  const MutexLock lock(mutex_);
  if (read) {
    states_[name] = std::make_shared<const NodeState>(std::move(read).value());
  } else {
    states_.erase(name);
  }
}

std::shared_ptr<const NodeState> NodeStates::get(const std::string& node) const {
  const MutexLock lock(mutex_);
  const auto found = states_.find(node);
  return found == states_.end() ? nullptr : found->second;
}

std::vector<std::string> NodeStates::names() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [name, state] : states_) out.push_back(name);
  return out;
}

}  // namespace dibs::drivers::net
