#pragma once
// What the API server is made of, for its own files alone: api_server.cc starts and ends it,
// api_server_requests.cc takes a request up to the thread that works for it, api_server_verbs.cc
// does what it asks for.

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "server/access.h"
#include "server/admission.h"
#include "server/aggregator.h"
#include "server/api_server.h"
#include "server/audit.h"
#include "server/backup.h"
#include "server/computed.h"
#include "server/conversion.h"
#include "server/definitions.h"
#include "server/event_expiry.h"
#include "server/fairness.h"
#include "server/flow_control.h"
#include "server/health.h"
#include "server/node_client.h"
#include "server/node_usage.h"
#include "server/objects.h"
#include "server/page.h"
#include "server/pieces.h"
#include "server/request_metrics.h"
#include "server/reviews.h"
#include "server/routes.h"
#include "server/server_leases.h"
#include "server/service_cidrs.h"
#include "server/subresources.h"
#include "server/usage/recorder.h"
#include "server/watching.h"

namespace dibs::server {

using ContextPtr = std::shared_ptr<Context>;
using ExchangePtr = std::shared_ptr<calls::Exchange>;
using ReplyPtr = std::shared_ptr<const Reply>;

struct ApiServer::Parts {
  Parts(runtime::Runtime& runtime, store::Store& store, Options options)
      : runtime(runtime),
        store(store),
        shared(store.shared()),
        options(std::move(options)),
        requests(metrics),
        fairness(runtime, metrics, this->options.seats),
        pieces(runtime.executor, std::max(1U, std::thread::hardware_concurrency() / 2)),
        objects(runtime, store, admission),
        backups(store),
        page(runtime, page_assets()),
        watches(runtime, store, this->options.min_watch_time) {}
  /// Requests that were passed on are answered on the transport's thread, which ends before
  /// whatever that touches.
  ~Parts() {
    aggregator.reset();
    options.extensions.reset();
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  runtime::Runtime& runtime;
  store::Store& store;
  const bool shared;
  Options options;
  metrics::Registry metrics;
  const std::shared_ptr<json::Pool> trees = std::make_shared<json::Pool>();
  std::unique_ptr<Auditor> auditor;  // null: nothing is audited. Outlives whatever holds an entry
  RequestMetrics requests;
  Fairness fairness;
  Turns pieces;
  ResourceTable resources;
  AdmissionChain admission;
  Objects objects;
  Backups backups;
  Page page;
  Watches watches;
  std::unique_ptr<Access> access;
  std::unique_ptr<Conversions> conversions;  // outlives what is served
  std::unique_ptr<Definitions> definitions;
  std::unique_ptr<Aggregator> aggregator;
  std::unique_ptr<Routes> routes;
  std::unique_ptr<NodeClient> nodes;
  std::unique_ptr<Subresources> subresources;
  std::unique_ptr<Reviews> reviews;
  std::unique_ptr<NodeUsage> usage;  // null: nothing is measured
  std::unique_ptr<Computed> computed;
  std::unique_ptr<UsageRecorder> recorder;  // null: usage is not recorded
  Health health;
  std::unique_ptr<EventExpiry> expiry;
  std::unique_ptr<AddressRepair> addresses;
  std::unique_ptr<FlowControl> flow_control;
  std::unique_ptr<ServerLeases> leases;
  std::atomic<bool> leaving{false};
  std::atomic<bool> closed{false};

  /// Sets up what is made when it is asked for.
  void measure();
  /// What is told of this server's health, when all steps of the start are over.
  void add_checks();
  /// Makes out who asks, and whether he may.
  void admit(const ContextPtr& context, std::unique_ptr<calls::Exchange> exchange,
             bool looks_again = false);
  /// Errors: not_found, where nothing is recorded.
  Result<Response> answer_usage(const Context& context);
  /// Errors: forbidden.
  Result<> allow(const ContextPtr& context, const auth::UserInfo& sender);
  void dispatch(const ContextPtr& context, std::unique_ptr<calls::Exchange> exchange);
  /// Calls, on the executor, when what is in memory is as new as the request, or cannot get there.
  void freshen(const ContextPtr& context, std::function<void(Result<>)> go_on);
  /// The same; the request is refused where it cannot.
  void freshen(const ContextPtr& context, const ExchangePtr& exchange, std::function<void()> go_on);
  /// Whether the request asks for what is newest before anything is decided. A write does not: it
  /// is judged when it is refused, or by the store.
  bool wants_newest(const Context& context) const;
  bool is_unknown(const Context& context) const;
  /// Serves what others have defined meanwhile, where the request is about it.
  void know_definitions(Context& context);
  /// Hands a request on that somebody else serves.
  void pass_on(const ContextPtr& context, const ExchangePtr& exchange, const ExtensionPtr& to,
               const Fairness::Flow& flow);
  /// Goes on when the request has its seats. Who has hung up while it waited for them is not worked
  /// for.
  void take_turn(const ContextPtr& context, const ExchangePtr& exchange, const Fairness::Flow& flow,
                 unsigned seats, std::function<void(Fairness::Seat)> go,
                 std::function<void()> refused);
  /// On a thread that may block.
  void work(const ContextPtr& context, const ExchangePtr& exchange);
  static bool is_exempt(const Context& context);
  unsigned seats_of(const Context& context) const;
  Result<Reply> serve(Context& context);
  /// Of what has no write to be driven.
  Result<Response> serve_at_once(Context& context);
  /// Serves a request that may write, and answers it.
  void answer(const ContextPtr& context, const ExchangePtr& exchange);
  /// Takes a write to its end (write.h) and answers it; nobody waits for the disk.
  void drive(const ContextPtr& context, const ExchangePtr& exchange, const ReplyPtr& reply,
             int tries = 0);
  /// Steps 9 and 10. `in_turn` is called where the write has to wait for others; none: it has.
  void commit(const ContextPtr& context, const ExchangePtr& exchange, const ReplyPtr& reply,
              const std::function<void()>& in_turn);
  void settle(const ContextPtr& context, const ExchangePtr& exchange, const ReplyPtr& reply,
              const Result<store::Revision>& revision);
  Result<ResourcePtr> find_resource(const Context& context) const;
  Result<> check_verb(const Context& context, const Resource& resource) const;
  void respond(const ContextPtr& context, calls::Exchange& exchange, Result<Response> outcome);
  /// Answers somebody who could not be made out.
  void refuse_stranger(const ContextPtr& context, calls::Exchange& exchange, const Error& error);
};

/// Which forms the answer may have. Of errors too, which may come before the resource is known.
Forms forms_of(const Context& context);

}  // namespace dibs::server
