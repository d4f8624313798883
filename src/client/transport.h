#pragma once
// The way to an API server: over HTTPS, or straight into its handler in the same process. Whoever
// talks to the API (Client, Informer, ...) cannot tell which. Bodies, answers and events may be
// values (calls/call.h); a way that leads out of the process makes them text.
//
// Thread-safe. Every HTTP status is a success at this level; errors are about reaching the server:
// unavailable, timeout.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "calls/call.h"
#include "json/share.h"
#include "runtime/runtime.h"

namespace dibs::client {

using calls::Request;
using calls::Response;

/// An open response. Destroying it cancels: a handler that runs in another thread may still finish,
/// none begins later.
class TransportStream {
 public:
  virtual ~TransportStream() = default;
};

/// Called one at a time, in order.
struct StreamHandlers {
  /// Status and headers, with an empty body.
  std::function<void(const net::Response& head)> opened = {};
  std::function<void(std::string_view bytes)> data = {};
  /// Set by who reads watch events: inside a process they may come here instead, never as text.
  std::function<void(std::string_view type, const json::Value& object)> event = {};
  /// Once, at the end; an error also when the response never began.
  std::function<void(Result<> outcome)> ended = {};
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// Waits for the answer.
  virtual Result<Response> send(Request request) = 0;
  /// `done` is called on the runtime's executor, never inside this call.
  virtual void send_async(Request request, std::function<void(Result<Response>)> done) = 0;
  virtual std::unique_ptr<TransportStream> open_stream(Request request,
                                                       StreamHandlers handlers) = 0;
  /// Whether the server does what Request::protects_allocation asks. Elsewhere it is lost on the
  /// way: the finalizer then takes a write of its own, before the allocation and after it.
  virtual bool protects_allocations() const { return false; }

  /// Where what came by this way and is kept finds its equals. By default made with the first use.
  virtual json::Pool& trees();

 private:
  std::once_flag trees_made_;
  std::unique_ptr<json::Pool> trees_;
};

/// Who calls from inside the process, as a client certificate would say it.
struct InProcessIdentity {
  std::string user = "system:admin";
  std::vector<std::string> groups = {"system:masters"};
};

struct InProcessOptions {
  InProcessIdentity identity = {};
  /// Of an answer; a simulated run ends instead when nothing is left to happen.
  Duration timeout = std::chrono::seconds(60);
  std::size_t max_queued = 16 * 1024 * 1024;
  /// The server's (ApiServer::trees), so that what both keep is in memory once; null: its own.
  std::shared_ptr<json::Pool> trees = {};
  /// Set in a simulation of one thread: makes something happen, false when nothing can. send() then
  /// drives it instead of waiting for another thread.
  std::function<bool()> pump = {};
};

/// `handler` and `runtime` must outlive the transport.
std::unique_ptr<Transport> make_in_process_transport(calls::Handler handler,
                                                     runtime::Runtime& runtime,
                                                     InProcessOptions options = {});
/// Would compile, and lose what is not HTTP.
std::unique_ptr<Transport> make_in_process_transport(net::Handler, runtime::Runtime&,
                                                     InProcessOptions = {}) = delete;

}  // namespace dibs::client
