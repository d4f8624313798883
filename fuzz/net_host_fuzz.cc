// What a node is told of itself: recorded links, bytes of netlink, a configuration of pools, a
// report and a handle. What is reported reads back, devices have names that an API takes, and no
// function belongs to two pools or is granted twice.
#include <set>

#include "base/interface_name.h"
#include "drivers/net/fit/fit.h"
#include "drivers/net/host/facts.h"
#include "drivers/net/host/slice_devices.h"
#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "json/parse.h"
#include "runtime/runtime.h"

namespace dibs::fuzz {
namespace {

using namespace drivers::net;

class GivenLinks : public Links {
 public:
  explicit GivenLinks(LinkFacts facts) : facts_(std::move(facts)) {}
  Result<LinkFacts> read() override { return facts_; }
  bool changed() override { return false; }

 private:
  LinkFacts facts_;
};

class NoClock : public runtime::Clock {
 public:
  Time now() const override { return Time::from_seconds(1'700'000'000); }
  Duration steady() const override { return Duration(0); }
};

void check_pools(const NodeState& state) {
  std::set<std::string> owned;
  for (const auto& pool : state.pools) {
    if (pool.kind != PoolKind::sriov_vf) continue;
    for (const auto& address : pool.devices) {
      require(owned.insert(address).second, "a function is in one pool");
    }
  }
}

void check_grant(const NodeState& state, const Used& used) {
  MultusConfig config;
  config.cni_type = "sriov";
  if (!state.pools.empty()) config.resource_name = state.pools.front().resource_name;
  ClaimParameter parameter;
  for (const auto& pool : state.pools) parameter.resources[pool.resource_name] = 2;
  const auto grant =
      fit(&state, {{config, "net1"}, {config, "net2"}}, parameter, used, state.observed);
  if (!grant) return;
  std::set<std::string> given;
  for (const auto& [name, ids] : grant->resources) {
    const ResourcePool* pool = state.pool(name);
    require(pool != nullptr, "what is granted is of a pool");
    if (pool->kind != PoolKind::sriov_vf) continue;
    for (const auto& id : ids) {
      require(given.insert(id).second, "a function is granted once");
      require(used.vfs.count(id) == 0, "and to nobody else");
    }
  }
  const auto read = parse_handle(handle_of(*grant));
  require(read.ok() && *read == *grant, "a handle reads back");
}

void check_state(const NodeState& state, const Used& used) {
  const auto read = parse_node_state(to_object(state, ""));
  require(read.ok() && same_facts(*read, state), "a report reads back");
  const auto devices = slice_devices(state, {}, used, {.include_virtual = {"*"}});
  std::set<std::string> names;
  for (const auto& device : devices) {
    const std::string name = device.object()["name"].str();
    require(names.insert(name).second, "names of devices differ");
    require(find_device(state, name).has_value(), "and lead back to what they are");
    for (const auto& [key, value] : device.object()["attributes"].members()) {
      // Names and addresses are as long as their sources let them be.
      const bool given = key == "name" || key == "pf" || key == "pciAddress" ||
                         key == "resourceName" || key.find('/') != std::string_view::npos;
      require(given || value["string"].as_string().size() <= 64, "attributes are short enough");
    }
  }
}

}  // namespace

int fuzz_net_host(const std::uint8_t* data, std::size_t size) {
  Texts texts(data, size);
  const auto recorded = parse_recorded_links(texts.next());
  const auto pools = parse_pools_config(texts.next());
  const auto report = json::parse(texts.next());
  const auto held = parse_handle(texts.next());
  const std::string_view bytes = texts.rest();

  LinkFacts facts;
  if (recorded) facts = *recorded;
  read_netlink_messages({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, facts);
  for (const auto& link : facts.links) require(is_interface_name(link.name), "names lead nowhere");

  Used used;
  if (held) used.add(*held);
  FactsOptions options;
  options.node_name = "node-a";
  options.roots = {"/nonexistent", "/nonexistent"};
  if (pools) options.pools = *pools;
  NoClock clock;
  HostFacts host(std::make_unique<GivenLinks>(std::move(facts)), clock, options);
  const auto seen = host.read();
  require(seen.ok(), "links are enough");
  check_state(*seen, used);

  auto state = report ? parse_node_state(*report) : Result<NodeState>(Error::invalid(""));
  if (!state) return 0;
  if (pools) state->pools = pools_of(*pools, state->interfaces);
  check_pools(*state);
  check_grant(*state, used);
  // An observed time is kept to the second.
  check_state(*state, used);
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_net_host)
