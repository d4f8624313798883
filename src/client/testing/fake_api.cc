#include "client/testing/fake_api.h"

#include <algorithm>
#include <charconv>

#include "base/mutex.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/patch.h"

namespace dibs::client {
namespace {

net::Response reply(int status, const json::Value& body) {
  net::Response response;
  response.status = status;
  response.headers.add("Content-Type", "application/json");
  response.body = json::write(body);
  return response;
}

json::Value status_body(int code, std::string_view reason, std::string_view message) {
  return json::Value::object({{"kind", "Status"},
                              {"apiVersion", "v1"},
                              {"metadata", json::Value::object()},
                              {"status", "Failure"},
                              {"message", message},
                              {"reason", reason},
                              {"code", code}});
}

net::Response failure(int code, std::string_view reason, std::string_view message) {
  return reply(code, status_body(code, reason, message));
}

std::uint64_t number(std::string_view text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

/// "/api/v1/namespaces/a/pods/b" -> "/api/v1/namespaces/a/pods".
std::string parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// True when the path names a collection: an odd number of parts after the version, namespaces in
/// pairs.
bool is_collection(const std::string& path) {
  const auto parts = split(std::string_view(path).substr(1), '/');
  const std::size_t base = parts[0] == "api" ? 2 : 3;
  const std::size_t rest = parts.size() - base;
  return rest == 1 || (rest == 3 && parts[base] == "namespaces");
}

/// A collection of all namespaces holds those of each: ".../pods" and ".../namespaces/x/pods".
bool holds(const std::string& collection, const std::string& other) {
  if (collection == other) return true;
  const auto slash = collection.rfind('/');
  const std::string start = collection.substr(0, slash) + "/namespaces/";
  return other.starts_with(start) && other.ends_with(collection.substr(slash));
}

SharedBytes line(std::string_view type, const json::Value& object) {
  return share(json::write(json::Value::object({{"type", type}, {"object", object}})) + "\n");
}

}  // namespace

calls::Handler FakeApi::handler() {
  return [this](calls::Request request, std::unique_ptr<calls::Exchange> exchange) {
    request.write_body();
    handle(std::move(request), std::move(exchange));
  };
}

void FakeApi::handle(net::Request request, std::unique_ptr<net::Exchange> exchange) {
  const auto target = net::Target::parse(request.target);
  std::optional<Fault> fault;
  {
    const MutexLock lock(mutex_);
    const std::string line = cat(request.method, ' ', request.target);
    requests_.push_back(line);
    for (auto& candidate : faults_) {
      if (candidate.times == 0 || line.find(candidate.part) == std::string::npos) continue;
      --candidate.times;
      fault = candidate;
      break;
    }
    if (fault && fault->hang) {
      hanging_.push_back(std::move(exchange));
      return;
    }
  }
  if (fault && fault->status == 0) {
    // Dropped unfinished: the connection breaks.
    exchange->stream({200, {}, ""});
    return;
  }
  if (fault) return exchange->respond(failure(fault->status, fault->reason, "injected"));
  if (!target) return exchange->respond(failure(400, "BadRequest", "bad target"));
  if (request.method == "GET" && is_collection(target->path) && target->get("watch") == "true") {
    return begin_watch(*target, target->path, std::move(exchange));
  }
  net::Response response;
  {
    const MutexLock lock(mutex_);
    response = answer(request, *target);
  }
  exchange->respond(std::move(response));
}

net::Response FakeApi::answer(const net::Request& request, const net::Target& target) {
  std::string path = target.path;
  if (path.ends_with("/status")) path = parent(path);
  if (request.method == "GET" && is_collection(path)) return list(target, path);
  const auto found = objects_.find(path);
  const auto missing = [&] {
    return failure(404, "NotFound", cat(quoted(path.substr(path.rfind('/') + 1)), " not found"));
  };
  if (request.method == "GET") {
    return found == objects_.end() ? missing() : reply(200, found->second);
  }
  if (request.method == "DELETE") {
    if (found == objects_.end()) return missing();
    const json::Value last = found->second;
    drop(path);
    return reply(200, last);
  }
  auto body = json::parse(request.body);
  if (!body) return failure(400, "BadRequest", body.error().message());
  if (request.method == "POST") {
    json::Value& metadata = body->mut("metadata");
    if (metadata["name"].as_string().empty() && metadata.contains("generateName")) {
      metadata.set("name", cat(metadata["generateName"].as_string(), revision_ + 1));
    }
    const std::string name = metadata["name"].str();
    const std::string object_path = cat(path, '/', name);
    if (objects_.contains(object_path)) {
      return failure(409, "AlreadyExists", cat(quoted(name), " already exists"));
    }
    return reply(201, store(object_path, *body));
  }
  if (found == objects_.end()) return missing();
  if (request.method == "PUT") {
    const auto wanted = (*body)["metadata"]["resourceVersion"].as_string();
    if (!wanted.empty() && wanted != found->second["metadata"]["resourceVersion"].as_string()) {
      return failure(409, "Conflict", "the object has been modified");
    }
    return reply(200, store(path, *body));
  }
  if (request.method == "PATCH") {
    return reply(200, store(path, json::apply_merge_patch(found->second, *body)));
  }
  return failure(405, "MethodNotAllowed", "no");
}

net::Response FakeApi::list(const net::Target& target, const std::string& collection) {
  const std::size_t limit = static_cast<std::size_t>(number(target.get("limit")));
  const std::string after(target.get("continue"));
  auto items = json::Value::array();
  auto metadata = json::Value::object({{"resourceVersion", std::to_string(revision_)}});
  for (const auto& [path, object] : objects_) {
    if (!holds(collection, parent(path)) || (!after.empty() && path <= after)) continue;
    if (limit > 0 && items.size() == limit) {
      metadata.set("continue", items[items.size() - 1]["path"]);
      break;
    }
    json::Value item = object;
    item.erase("kind");
    item.erase("apiVersion");
    item.set("path", path);
    items.push(std::move(item));
  }
  auto clean = json::Value::array();
  for (const auto& item : items.items()) {
    json::Value object = item;
    object.erase("path");
    clean.push(std::move(object));
  }
  return reply(200, json::Value::object({{"kind", "ThingList"},
                                         {"apiVersion", "v1"},
                                         {"metadata", std::move(metadata)},
                                         {"items", std::move(clean)}}));
}

void FakeApi::begin_watch(const net::Target& target, const std::string& collection,
                          std::unique_ptr<net::Exchange> exchange) {
  const std::uint64_t from = number(target.get("resourceVersion"));
  std::vector<SharedBytes> lines;
  const MutexLock lock(mutex_);
  auto stream = exchange->stream({200, {}, ""});
  if (from < compacted_) {
    stream->write(line("ERROR", status_body(410, "Expired", "too old resource version")));
    stream->finish();
    return;
  }
  for (const auto& event : events_) {
    if (event.revision > from && holds(collection, event.collection)) {
      stream->write(line(event.type, event.object));
    }
  }
  watches_.push_back({collection, std::move(stream)});
}

json::Value FakeApi::store(const std::string& path, json::Value object) {
  const auto found = objects_.find(path);
  ++revision_;
  object.mut("metadata").set("resourceVersion", std::to_string(revision_));
  if (!object["metadata"]["uid"].is_string()) {
    object.mut("metadata").set("uid", cat("uid-", revision_));
  }
  const std::string type = found == objects_.end() ? "ADDED" : "MODIFIED";
  objects_[path] = object;
  publish({revision_, parent(path), type, object});
  return object;
}

bool FakeApi::drop(const std::string& path) {
  const auto found = objects_.find(path);
  if (found == objects_.end()) return false;
  ++revision_;
  json::Value object = found->second;
  object.mut("metadata").set("resourceVersion", std::to_string(revision_));
  objects_.erase(found);
  publish({revision_, parent(path), "DELETED", object});
  return true;
}

void FakeApi::publish(Event event) {
  const auto bytes = line(event.type, event.object);
  std::erase_if(watches_, [&](const Watch& watch) {
    return holds(watch.collection, event.collection) && !watch.stream->write(bytes);
  });
  events_.push_back(std::move(event));
}

void FakeApi::put(const std::string& path, json::Value object) {
  const MutexLock lock(mutex_);
  store(path, std::move(object));
}

void FakeApi::remove(const std::string& path) {
  const MutexLock lock(mutex_);
  drop(path);
}

std::optional<json::Value> FakeApi::get(const std::string& path) const {
  const MutexLock lock(mutex_);
  const auto found = objects_.find(path);
  if (found == objects_.end()) return std::nullopt;
  return found->second;
}

std::uint64_t FakeApi::revision() const {
  const MutexLock lock(mutex_);
  return revision_;
}

void FakeApi::fail(const std::string& part, int status, const std::string& reason, int times) {
  const MutexLock lock(mutex_);
  faults_.push_back({part, status, reason, times, false});
}

void FakeApi::hang(const std::string& part, int times) {
  const MutexLock lock(mutex_);
  faults_.push_back({part, 0, "", times, true});
}

void FakeApi::end_watches(bool properly) {
  std::vector<Watch> gone;
  {
    const MutexLock lock(mutex_);
    gone.swap(watches_);
  }
  if (!properly) return;
  for (const auto& watch : gone) watch.stream->finish();
}

void FakeApi::break_watches(int code, const std::string& reason) {
  std::vector<Watch> gone;
  {
    const MutexLock lock(mutex_);
    gone.swap(watches_);
  }
  for (const auto& watch : gone) {
    watch.stream->write(line("ERROR", status_body(code, reason, "injected")));
    watch.stream->finish();
  }
}

void FakeApi::compact() {
  const MutexLock lock(mutex_);
  compacted_ = ++revision_;
  events_.clear();
}

void FakeApi::send_bookmarks() {
  const MutexLock lock(mutex_);
  const auto object = json::Value::object(
      {{"metadata", json::Value::object({{"resourceVersion", std::to_string(revision_)}})}});
  for (const auto& watch : watches_) watch.stream->write(line("BOOKMARK", object));
}

std::vector<std::string> FakeApi::requests() const {
  const MutexLock lock(mutex_);
  return requests_;
}

std::size_t FakeApi::watches() const {
  const MutexLock lock(mutex_);
  return watches_.size();
}

json::Value fake_pod(const std::string& name_space, const std::string& name,
                     const std::string& node) {
  auto pod = json::Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", json::Value::object({{"name", name}, {"namespace", name_space}})}});
  if (!node.empty()) pod.mut("spec").set("nodeName", node);
  return pod;
}

std::string fake_pod_path(const std::string& name_space, const std::string& name) {
  return cat("/api/v1/namespaces/", name_space, "/pods/", name);
}

}  // namespace dibs::client
