#pragma once
// A small API server in memory, for tests: get, list (with pages), create, update, merge patch,
// delete and watch of any resource, revisions as Kubernetes counts them, no validation. Faults on
// demand.
//
// Answers inside the call, so that it works in one thread; safe to call from several.

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "calls/call.h"
#include "json/value.h"

namespace dibs::client {

class FakeApi {
 public:
  calls::Handler handler();

  // As if some other client did it. Paths are those of the objects: "/api/v1/namespaces/a/pods/b".
  void put(const std::string& path, json::Value object);
  void remove(const std::string& path);
  std::optional<json::Value> get(const std::string& path) const;
  std::uint64_t revision() const;

  /// The next `times` requests whose "METHOD target" contains `part` get this status with a Status
  /// body of this reason. 0 breaks the answer off.
  void fail(const std::string& part, int status, const std::string& reason, int times = 1);
  /// The next `times` such requests are never answered, or their streams never begin.
  void hang(const std::string& part, int times = 1);
  /// Ends all watches: properly, or in the middle.
  void end_watches(bool properly);
  /// Sends an ERROR event with this code and reason to all watches and ends them.
  void break_watches(int code, const std::string& reason);
  /// Forgets history: watches from before get 410.
  void compact();
  void send_bookmarks();

  /// "METHOD target" of every request so far.
  std::vector<std::string> requests() const;
  std::size_t watches() const;

 private:
  struct Event {
    std::uint64_t revision;
    std::string collection;
    std::string type;
    json::Value object;
  };
  struct Watch {
    std::string collection;
    std::shared_ptr<net::BodyStream> stream;
  };
  struct Fault {
    std::string part;
    int status;
    std::string reason;
    int times;
    bool hang;
  };

  void handle(net::Request request, std::unique_ptr<net::Exchange> exchange);
  net::Response answer(const net::Request& request, const net::Target& target)
      DIBS_REQUIRES(mutex_);
  net::Response list(const net::Target& target, const std::string& collection)
      DIBS_REQUIRES(mutex_);
  void begin_watch(const net::Target& target, const std::string& collection,
                   std::unique_ptr<net::Exchange> exchange);
  json::Value store(const std::string& path, json::Value object) DIBS_REQUIRES(mutex_);
  bool drop(const std::string& path) DIBS_REQUIRES(mutex_);
  void publish(Event event) DIBS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, json::Value> objects_ DIBS_GUARDED_BY(mutex_);  // by path
  std::uint64_t revision_ DIBS_GUARDED_BY(mutex_) = 100;
  std::uint64_t compacted_ DIBS_GUARDED_BY(mutex_) = 0;
  std::vector<Event> events_ DIBS_GUARDED_BY(mutex_);
  std::vector<Watch> watches_ DIBS_GUARDED_BY(mutex_);
  std::vector<Fault> faults_ DIBS_GUARDED_BY(mutex_);
  std::vector<std::string> requests_ DIBS_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<net::Exchange>> hanging_ DIBS_GUARDED_BY(mutex_);
};

/// {"apiVersion": "v1", "kind": "Pod", "metadata": {...}}.
json::Value fake_pod(const std::string& name_space, const std::string& name,
                     const std::string& node = "");
std::string fake_pod_path(const std::string& name_space, const std::string& name);

}  // namespace dibs::client
