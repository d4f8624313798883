#include "client/client.h"

#include <charconv>

#include "base/release.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::client {
namespace {

constexpr int kPage = 500;
constexpr std::string_view kMetadata =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
constexpr std::string_view kMetadataList =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
// A server that sends an event longer than this is not an API server.
constexpr std::size_t kMaxEvent = 64 * 1024 * 1024;

class Query {
 public:
  explicit Query(std::string path) : target_(std::move(path)) {}
  Query& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    append(target_, first_ ? '?' : '&', name, '=', percent_encode(value));
    first_ = false;
    return *this;
  }
  Query& add(std::string_view name, int value) {
    return value > 0 ? add(name, std::string_view(std::to_string(value))) : *this;
  }
  std::string take() { return std::move(target_); }

 private:
  std::string target_;
  bool first_ = true;
};

void add_selection(Query& query, const ListOptions& options) {
  query.add("labelSelector", options.label_selector)
      .add("fieldSelector", options.field_selector)
      .add("resourceVersion", options.resource_version)
      .add("resourceVersionMatch", options.resource_version_match)
      .add("limit", options.limit)
      .add("continue", options.continue_token);
}

std::string write_target(std::string path, const WriteOptions& options) {
  Query query(std::move(path));
  query.add("fieldManager", options.field_manager).add("fieldValidation", options.field_validation);
  if (options.dry_run) query.add("dryRun", "All");
  if (options.force) query.add("force", "true");
  return query.take();
}

std::string_view content_type(PatchType type) {
  switch (type) {
    case PatchType::json:
      return "application/json-patch+json";
    case PatchType::merge:
      return "application/merge-patch+json";
    case PatchType::strategic:
      return "application/strategic-merge-patch+json";
    case PatchType::apply:
      return "application/apply-patch+yaml";
  }
  return "";
}

json::Value delete_body(const DeleteOptions& options) {
  auto body = json::Value::object({{"kind", "DeleteOptions"}, {"apiVersion", "v1"}});
  if (!options.propagation.empty()) body.set("propagationPolicy", options.propagation);
  if (options.grace_period_seconds >= 0) {
    body.set("gracePeriodSeconds", options.grace_period_seconds);
  }
  if (!options.uid.empty()) body.mut("preconditions").set("uid", options.uid);
  if (!options.resource_version.empty()) {
    body.mut("preconditions").set("resourceVersion", options.resource_version);
  }
  if (options.dry_run) body.set("dryRun", json::Value::array({"All"}));
  return body;
}

Code code_for(std::string_view reason_text, int http_code) {
  constexpr Code kAll[] = {Code::bad_request,
                           Code::unauthorized,
                           Code::forbidden,
                           Code::not_found,
                           Code::method_not_allowed,
                           Code::not_acceptable,
                           Code::already_exists,
                           Code::conflict,
                           Code::gone,
                           Code::expired,
                           Code::too_large,
                           Code::unsupported_media_type,
                           Code::invalid,
                           Code::too_many_requests,
                           Code::internal,
                           Code::unavailable,
                           Code::timeout,
                           Code::server_timeout};
  if (!reason_text.empty()) {
    for (const Code code : kAll) {
      if (reason(code) == reason_text) return code;
    }
  }
  for (const Code code : kAll) {
    if (http_status(code) == http_code) return code;
  }
  return http_code >= 500 ? Code::plain : Code::bad_request;
}

/// Bytes of a watch to events, one line each.
class WatchReader {
 public:
  explicit WatchReader(WatchHandlers handlers) : handlers_(std::move(handlers)) {}

  void opened(const net::Response& head) { head_ = head; }

  void data(std::string_view bytes) {
    if (failure_) return;
    held_.append(bytes);
    if (head_.status != 200) return;
    std::size_t start = 0;
    while (!failure_) {
      const auto end = held_.find('\n', start);
      if (end == std::string::npos) break;
      take_line(std::string_view(held_).substr(start, end - start));
      start = end + 1;
    }
    held_.erase(0, start);
    if (held_.size() > kMaxEvent) failure_ = Error::internal("watch: an event is too long");
  }

  void event(std::string_view type, const json::Value& object) {
    if (!failure_ && handlers_.event) handlers_.event({std::string(type), object});
  }

  void ended(Result<> outcome) {
    if (!failure_ && head_.status != 200 && outcome) {
      head_.body = std::move(held_);
      auto answer = read_answer(head_);
      if (!answer) failure_ = answer.error();
    }
    if (failure_) outcome = *failure_;
    if (handlers_.ended) handlers_.ended(std::move(outcome));
  }

 private:
  void take_line(std::string_view line) {
    if (trim(line).empty()) return;
    auto parsed = json::parse(line);
    if (!parsed) {
      failure_ = parsed.error().within("watch: broken event");
      return;
    }
    const auto type = (*parsed)["type"].as_string();
    if (type == "ERROR") {
      failure_ = status_error((*parsed)["object"],
                              static_cast<int>((*parsed)["object"]["code"].as_int(500)));
      return;
    }
    if (handlers_.event) handlers_.event({std::string(type), (*parsed)["object"]});
  }

  WatchHandlers handlers_;
  Response head_;
  std::string held_;
  std::optional<Error> failure_;
};

}  // namespace

std::string path_of(const Gvr& gvr, std::string_view name_space, std::string_view name,
                    std::string_view subresource) {
  std::string out =
      gvr.group.empty() ? cat("/api/", gvr.version) : cat("/apis/", gvr.group, '/', gvr.version);
  if (!name_space.empty()) append(out, "/namespaces/", percent_encode(name_space));
  append(out, '/', gvr.resource);
  if (!name.empty()) append(out, '/', percent_encode(name));
  if (!subresource.empty()) append(out, '/', subresource);
  return out;
}

Request make_request(std::string method, std::string target) {
  Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers.add("Accept", "application/json");
  return request;
}

Request make_request(std::string method, std::string target, const json::Value& body,
                     std::string_view type) {
  Request request = make_request(std::move(method), std::move(target));
  request.headers.add("Content-Type", std::string(type));
  request.value = body;
  return request;
}

Request list_request(const Gvr& gvr, std::string_view name_space, const ListOptions& options) {
  Query query(path_of(gvr, name_space));
  add_selection(query, options);
  auto request = make_request("GET", query.take());
  if (options.metadata_only) request.headers.set("Accept", std::string(kMetadataList));
  request.omits_managed_fields = options.omit_managed_fields;
  return request;
}

Request watch_request(const Gvr& gvr, std::string_view name_space, const WatchOptions& options) {
  Query query(path_of(gvr, name_space));
  query.add("watch", "true")
      .add("labelSelector", options.label_selector)
      .add("fieldSelector", options.field_selector)
      .add("resourceVersion", options.resource_version)
      .add("timeoutSeconds", options.timeout_seconds);
  if (options.bookmarks) query.add("allowWatchBookmarks", "true");
  auto request = make_request("GET", query.take());
  if (options.metadata_only) request.headers.set("Accept", std::string(kMetadata));
  request.omits_managed_fields = options.omit_managed_fields;
  return request;
}

Request create_request(const Gvr& gvr, std::string_view name_space, const json::Value& object,
                       const WriteOptions& options) {
  // Only the sub-resources of a named object (bindings, evictions, tokens) have a name in the path.
  const auto name =
      options.subresource.empty() ? std::string_view() : object["metadata"]["name"].as_string();
  return make_request(
      "POST", write_target(path_of(gvr, name_space, name, options.subresource), options), object);
}

Request update_request(const Gvr& gvr, std::string_view name_space, const json::Value& object,
                       const WriteOptions& options) {
  return make_request("PUT",
                      write_target(path_of(gvr, name_space, object["metadata"]["name"].as_string(),
                                           options.subresource),
                                   options),
                      object);
}

Request patch_request(const Gvr& gvr, std::string_view name_space, std::string_view name,
                      PatchType type, const json::Value& patch, const WriteOptions& options) {
  return make_request("PATCH",
                      write_target(path_of(gvr, name_space, name, options.subresource), options),
                      patch, content_type(type));
}

Request delete_request(const Gvr& gvr, std::string_view name_space, std::string_view name,
                       const DeleteOptions& options) {
  return make_request("DELETE", path_of(gvr, name_space, name), delete_body(options));
}

Error status_error(const json::Value& status, int http_code) {
  const Code code = code_for(status["reason"].as_string(), http_code);
  const json::Value& details = status["details"];
  if (details.is_null()) return {code, status["message"].str()};
  ErrorDetails out;
  out.name = details["name"].as_string();
  out.group = details["group"].as_string();
  out.kind = details["kind"].as_string();
  out.uid = details["uid"].as_string();
  out.retry_after_seconds = static_cast<int>(details["retryAfterSeconds"].as_int());
  for (const auto& cause : details["causes"].items()) {
    out.causes.push_back({cause["reason"].str(), cause["message"].str(), cause["field"].str()});
  }
  return {code, status["message"].str(), std::move(out)};
}

Result<json::Value> read_answer(const Response& response) {
  if (!response.value.is_null()) {
    if (response.status >= 400) return status_error(response.value, response.status);
    return response.value;
  }
  auto body = json::parse(response.body);
  if (response.status >= 200 && response.status < 300) {
    if (!body) return body.error().within("the server's answer");
    return body;
  }
  if (body && (*body)["kind"].as_string() == "Status") {
    return status_error(*body, response.status);
  }
  const auto text = trim(response.body);
  return Error(code_for("", response.status), text.empty()
                                                  ? cat("the server answered ", response.status,
                                                        ' ', net::reason_phrase(response.status))
                                                  : std::string(text.substr(0, 1000)));
}

List read_list(const json::Value& list) {
  List out;
  const json::Value& metadata = list["metadata"];
  out.resource_version = metadata["resourceVersion"].as_string();
  out.continue_token = metadata["continue"].as_string();
  out.remaining = metadata["remainingItemCount"].as_int();
  std::string_view kind = list["kind"].as_string();
  if (kind.ends_with("List")) kind.remove_suffix(4);
  out.items.reserve(list["items"].size());
  for (const auto& item : list["items"].items()) {
    json::Value object = item;
    if (!object.contains("kind") && !kind.empty() && object.is_object()) {
      // First in the object, as everywhere in the API.
      auto whole = json::Value::object({{"apiVersion", list["apiVersion"]}, {"kind", kind}});
      for (const auto& member : object.members()) whole.set(member.key(), member.value());
      object = std::move(whole);
    }
    out.items.push_back(std::move(object));
  }
  return out;
}

Result<json::Value> Client::call(Request request) {
  request.takes_values = true;
  DIBS_TRY(const auto response, transport_.send(std::move(request)));
  return read_answer(response);
}

void Client::call(Request request, std::function<void(Result<json::Value>)> done) {
  request.takes_values = true;
  transport_.send_async(std::move(request), [done = std::move(done)](Result<Response> result) {
    if (!result) return done(result.error());
    done(read_answer(*result));
  });
}

Result<json::Value> Client::get(const Gvr& gvr, std::string_view name_space, std::string_view name,
                                std::string_view subresource) {
  return call(make_request("GET", path_of(gvr, name_space, name, subresource)));
}

Result<List> Client::list_page(const Gvr& gvr, std::string_view name_space,
                               const ListOptions& options) {
  DIBS_TRY(const auto list, call(list_request(gvr, name_space, options)));
  return read_list(list);
}

Result<List> Client::list(const Gvr& gvr, std::string_view name_space, ListOptions options) {
  if (options.limit == 0) options.limit = kPage;
  List out;
  while (true) {
    auto page = list_page(gvr, name_space, options);
    if (!page) {
      const Code code = page.error().code();
      if (options.continue_token.empty() || (code != Code::expired && code != Code::gone)) {
        return page.error();
      }
      options.continue_token.clear();
      options.limit = 0;
      return list_page(gvr, name_space, options);
    }
    out.resource_version = page->resource_version;
    out.items.insert(out.items.end(), std::make_move_iterator(page->items.begin()),
                     std::make_move_iterator(page->items.end()));
    if (page->continue_token.empty()) return out;
    options.continue_token = page->continue_token;
    // The token carries the revision; the server refuses both together.
    options.resource_version.clear();
    options.resource_version_match.clear();
  }
}

Result<json::Value> Client::create(const Gvr& gvr, std::string_view name_space,
                                   const json::Value& object, const WriteOptions& options) {
  return call(create_request(gvr, name_space, object, options));
}

Result<json::Value> Client::update(const Gvr& gvr, std::string_view name_space,
                                   const json::Value& object, const WriteOptions& options) {
  return call(update_request(gvr, name_space, object, options));
}

Result<json::Value> Client::update_status(const Gvr& gvr, std::string_view name_space,
                                          const json::Value& object, WriteOptions options) {
  options.subresource = "status";
  return call(update_request(gvr, name_space, object, options));
}

Result<json::Value> Client::patch(const Gvr& gvr, std::string_view name_space,
                                  std::string_view name, PatchType type, const json::Value& patch,
                                  const WriteOptions& options) {
  return call(patch_request(gvr, name_space, name, type, patch, options));
}

Result<json::Value> Client::remove(const Gvr& gvr, std::string_view name_space,
                                   std::string_view name, const DeleteOptions& options) {
  return call(delete_request(gvr, name_space, name, options));
}

Result<json::Value> Client::remove_collection(const Gvr& gvr, std::string_view name_space,
                                              const ListOptions& selection,
                                              const DeleteOptions& options) {
  Query query(path_of(gvr, name_space));
  add_selection(query, selection);
  return call(make_request("DELETE", query.take(), delete_body(options)));
}

std::unique_ptr<TransportStream> Client::watch(const Gvr& gvr, std::string_view name_space,
                                               const WatchOptions& options,
                                               WatchHandlers handlers) {
  auto reader = std::make_shared<WatchReader>(std::move(handlers));
  return transport_.open_stream(
      watch_request(gvr, name_space, options),
      {.opened = [reader](const net::Response& head) { reader->opened(head); },
       .data = [reader](std::string_view bytes) { reader->data(bytes); },
       .event = [reader](std::string_view type,
                         const json::Value& object) { reader->event(type, object); },
       .ended = [reader](Result<> outcome) { reader->ended(std::move(outcome)); }});
}

Result<int> server_release(Client& client) {
  DIBS_TRY(const json::Value version, client.call(make_request("GET", "/version")));
  // Some vendors add a mark: "30+".
  const std::string_view minor = version["minor"].as_string();
  int release = 0;
  std::from_chars(minor.data(), minor.data() + minor.size(), release);
  return release > 0 ? release : kNewestRelease;
}

std::string key_of(std::string_view name_space, std::string_view name) {
  return name_space.empty() ? std::string(name) : cat(name_space, '/', name);
}

std::string key_of(const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  return key_of(metadata["namespace"].as_string(), metadata["name"].as_string());
}

std::pair<std::string, std::string> split_key(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return {"", std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

}  // namespace dibs::client
