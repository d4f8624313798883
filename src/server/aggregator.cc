#include "server/aggregator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"
#include "server/audit.h"
#include "server/auth/user.h"
#include "server/cluster_address.h"
#include "server/node_client.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::string_view kManaged = "kube-aggregator.kubernetes.io/automanaged";
/// Where a Service leads is looked up this often, and asked when it has changed, or else:
constexpr Duration kTick = std::chrono::seconds(1);
constexpr Duration kAskAgain = std::chrono::seconds(30);
constexpr Duration kTimeout = std::chrono::seconds(5);
constexpr int kMostPlaces = 5;          // of a Service, in one check
constexpr std::size_t kMostSteps = 32;  // between two attempts at somebody who fails, in ticks

bool is_remote(const Value& api_service) { return api_service["spec"]["service"].is_object(); }

/// Whether what is known of the server that one of them names holds for the other's: priorities do
/// not matter.
bool is_same_server(const Value& a, const Value& b) {
  for (const char* field : {"group", "version", "service", "caBundle", "insecureSkipTLSVerify"}) {
    if (a[field] != b[field]) return false;
  }
  return true;
}

const Value& available_of(const Value& api_service) {
  for (const Value& condition : api_service["status"]["conditions"].items()) {
    if (condition["type"].as_string() == "Available") return condition;
  }
  return json::null_value();
}

std::string discovery_path(const Value& spec) {
  const std::string_view group = spec["group"].as_string();
  return group.empty() ? cat("/api/", spec["version"].as_string())
                       : cat("/apis/", group, "/", spec["version"].as_string());
}

bool is_ready(const Value& endpoint) {
  const Value& ready = endpoint["conditions"]["ready"];
  return ready.is_null() || ready.as_bool();
}

/// As a header can carry it.
std::string escaped_key(std::string_view key) {
  constexpr std::string_view kMarks = "!#$&'*+-.^_`|~";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : key) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kMarks.find(c) != std::string_view::npos;
    if (plain) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

net::Request own_question(std::string target, std::string_view accept) {
  auth::UserInfo user;
  user.name = "system:kube-aggregator";
  user.groups = {std::string(auth::kMasters)};
  net::Request request;
  request.method = "GET";
  request.target = std::move(target);
  request.headers.add("Accept", std::string(accept));
  return in_name_of(user, request);
}

/// Of a document that a server may or may not have.
Value document_of(Result<net::Response> response) {
  if (!response.ok() || response->status != 200) return nullptr;
  auto parsed = json::parse(response->body);
  return parsed.ok() && parsed->is_object() ? std::move(parsed).value() : Value();
}

/// What is wrong with the answer to a check; "" where it is good.
std::string fault_of(const Result<net::Response>& response, const ExtensionPlace& place,
                     std::string_view path) {
  const bool v6 = place.host.find(':') != std::string::npos;
  const std::string url =
      cat("https://", v6 ? "[" : "", place.host, v6 ? "]" : "", ":", place.port, path);
  const std::string opening = cat("failing or missing response from ", url, ": ");
  if (!response.ok()) return cat(opening, response.error().message());
  if (response->status >= 200 && response->status < 300) return {};
  return cat(opening, "bad status from ", url, ": ", response->status);
}

/// True where both add the same to OpenAPI.
bool have_same_documents(const Extensions& a, const Extensions& b) {
  return std::equal(a.all.begin(), a.all.end(), b.all.begin(), b.all.end(),
                    [](const ExtensionPtr& one, const ExtensionPtr& other) {
                      return one == other ||
                             (one->group == other->group && one->version == other->version &&
                              one->openapi_v3 == other->openapi_v3 &&
                              one->openapi_v2 == other->openapi_v2);
                    });
}

net::Response text(int status, std::string_view words) {
  return text_response(status, cat(words, "\n"));
}

bool asks_to_upgrade(const net::Request& request) {
  return net::has_token(request.headers.get("Connection"), "upgrade");
}

/// What the client is told in place of an answer that must not reach him; nothing where it may. A
/// client that follows a redirect would show its credentials to whomever the extension names, and
/// behind a change of protocols that he did not ask for requests of others would be hidden.
std::optional<net::Response> not_permitted(const net::Request& request, const net::Response& head) {
  if (head.status == 101) {
    const std::string_view wanted =
        asks_to_upgrade(request) ? request.headers.get("Upgrade") : std::string_view();
    const std::string_view given = head.headers.get("Upgrade");
    if (!wanted.empty() && equals_ignoring_case(wanted, given)) return std::nullopt;
    return text(503, cat("backend tried to switch protocol ", quoted(given), " when ",
                         quoted(wanted), " was requested"));
  }
  if (asks_to_upgrade(request) && head.status < 400)
    return text(503, cat("invalid upgrade response: status code ", head.status));
  if (head.status / 100 == 3 && !head.headers.get("Location").empty()) {
    return text_response(502,
                         "the backend attempted to redirect this request, which is not permitted");
  }
  return std::nullopt;
}

}  // namespace

struct Aggregator::Entry {
  Value object;
  Extension shown;  // what is known of the server
  bool checking = false;
  std::size_t failures = 0;
  std::size_t waits = 0;  // ticks until it is asked again
  Duration asked = Duration::min();
};

net::Request in_name_of(const auth::UserInfo& user, const net::Request& request) {
  net::Request out = passed_on(request, request.target);
  net::Headers headers;
  for (const auto& [name, value] : out.headers.fields()) {
    if (!to_lower(name).starts_with("x-remote-")) headers.add(name, value);
  }
  headers.add("X-Remote-User", user.name);
  if (!user.uid.empty()) headers.add("X-Remote-Uid", user.uid);
  for (const std::string& group : user.groups) headers.add("X-Remote-Group", group);
  for (const auto& [key, values] : user.extra) {
    for (const std::string& value : values) {
      headers.add(cat("X-Remote-Extra-", escaped_key(key)), value);
    }
  }
  out.headers = std::move(headers);
  return out;
}

Availability locate(const Value& api_service, const Value& service,
                    const std::vector<Value>& slices,
                    const std::function<Value(std::string_view)>& node_named) {
  const Value& wanted = api_service["spec"]["service"];
  const std::string name = wanted["name"].str();
  const std::string name_space = wanted["namespace"].str();
  const std::int64_t port = wanted["port"].as_int(443);
  const auto missing = [](std::string_view reason, std::string message) {
    return Availability{"False", std::string(reason), std::move(message)};
  };
  const std::string shown = cat("service/", name, " in ", quoted(name_space));
  if (service.is_null()) return missing("ServiceNotFound", cat(shown, " is not present"));
  ExtensionPlace place;
  place.name = cat(name, ".", name_space, ".svc");
  place.unchecked = api_service["spec"]["insecureSkipTLSVerify"].as_bool();
  (void)base64_decode(api_service["spec"]["caBundle"].as_string(), place.ca_pem);
  Availability out{"True", "", ""};
  const Value& spec = service["spec"];
  if (spec["type"].as_string() == "ExternalName") {
    place.host = spec["externalName"].str();
    place.port = static_cast<std::uint16_t>(port);
    out.places.push_back(std::move(place));
    return out;
  }
  const auto ports = spec["ports"].items();
  const auto found = std::find_if(ports.begin(), ports.end(),
                                  [&](const Value& one) { return one["port"].as_int() == port; });
  if (found == ports.end()) {
    return missing("ServicePortError", cat(shown, " is not listening on port ", port));
  }
  const std::string_view port_name = (*found)["name"].as_string();
  bool any = false;
  for (const Value& slice : slices) {
    if (slice["metadata"]["labels"]["kubernetes.io/service-name"].as_string() != name) continue;
    any = true;
    for (const Value& one : slice["ports"].items()) {
      if (one["name"].as_string() != port_name || one["port"].is_null()) continue;
      place.port = static_cast<std::uint16_t>(one["port"].as_int());
      for (const Value& endpoint : slice["endpoints"].items()) {
        if (!is_ready(endpoint) || endpoint["addresses"].empty()) continue;
        place.host = endpoint["addresses"][0].str();
        place.reach = reach_of(place.host, node_named(endpoint["nodeName"].as_string()));
        out.places.push_back(place);
      }
    }
  }
  if (!any) return missing("EndpointsNotFound", cat("cannot find endpointslices for ", shown));
  if (out.places.empty()) {
    return missing(
        "MissingEndpoints",
        cat("endpointslices for ", shown, " have no addresses with port name ", quoted(port_name)));
  }
  return out;
}

Aggregator::Aggregator(runtime::Runtime& runtime, Objects& objects, ResourceTable& resources,
                       std::shared_ptr<ExtensionTransport> transport)
    : runtime_(runtime),
      objects_(objects),
      resources_(resources),
      transport_(std::move(transport)) {}

Aggregator::~Aggregator() { stop(); }

Result<> Aggregator::load() {
  resource_ = resources_.get()->find_plural("apiregistration.k8s.io", "apiservices");
  if (!resource_) return success();
  store::RangeQuery query;
  query.prefix = resource_->storage_prefix;
  DIBS_TRY(const store::Listing listing, objects_.store().range(query));
  auto watch = objects_.store().watch(query.prefix, listing.revision, [this] { wake(); });
  if (!watch.ok()) return std::move(watch).error();
  std::map<std::string, std::shared_ptr<Entry>> entries;
  for (const auto& record : listing.records) {
    auto object = decode_stored(*record);
    if (!object.ok()) continue;
    auto entry = std::make_shared<Entry>();
    entry->object = std::move(object).value();
    // Who was there when this server ended is believed to be there still, until it is asked.
    if (is_remote(entry->object) && available_of(entry->object)["status"].as_string() == "True") {
      Availability found = find_places(entry->object);
      entry->shown.available = !found.places.empty();
      entry->shown.places = std::move(found.places);
    }
    entries[std::string(record->key)] = std::move(entry);
  }
  const MutexLock lock(mutex_);
  watch_ = std::move(watch).value();
  entries_ = std::move(entries);
  publish();
  return success();
}

void Aggregator::start() { wake(); }

void Aggregator::stop() {
  std::unique_ptr<store::Watch> watch;
  runtime::TimerId timer{};
  bool ticks = false;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    watch = std::move(watch_);
    timer = timer_;
    ticks = ticks_;
  }
  if (ticks) runtime_.timers.cancel(timer);
  transport_->close();
}

ExtensionsPtr Aggregator::current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void Aggregator::wake() {
  {
    const MutexLock lock(mutex_);
    if (stopped_ || !resource_) return;
    again_ = true;
    if (working_) return;
    working_ = true;
  }
  runtime_.executor.post([this] { follow(); });
}

void Aggregator::follow() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (stopped_ || !std::exchange(again_, false)) {
        working_ = false;
        return;
      }
    }
    if (take_events()) tick();
    register_definitions();
  }
}

/// True when something has to be checked.
bool Aggregator::take_events() {
  // Ends without the lock: it waits for a wake() in another thread, which takes the lock.
  std::vector<std::unique_ptr<store::Watch>> ended;
  const MutexLock lock(mutex_);
  bool changed = false;
  const auto take = [&](const std::string& key, const store::Record* now) DIBS_REQUIRES(mutex_) {
    changed = true;
    auto object = now == nullptr ? Result<Value>(Value()) : decode_stored(*now);
    if (!object.ok() || object->is_null()) {
      entries_.erase(key);
      return;
    }
    auto& entry = entries_[key];
    const bool same = entry && is_same_server(entry->object["spec"], (*object)["spec"]);
    if (!same) entry = std::make_shared<Entry>();
    entry->object = std::move(object).value();
  };
  while (watch_) {
    auto events = watch_->next(64);
    if (events.ok() && events->empty()) break;
    if (events.ok()) {
      for (const auto& event : *events) take(std::string(event->key()), event->now.get());
      continue;
    }
    // The events up to now are lost; the state is not.
    store::RangeQuery query;
    query.prefix = resource_->storage_prefix;
    auto listing = objects_.store().range(query);
    if (!listing.ok()) break;
    auto watch = objects_.store().watch(query.prefix, listing->revision, [this] { wake(); });
    if (!watch.ok()) break;
    ended.push_back(std::exchange(watch_, std::move(watch).value()));
    std::set<std::string> there;
    for (const auto& record : listing->records) {
      there.insert(std::string(record->key));
      take(std::string(record->key), record.get());
    }
    std::erase_if(entries_, [&](const auto& entry) { return !there.contains(entry.first); });
  }
  if (changed) publish();
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return is_remote(entry.second->object); });
}

void Aggregator::publish() {
  auto next = std::make_shared<Extensions>();
  for (auto& [key, entry] : entries_) {
    const Value& spec = entry->object["spec"];
    if (!is_remote(entry->object) || spec["group"].as_string() == resource_->group) continue;
    Extension& shown = entry->shown;
    shown.name = entry->object["metadata"]["name"].str();
    shown.group = spec["group"].str();
    shown.version = spec["version"].str();
    shown.group_priority = spec["groupPriorityMinimum"].as_int();
    shown.version_priority = spec["versionPriority"].as_int();
    const auto before = current_->find(shown.group, shown.version);
    next->all.push_back(before && *before == shown ? before
                                                   : std::make_shared<const Extension>(shown));
  }
  std::sort(next->all.begin(), next->all.end(), [](const ExtensionPtr& a, const ExtensionPtr& b) {
    if (a->group != b->group) return a->group < b->group;
    if (a->version_priority != b->version_priority)
      return a->version_priority > b->version_priority;
    return is_newer_version(a->version, b->version);
  });
  if (next->all == current_->all) return;
  next->generation = ++generation_;
  next->documents = current_->documents;
  if (!have_same_documents(*next, *current_)) ++next->documents;
  current_ = std::move(next);
}

/// Begins whatever check is due, and comes back as long as there is somebody to check.
void Aggregator::tick() {
  std::vector<std::string> due;
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    bool any = false;
    for (const auto& [key, entry] : entries_) {
      if (!is_remote(entry->object)) continue;
      any = true;
      if (entry->checking) continue;
      if (entry->waits > 0) --entry->waits;
      entry->checking = true;
      due.push_back(key);
    }
    if (any && !ticks_) {
      ticks_ = true;
      timer_ = runtime_.timers.after(kTick, [this] {
        {
          const MutexLock own(mutex_);
          ticks_ = false;
        }
        tick();
      });
    }
  }
  for (const std::string& key : due) {
    runtime_.executor.post([this, key] { check(key); });
  }
}

void Aggregator::check(const std::string& key) {
  std::shared_ptr<Entry> entry;
  Entry found;
  {
    const MutexLock lock(mutex_);
    const auto at = entries_.find(key);
    if (stopped_ || at == entries_.end()) return;
    entry = at->second;
    found = *entry;
  }
  const Value object = found.object;
  Availability result = judge(object, found);
  {
    const MutexLock lock(mutex_);
    entry->checking = false;
    const auto at = entries_.find(key);
    if (stopped_ || at == entries_.end() || at->second != entry) return;
    found.object = entry->object;
    found.checking = false;
    *entry = found;
    publish();
  }
  if (auto told = tell(object, result); !told.ok() && told.error().code() != Code::not_found) {
    log::warn("availability of an APIService cannot be told",
              {{"name", object["metadata"]["name"].as_string()}, {"error", told.error()}});
  }
}

std::vector<Value> Aggregator::list(std::string_view group, std::string_view plural,
                                    std::string_view name_space) const {
  std::vector<Value> out;
  const auto resource = resources_.get()->find_plural(group, plural);
  if (!resource) return out;
  store::RangeQuery query;
  query.prefix = resource->namespace_prefix(name_space);
  auto listing = objects_.store().range(query);
  if (!listing.ok()) return out;
  for (const auto& record : listing->records) {
    if (auto object = decode_stored(*record); object.ok()) out.push_back(std::move(object).value());
  }
  return out;
}

Availability Aggregator::find_places(const Value& api_service) const {
  const Value& wanted = api_service["spec"]["service"];
  const auto services = resources_.get()->find("", "v1", "services");
  Value service;
  if (services) {
    auto object =
        objects_.get(*services, wanted["namespace"].as_string(), wanted["name"].as_string());
    if (object.ok()) service = std::move(object).value();
  }
  const auto nodes = resources_.get()->find("", "v1", "nodes");
  return locate(api_service, service,
                service.is_null()
                    ? std::vector<Value>()
                    : list("discovery.k8s.io", "endpointslices", wanted["namespace"].as_string()),
                [&](std::string_view name) {
                  if (!nodes || name.empty()) return Value();
                  auto node = objects_.get(*nodes, "", name);
                  return node.ok() ? std::move(node).value() : Value();
                });
}

/// Blocks while somebody is asked.
Availability Aggregator::judge(const Value& api_service, Entry& found) {
  Availability out = find_places(api_service);
  const bool moved = found.shown.places != out.places;
  found.shown.places = out.places;
  if (!out.reason.empty()) {
    found.shown.available = false;
    return out;
  }
  const Duration now = runtime_.clock.steady();
  const bool recent = found.asked != Duration::min() && now - found.asked < kAskAgain;
  if (!moved && found.waits > 0 && !found.shown.available) {
    const Value& told = available_of(api_service);
    return {told["status"].str(), told["reason"].str(), told["message"].str()};
  }
  if (!moved && recent && found.shown.available) return {"True", "Passed", "all checks passed"};
  // One endpoint that is broken does not make the others so: whoever answers, it is served.
  const std::string path = discovery_path(api_service["spec"]);
  std::vector<ExtensionPlace> places = out.places;
  std::string why;
  Result<net::Response> response = Error::unavailable("");
  ExtensionPlace place;
  for (int tries = 0; tries < kMostPlaces && !places.empty(); ++tries) {
    const auto chosen =
        places.begin() + static_cast<std::ptrdiff_t>(runtime_.random.below(places.size()));
    place = std::move(*chosen);
    places.erase(chosen);
    response = transport_->send(place, own_question(path, "application/json"), kTimeout);
    why = fault_of(response, place, path);
    if (why.empty()) break;
  }
  found.asked = runtime_.clock.steady();
  if (!why.empty()) {
    found.shown.available = false;
    found.failures = std::min<std::size_t>(found.failures + 1, 6);
    found.waits = std::min<std::size_t>(kMostSteps, std::size_t{1} << (found.failures - 1));
    return {"False", "FailedDiscoveryCheck", std::move(why)};
  }
  found.failures = 0;
  found.waits = 0;
  found.shown.available = true;
  if (Value resources = document_of(std::move(response)); !resources.is_null()) {
    found.shown.resources = std::move(resources);
  }
  learn(api_service, place, found);
  return {"True", "Passed", "all checks passed"};
}

/// What its OpenAPI documents say of the group and version.
void Aggregator::learn(const Value& api_service, const ExtensionPlace& place, Entry& found) {
  const Value& spec = api_service["spec"];
  if (spec["group"].as_string().empty()) return;
  const std::string name = discovery_path(spec).substr(1);
  const Value index = document_of(
      transport_->send(place, own_question("/openapi/v3", "application/json"), kTimeout));
  const Value entry = index["paths"][name];
  // Equal indexes have equal documents.
  if (!entry.is_null() && entry == found.shown.openapi_v3 && !found.shown.openapi_v2.is_null())
    return;
  found.shown.openapi_v3 = entry;
  found.shown.openapi_v2 = document_of(
      transport_->send(place, own_question("/openapi/v2", "application/json"), kTimeout));
}

Context Aggregator::own_context() const {
  Context context;
  context.user.name = "system:apiserver";
  context.user.groups = {std::string(auth::kMasters)};
  context.now = runtime_.clock.now();
  context.resource = resource_;
  context.resources = resources_.get();
  context.field_manager = "kube-apiserver";
  return context;
}

Result<> Aggregator::tell(const Value& api_service, const Availability& found) {
  const auto says_so = [&](const Value& object) {
    const Value& told = available_of(object);
    return told["status"].as_string() == found.status &&
           told["reason"].as_string() == found.reason &&
           told["message"].as_string() == found.message;
  };
  if (found.reason.empty() || says_so(api_service)) return success();
  Context context = own_context();
  context.info.name = api_service["metadata"]["name"].str();
  context.info.subresource = "status";
  Write write(context, *resource_, Verb::patch);
  write.make = [&](const Value* existing) -> Result<Wanted> {
    Value object = *existing;
    if (says_so(object)) return Wanted{std::move(object)};
    const Value before = available_of(object);
    Value condition = Value::object({{"type", "Available"},
                                     {"status", found.status},
                                     {"lastTransitionTime", format_rfc3339(context.now)},
                                     {"reason", found.reason},
                                     {"message", found.message}});
    if (before["status"].as_string() == found.status)
      condition.set("lastTransitionTime", before["lastTransitionTime"]);
    Value conditions = Value::array();
    for (const Value& one : object["status"]["conditions"].items()) {
      if (one["type"].as_string() != "Available") conditions.push(one);
    }
    conditions.push(std::move(condition));
    object.mut("status").set("conditions", std::move(conditions));
    return Wanted{std::move(object)};
  };
  return objects_.run(write);
}

void Aggregator::register_definitions() {
  const ResourceSetPtr served = resources_.get();
  std::set<std::string> wanted;
  std::vector<Value> missing;
  std::vector<std::string> gone;
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    for (const api::GroupInfo& group : served->catalog.groups) {
      if (!group.custom) continue;
      for (const api::VersionInfo& version : group.versions) {
        const std::string name = cat(version.version, ".", group.name);
        wanted.insert(name);
        if (!entries_.contains(resource_->key("", name)))
          missing.push_back(local_api_service(group.name, version.version, true));
      }
    }
    for (const auto& [key, entry] : entries_) {
      const Value& metadata = entry->object["metadata"];
      if (metadata["labels"][kManaged].as_string() == "true" &&
          !wanted.contains(metadata["name"].str())) {
        gone.push_back(metadata["name"].str());
      }
    }
  }
  for (const Value& object : missing) {
    Context context = own_context();
    Write write(context, *resource_, Verb::create);
    write.make = [&](const Value*) -> Result<Wanted> { return Wanted{object}; };
    auto made = objects_.run(write);
    if (!made.ok() && made.error().code() != Code::already_exists) {
      log::warn("APIService of a definition cannot be made", {{"error", made.error()}});
    }
  }
  for (const std::string& name : gone) {
    Context context = own_context();
    context.info.name = name;
    Write write(context, *resource_, Verb::remove);
    (void)objects_.run(write).ok();
  }
}

void Aggregator::pass_on(const std::shared_ptr<Context>& context,
                         const std::shared_ptr<calls::Exchange>& exchange,
                         const Extension& extension, Over over) {
  const auto refuse = [exchange, over](net::Response refusal) {
    over(refusal);
    exchange->respond(std::move(refusal));
  };
  context->request.write_body();
  const ExtensionPlace place = extension.places[runtime_.random.below(extension.places.size())];
  net::Request request = in_name_of(context->user, context->request);
  request.headers.remove("Accept-Encoding");
  if (!asks_to_upgrade(context->request)) request.headers.remove("Connection");
  // Both servers tell of it under one name.
  if (context->audit) request.headers.set("Audit-Id", context->audit->id());
  transport_->open(place, request, *exchange,
                   [context, exchange, refuse, over](Result<net::StreamAnswer> answer) {
                     if (!answer.ok()) {
                       return refuse(text(
                           503, cat("error trying to reach service: ", answer.error().message())));
                     }
                     if (auto refusal = not_permitted(context->request, answer->head)) {
                       if (answer->upgraded != nullptr) answer->upgraded->close();
                       return refuse(std::move(*refusal));
                     }
                     net::Response head = std::move(answer->head);
                     over(head);
                     if (answer->upgraded != nullptr) {
                       return exchange->upgrade_to(
                           std::move(head),
                           [server = answer->upgraded](std::shared_ptr<net::ByteStream> client) {
                             if (client == nullptr) return server->close();
                             net::splice(std::move(client), server);
                           });
                     }
                     head.headers.remove("Connection");
                     relay(std::move(answer->body), exchange->stream(std::move(head)));
                   });
}

}  // namespace dibs::server
