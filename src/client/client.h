#pragma once
// The API as functions: objects are JSON values, resources are named by group, version and plural.
//
// Errors are the server's Status as an Error (code, message, details), or the transport's. Objects
// of a list get the apiVersion and kind that the API leaves out of list items.
//
// Thread-safe. Methods wait for the answer; components that must not wait build a request here and
// use call(). `Transport` must outlive the client.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/transport.h"
#include "json/value.h"

namespace dibs::client {

struct Gvr {
  std::string group = {};  // "" for the core group
  std::string version = {};
  std::string resource = {};  // plural: "pods"
};

/// "/apis/apps/v1/namespaces/ns/deployments/name/scale"; empty parts are left out.
std::string path_of(const Gvr& gvr, std::string_view name_space, std::string_view name = "",
                    std::string_view subresource = "");

struct ListOptions {
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version = {};
  std::string resource_version_match = {};
  std::string continue_token = {};
  int limit = 0;
  /// Objects come as PartialObjectMetadata.
  bool metadata_only = false;
  /// A server in this process may leave out metadata.managedFields; others do not know of it.
  bool omit_managed_fields = false;
};

struct List {
  std::vector<json::Value> items;
  std::string resource_version;
  std::string continue_token;
  std::int64_t remaining = 0;
};

struct WriteOptions {
  std::string field_manager = {};
  bool dry_run = false;
  bool force = false;                 // of an apply
  std::string field_validation = {};  // "Strict", "Warn", "Ignore"
  std::string subresource = {};
};

enum class PatchType : std::uint8_t { json, merge, strategic, apply };

struct DeleteOptions {
  std::string propagation = {};  // "Foreground", "Background", "Orphan"
  int grace_period_seconds = -1;
  std::string uid = {};  // preconditions
  std::string resource_version = {};
  bool dry_run = false;
};

struct WatchOptions {
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version = {};
  bool bookmarks = true;
  int timeout_seconds = 0;
  bool metadata_only = false;
  bool omit_managed_fields = false;  // as of a list
};

struct WatchEvent {
  std::string type;  // ADDED, MODIFIED, DELETED, BOOKMARK
  json::Value object;
};

struct WatchHandlers {
  std::function<void(WatchEvent)> event = {};
  /// Once, at the end. An ERROR event and a refused request come here as their Status's error
  /// (gone or expired: list again).
  std::function<void(Result<>)> ended = {};
};

/// Building blocks, also for other callers of a Transport.
Request make_request(std::string method, std::string target);
Request make_request(std::string method, std::string target, const json::Value& body,
                     std::string_view content_type = "application/json");
Request list_request(const Gvr& gvr, std::string_view name_space, const ListOptions& options);
Request watch_request(const Gvr& gvr, std::string_view name_space, const WatchOptions& options);
Request create_request(const Gvr& gvr, std::string_view name_space, const json::Value& object,
                       const WriteOptions& options = {});
Request update_request(const Gvr& gvr, std::string_view name_space, const json::Value& object,
                       const WriteOptions& options = {});
Request patch_request(const Gvr& gvr, std::string_view name_space, std::string_view name,
                      PatchType type, const json::Value& patch, const WriteOptions& options = {});

Request delete_request(const Gvr& gvr, std::string_view name_space, std::string_view name,
                       const DeleteOptions& options = {});

/// The body of a success, or the error that the Status in it says.
Result<json::Value> read_answer(const Response& response);
Error status_error(const json::Value& status, int http_code);
List read_list(const json::Value& list);

class Client {
 public:
  explicit Client(Transport& transport) : transport_(transport) {}

  Result<json::Value> get(const Gvr& gvr, std::string_view name_space, std::string_view name,
                          std::string_view subresource = "");
  /// One page.
  Result<List> list_page(const Gvr& gvr, std::string_view name_space, const ListOptions& options);
  /// All pages of `options.limit` (0: 500) objects. One that expires between two pages starts over
  /// without pages.
  Result<List> list(const Gvr& gvr, std::string_view name_space, ListOptions options = {});
  Result<json::Value> create(const Gvr& gvr, std::string_view name_space, const json::Value& object,
                             const WriteOptions& options = {});
  /// The object names itself and carries the resourceVersion it is based on.
  Result<json::Value> update(const Gvr& gvr, std::string_view name_space, const json::Value& object,
                             const WriteOptions& options = {});
  Result<json::Value> update_status(const Gvr& gvr, std::string_view name_space,
                                    const json::Value& object, WriteOptions options = {});
  Result<json::Value> patch(const Gvr& gvr, std::string_view name_space, std::string_view name,
                            PatchType type, const json::Value& patch,
                            const WriteOptions& options = {});
  /// The object that is going, or a Status.
  Result<json::Value> remove(const Gvr& gvr, std::string_view name_space, std::string_view name,
                             const DeleteOptions& options = {});
  Result<json::Value> remove_collection(const Gvr& gvr, std::string_view name_space,
                                        const ListOptions& selection,
                                        const DeleteOptions& options = {});
  /// Handlers run one at a time on the transport's threads. Destroying the stream ends it.
  std::unique_ptr<TransportStream> watch(const Gvr& gvr, std::string_view name_space,
                                         const WatchOptions& options, WatchHandlers handlers);

  Result<json::Value> call(Request request);
  /// `done` runs on the executor, never inside this call.
  void call(Request request, std::function<void(Result<json::Value>)> done);

  Transport& transport() { return transport_; }

 private:
  Transport& transport_;
};

/// Views into the object.
inline std::string_view name_of(const json::Value& object) {
  return object["metadata"]["name"].as_string();
}
inline std::string_view namespace_of(const json::Value& object) {
  return object["metadata"]["namespace"].as_string();
}
inline std::string_view uid_of(const json::Value& object) {
  return object["metadata"]["uid"].as_string();
}
/// The release that the server says it is, 30 for 1.30; the newest where it does not say.
Result<int> server_release(Client& client);

/// "namespace/name", or "name" for a cluster-wide object: the key of caches and queues.
std::string key_of(const json::Value& object);
std::string key_of(std::string_view name_space, std::string_view name);
/// The two parts of a key.
std::pair<std::string, std::string> split_key(std::string_view key);

}  // namespace dibs::client
