#include "server/aggregator.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"
#include "server/auth/user.h"
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

}  // namespace

struct Aggregator::Entry {
  Value object;
  Extension shown;  // what is known of the server
  bool checking = false;
  std::size_t failures = 0;
  std::size_t waits = 0;  // ticks until it is asked again
  Duration asked = Duration::min();
};

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

}  // namespace dibs::server
