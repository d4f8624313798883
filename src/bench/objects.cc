#include "bench/objects.h"

#include <algorithm>
#include <numeric>

#include "alloc/search.h"
#include "base/finalizers.h"
#include "base/strings.h"
#include "bench/load.h"
#include "bench/template.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "runtime/files.h"

namespace dibs::bench {
namespace {

using json::Value;

const client::Gvr kNodes = {"", "v1", "nodes"};
const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
const client::Gvr kSlices = {"resource.k8s.io", "v1", "resourceslices"};
const client::Gvr kClasses = {"resource.k8s.io", "v1", "deviceclasses"};

}  // namespace

Result<Bodies> BenchObjects::fill_text(std::string_view text, const Value& params,
                                       std::size_t count) {
  DIBS_TRY(const TextTemplate pattern, TextTemplate::parse(text));
  const std::size_t texts = pattern.mentions("Index") ? count : std::min<std::size_t>(count, 1);
  Bodies made;
  made.texts.reserve(texts);
  Value data = params;
  for (std::size_t i = 0; i < texts; ++i) {
    data.set("Index", Value(i));
    data.set("Count", Value(count));
    DIBS_TRY(const std::string filled, pattern.fill(data));
    DIBS_TRY(const Value object, json::parse_yaml(filled));
    if (i == 0) {
      made.first = object;
      made.named = object["metadata"]["name"].is_string();
    }
    made.texts.push_back(json::write(object));
  }
  return made;
}

Result<Bodies> BenchObjects::fill(const std::string& path, const Value& params, std::size_t count) {
  DIBS_TRY(const std::string text, runtime::system_files().read(cat(folder_, "/", path)));
  auto made = fill_text(text, params, count);
  if (!made.ok()) return made.error().within(path);
  return made;
}

Result<std::string> BenchObjects::path_for(const Value& object, const std::string& name_space) {
  const std::string version = object["apiVersion"].str();
  const std::string_view kind = object["kind"].as_string();
  const bool core = version.find('/') == std::string::npos;
  const std::string root = cat(core ? "/api/" : "/apis/", version);
  if (!served_.contains(root)) {
    auto list = cluster_.client().call(client::make_request("GET", root));
    if (!list.ok() && list.error().code() != Code::not_found) return list.error();
    served_[root] = list.ok() ? *list : Value();
  }
  for (const Value& resource : served_[root]["resources"].items()) {
    const std::string_view name = resource["name"].as_string();
    if (resource["kind"].as_string() != kind || name.find('/') != std::string_view::npos) continue;
    if (!resource["namespaced"].as_bool()) return cat(root, "/", name);
    return cat(root, "/namespaces/", name_space.empty() ? "default" : name_space, "/", name);
  }
  return Error::not_found(cat("this server does not serve ", kind, " of ", version));
}

Result<> BenchObjects::create(const Bodies& bodies, std::size_t count,
                              const std::string& name_space) {
  if (count == 0) return success();
  DIBS_TRY(const std::string path, path_for(bodies.first, name_space));
  return send_many(cluster_.client(), count, window_,
                   [&](std::size_t i) { return body_request("POST", path, bodies.at(i)); });
}

Result<> BenchObjects::open_nodes() {
  DIBS_TRY(const client::List nodes, cluster_.client().list(kNodes, ""));
  std::vector<std::string> shut;
  for (const Value& node : nodes.items) {
    if (!node["spec"]["taints"].empty()) shut.push_back(node["metadata"]["name"].str());
  }
  return send_many(cluster_.client(), shut.size(), window_, [&](std::size_t i) {
    return client::patch_request(kNodes, "", shut[i], client::PatchType::merge,
                                 Value::object({{"spec", Value::object({{"taints", nullptr}})}}));
  });
}

Result<> BenchObjects::make_namespace(const std::string& name) {
  if (name.empty() || name == "default") return success();
  auto made =
      cluster_.client().create({"", "v1", "namespaces"}, "",
                               Value::object({{"apiVersion", "v1"},
                                              {"kind", "Namespace"},
                                              {"metadata", Value::object({{"name", name}})}}));
  if (!made.ok() && made.error().code() != Code::already_exists) return made.error();
  return success();
}

Result<> BenchObjects::publish(const std::string& driver, const std::string& node_prefix,
                               std::size_t devices) {
  DIBS_TRY(const client::List nodes, cluster_.client().list(kNodes, ""));
  Value list = Value::array();
  for (std::size_t i = 0; i < devices; ++i) {
    list.push(Value::object({{"name", cat("instance-", i)}}));
  }
  Bodies bodies;
  for (const Value& node : nodes.items) {
    const std::string name = node["metadata"]["name"].str();
    if (!name.starts_with(node_prefix)) continue;
    const Value slice =
        Value::object({{"apiVersion", "resource.k8s.io/v1"},
                       {"kind", "ResourceSlice"},
                       {"metadata", Value::object({{"name", cat(name, "-", driver)}})},
                       {"spec", Value::object({{"driver", driver},
                                               {"nodeName", name},
                                               {"pool", Value::object({{"name", name},
                                                                       {"generation", 1},
                                                                       {"resourceSliceCount", 1}})},
                                               {"devices", list}})}});
    bodies.first = slice;
    bodies.texts.push_back(json::write(slice));
  }
  return create(bodies, bodies.texts.size(), "");
}

Result<> BenchObjects::allocate_claims(const std::string& name_space) {
  client::Client& client = cluster_.client();
  DIBS_TRY(const client::List node_list, client.list(kNodes, ""));
  DIBS_TRY(const client::List slices, client.list(kSlices, ""));
  DIBS_TRY(const client::List class_list, client.list(kClasses, ""));
  DIBS_TRY(client::List claims, client.list(kClaims, ""));
  alloc::Inventory inventory(cluster_.features());
  for (const Value& slice : slices.items) {
    inventory.put(slice["metadata"]["name"].as_string(), slice);
  }
  for (const Value& claim : claims.items) {
    if (claim["status"]["allocation"].is_object()) inventory.take(claim["status"]["allocation"]);
  }
  std::map<std::string, std::shared_ptr<const alloc::DeviceClass>, std::less<>> classes;
  for (const Value& object : class_list.items) {
    classes[object["metadata"]["name"].str()] =
        std::make_shared<const alloc::DeviceClass>(alloc::DeviceClass::read(object));
  }
  std::vector<alloc::Node> nodes;
  for (const Value& node : node_list.items) nodes.push_back(alloc::Node::read(node));
  // Spread as by chance, but the same in every run: a step without a common divisor.
  std::size_t step = nodes.size() / 2 + 1;
  while (nodes.size() > 1 && std::gcd(step, nodes.size()) != 1) ++step;
  std::size_t place = 0;

  std::vector<Value> allocated;
  for (Value& claim : claims.items) {
    if (claim["metadata"]["namespace"].as_string() != name_space) continue;
    if (claim["status"]["allocation"].is_object()) continue;
    const auto demand = alloc::Demand::prepare(
        inventory, {std::make_shared<const alloc::Claim>(alloc::Claim::read(claim))},
        [&](std::string_view name) {
          const auto found = classes.find(name);
          return found != classes.end() ? found->second : nullptr;
        });
    bool found = false;
    for (std::size_t tries = 0; tries < nodes.size() && !found; ++tries) {
      place = (place + step) % nodes.size();
      alloc::Outcome outcome = alloc::allocate(inventory, nodes[place], demand, [this] {
        return runtime::make_uuid(cluster_.runtime().random);
      });
      if (outcome.answer != alloc::Answer::allocated) continue;
      found = true;
      inventory.take(outcome.allocations[0]);
      claim.mut("metadata").set("finalizers", Value::array({kClaimFinalizer}));
      claim.mut("status").set("allocation", outcome.allocations[0]);
      allocated.push_back(claim);
    }
    if (!found) {
      return Error::internal(cat("claim ", client::key_of(claim), " fits on no node"));
    }
  }
  const auto path = [&](std::size_t i, std::string_view sub) {
    return client::path_of(kClaims, name_space, allocated[i]["metadata"]["name"].as_string(), sub);
  };
  // The finalizer cannot be written with the status.
  DIBS_CHECK(send_many(
      client, allocated.size(), window_,
      [&](std::size_t i) { return body_request("PUT", path(i, ""), json::write(allocated[i])); },
      [&](std::size_t i, const client::Response& response) {
        auto answer = json::parse(response.body);
        if (!answer.ok()) return;
        Value next = *answer;
        next.set("status", allocated[i]["status"]);
        allocated[i] = std::move(next);
      }));
  return send_many(client, allocated.size(), window_, [&](std::size_t i) {
    return body_request("PUT", path(i, "status"), json::write(allocated[i]));
  });
}

}  // namespace dibs::bench
