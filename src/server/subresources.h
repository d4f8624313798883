#pragma once
// Sub-resources that are more than a part of their object: binding, eviction, scale, tokens, logs,
// streams.

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "server/access.h"
#include "server/context.h"
#include "server/node_client.h"
#include "server/objects.h"
#include "server/writing.h"

namespace dibs::server {

/// A write that is answered with "Created", whatever it makes.
Reply answered_with_created(std::shared_ptr<Write> write);
Response created_answer(const Context& context);

class Subresources {
 public:
  Subresources(Objects& objects, ResourceTable& resources, Access& access, NodeClient& nodes)
      : objects_(objects), resources_(resources), access_(access), nodes_(nodes) {}

  /// False for those that are read and written like the object (status).
  bool handles(const Context& context) const;
  Result<Reply> handle(Context& context);

  /// True for log, exec, attach, port-forward and proxy, whose answer may be a stream.
  bool streams(const Context& context) const;
  void stream(const std::shared_ptr<Context>& context,
              const std::shared_ptr<net::Exchange>& exchange);

 private:
  Result<Reply> bind(Context& context);
  Result<Reply> evict(Context& context);
  Result<Reply> scale(Context& context);
  Result<Response> token(Context& context);
  /// Nothing for the log of a pod that has no node yet.
  Result<std::optional<StreamPlace>> locate(Context& context);
  Result<std::string> node_url(const Context& context, const std::string& name);
  Result<> authorize_websocket(const Context& context);
  void stream_log(const std::shared_ptr<Context>& context, const StreamPlace& place,
                  const std::shared_ptr<net::Exchange>& exchange);
  void proxy(const std::shared_ptr<Context>& context,
             const std::shared_ptr<net::Exchange>& exchange);
  Result<StreamPlace> proxied_node(Context& context);
  Result<StreamPlace> proxied_pod(Context& context);
  Result<StreamPlace> proxied_service(Context& context);
  Result<StreamPlace> place_in(const Context& context, const Value& pod, std::string_view scheme,
                               std::string_view port) const;
  Result<> end_pod(Context& context, DeleteOptions options);
  Result<std::string> spend_disruption(Context& context, const Value& pod);
  Result<Value> budget_of(const Context& context, const Resource& budgets, const Value& pod);
  void copy_topology(Value& pod, std::string_view node_name) const;

  Objects& objects_;
  ResourceTable& resources_;
  Access& access_;
  NodeClient& nodes_;
};

}  // namespace dibs::server
