#include "drivers/net/ipam/endpoints.h"

#include "base/strings.h"
#include "drivers/net/ipam/catalog.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr std::string_view kFence = "ipam.spidernet.io/fence";

bool lost_race(const Error& error) {
  return error.code() == Code::conflict || error.code() == Code::already_exists ||
         error.code() == Code::not_found;
}

/// Without our finalizer and the addresses: others may hold it for longer.
Value let_go(Value object) {
  Value kept = Value::array();
  for (const auto& finalizer : object["metadata"]["finalizers"].items()) {
    if (finalizer.as_string() != kFinalizer) kept.push(finalizer);
  }
  object.mut("metadata").set("finalizers", std::move(kept));
  if (object["status"]["current"].is_object()) {
    object.mut("status").mut("current").set("ips", Value::array());
  }
  return object;
}

}  // namespace

Result<Endpoint> Endpoints::read(std::string_view name_space, std::string_view name) {
  DIBS_TRY(Value object, find_object(api_, kEndpoints, name_space, name));
  Endpoint endpoint = parse_endpoint(object);
  endpoint.name_space = name_space;
  endpoint.name = name;
  return endpoint;
}

Result<std::optional<Endpoint>> Endpoints::write(const Endpoint& endpoint, const Value& pod,
                                                 const Application& application) {
  const Value object = to_object(endpoint, pod, application);
  auto written = endpoint.object.is_object() ? api_.update(kEndpoints, endpoint.name_space, object)
                                             : api_.create(kEndpoints, endpoint.name_space, object);
  if (written) return std::optional(parse_endpoint(*written));
  // A create is not found where its namespace is gone.
  const bool lost = lost_race(written.error()) &&
                    (endpoint.object.is_object() || written.error().code() != Code::not_found);
  if (lost) return std::optional<Endpoint>();
  return written.error().within(cat("SpiderEndpoint ", endpoint.name_space, "/", endpoint.name));
}

Result<bool> Endpoints::remove(const Endpoint& endpoint) {
  Value object = endpoint.object;
  if (!endpoint.terminating()) {
    client::DeleteOptions options;
    options.uid = client::uid_of(object);
    options.resource_version = object["metadata"]["resourceVersion"].str();
    auto going = api_.remove(kEndpoints, endpoint.name_space, endpoint.name, options);
    if (!going && lost_race(going.error())) return false;
    if (!going) return going.error();
    if (!(*going)["metadata"].contains("deletionTimestamp")) return true;
    object = std::move(going).value();
  }
  auto gone = api_.update(kEndpoints, endpoint.name_space, let_go(std::move(object)));
  if (gone) return true;
  if (lost_race(gone.error())) return false;
  return gone.error();
}

Result<bool> Endpoints::fence(const Endpoint& endpoint, std::string_view mark) {
  Value object = endpoint.object;
  object.mut("metadata").mut("annotations").set(kFence, mark);
  auto written = api_.update(kEndpoints, endpoint.name_space, object);
  if (written) return true;
  if (lost_race(written.error())) return false;
  return written.error();
}

}  // namespace dibs::drivers::net
