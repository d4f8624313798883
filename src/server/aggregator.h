#pragma once
// APIServices at work: groups that other servers serve behind this one.
//
// Follows the stored APIServices. Of each that names a Service it is found out, again and again,
// where that leads, whether somebody answers there and what he serves; what comes of it is said in
// the condition Available, and kept as one immutable set (extensions.h) that requests, discovery
// and OpenAPI look at. Requests of such a group and version are passed on when this server has made
// out and authorized the sender, in his name: the server behind believes the front proxy's
// certificate.
//
// What this server serves itself has APIServices as well, which come and go with definitions.
//
// One task at a time looks at what has changed, and one at a time checks each server: who does not
// answer holds up himself. Thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "runtime/runtime.h"
#include "server/context.h"
#include "server/extensions.h"
#include "server/objects.h"
#include "store/store.h"

namespace dibs::server {

/// The request as it is passed on: in the name of its sender, whom nobody else can have named.
net::Request in_name_of(const auth::UserInfo& user, const net::Request& request);

/// What a check came to, as the condition Available says it.
struct Availability {
  std::string status;  // True, False
  std::string reason;
  std::string message;
  std::vector<ExtensionPlace> places = {};
};
/// Where the Service of an APIService leads, by what is stored. Reason "" where that is good.
/// `slices` are those of the Service's namespace; `node_named` finds a Node, or null.
Availability locate(const Value& api_service, const Value& service,
                    const std::vector<Value>& slices,
                    const std::function<Value(std::string_view)>& node_named);

class Aggregator {
 public:
  Aggregator(runtime::Runtime& runtime, Objects& objects, ResourceTable& resources,
             std::shared_ptr<ExtensionTransport> transport);
  ~Aggregator();

  /// Reads what is stored. Errors: of the store.
  Result<> load();
  void start();
  void stop();
  /// What this server serves itself may have changed.
  void wake();

  ExtensionsPtr current() const;
  /// Answers the request by what the extension answers, which can be asked. `over` is told the head
  /// of the answer, and may add to it, before it is sent.
  using Over = std::function<void(net::Response& head)>;
  void pass_on(const std::shared_ptr<Context>& context,
               const std::shared_ptr<calls::Exchange>& exchange, const Extension& extension,
               Over over);

 private:
  struct Entry;
  void follow();
  bool take_events();
  void publish() DIBS_REQUIRES(mutex_);
  void tick();
  void check(const std::string& key);
  /// Where the Service of an APIService leads now.
  Availability find_places(const Value& api_service) const;
  Availability judge(const Value& api_service, Entry& found);
  void learn(const Value& api_service, const ExtensionPlace& place, Entry& found);
  std::vector<Value> list(std::string_view group, std::string_view plural,
                          std::string_view name_space) const;
  /// Errors: of the store.
  Result<> tell(const Value& api_service, const Availability& found);
  /// APIServices of custom groups, as they are served now.
  void register_definitions();
  Context own_context() const;

  runtime::Runtime& runtime_;
  Objects& objects_;
  ResourceTable& resources_;
  const std::shared_ptr<ExtensionTransport> transport_;
  ResourcePtr resource_;  // apiservices itself; null: not served

  mutable Mutex mutex_;
  std::unique_ptr<store::Watch> watch_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Entry>> entries_ DIBS_GUARDED_BY(mutex_);  // by key
  ExtensionsPtr current_ DIBS_GUARDED_BY(mutex_) = std::make_shared<const Extensions>();
  std::uint64_t generation_ DIBS_GUARDED_BY(mutex_) = 0;
  bool working_ DIBS_GUARDED_BY(mutex_) = false;
  bool again_ DIBS_GUARDED_BY(mutex_) = false;
  bool ticks_ DIBS_GUARDED_BY(mutex_) = false;
  runtime::TimerId timer_ DIBS_GUARDED_BY(mutex_) = {};
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::server
