#pragma once
// A call of the API: how a client and a server in one process talk to each other.
//
// It is an HTTP exchange (net/http.h) whose objects need never be text: bodies, answers and events
// of a watch are handed over as values, which both sides share and neither changes. What Kubernetes
// has no words for is said in `Request`, and holds for callers in the process alone: a request that
// came over HTTP (over_http) asks for none of it, whatever its sender wrote.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "json/value.h"
#include "net/http.h"

namespace dibs::calls {

struct Request : net::Request {
  /// The body before it became text: then `body` is empty. Null: there is only the text.
  json::Value value = {};
  /// The answer may be a value.
  bool takes_values = false;
  /// Of values and of events: metadata.managedFields would only be thrown away.
  bool omits_managed_fields = false;
  /// Of a write of a ResourceClaim's status: the finalizer that protects an allocated claim comes
  /// with the allocation and goes with it, in this write.
  bool protects_allocation = false;

  /// Makes the body text, where it is not, and forgets the value.
  void write_body();
};

struct Response {
  Response() = default;
  Response(net::Response http)  // NOLINT(google-explicit-constructor): an answer without a value
      : status(http.status), headers(std::move(http.headers)), body(std::move(http.body)) {}

  int status = 200;
  net::Headers headers;
  std::string body;
  /// In place of a body of JSON, where the request takes that.
  json::Value value;

  /// Requires that there is no value.
  net::Response take_http() && { return {status, std::move(headers), std::move(body)}; }
};

/// A watch whose reader takes events that never were text. Lines of bytes (bookmarks, errors) come
/// between them in order.
class EventStream : public net::BodyStream {
 public:
  /// As write(); `size` is what it counts in the queue. `type` is one of the API's names, which
  /// live for ever.
  virtual bool write_event(std::string_view type, json::Value object, std::size_t size) = 0;
};

/// A call's way to its answer: of the methods here and of net::Exchange exactly one is called.
class Exchange : public net::Exchange {
 public:
  /// As respond(). A value only where the request takes values.
  virtual void answer(Response response) = 0;
  /// As stream(), for a watch. Null, and nothing sent: the reader takes bytes, through stream().
  virtual std::shared_ptr<EventStream> stream_events(const net::Response& head) = 0;
};

/// Answers calls, and does all that a Request can ask. Called on the caller's thread: must not
/// block there.
using Handler = std::function<void(Request, std::unique_ptr<Exchange>)>;

/// The way to answer a request that came over HTTP.
std::unique_ptr<Exchange> over_http(std::unique_ptr<net::Exchange> exchange);

}  // namespace dibs::calls
