#pragma once
// What a machine does for Services: follows Services and EndpointSlices, keeps one nftables table
// true to them (rules.h), and serves health check ports.
//
// Life: start() puts the frame of the table up, where none is there yet: from then on no packet to
// a Service's address leaves the machine. What an earlier process left stays in force until all
// objects are read; then the table is replaced, at once. Changes are gathered for some milliseconds
// and applied as one transaction, and one at a time. stop() leaves the rules: pods go on. They go
// with the machine's network (node/runtime/machine_network.h).
//
// A transaction that fails is tried again as a whole table, later each time.
//
// No threads of its own; work runs on the runtime's executor.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/ipv4.h"
#include "base/result.h"
#include "client/client.h"
#include "proxy/machine.h"
#include "runtime/runtime.h"

namespace dibs::proxy {

struct ProxyOptions {
  /// Of this machine.
  std::vector<std::string> nodes = {};
  std::string bridge = {};       // the name of the table, too
  std::string pods = {};         // ranges
  std::string services = {};     // "": the table refuses nothing but what it knows
  std::string dns_address = {};  // of the cluster
  std::string local_dns = {};    // ADDRESS:PORT of the machine's own DNS; "": none
  /// Who else has addresses of that range on this machine; "": nobody. Of ranges that are added.
  std::function<std::string(const Ipv4Range&)> taken = {};
  /// Of the server's nodes only those are read that it may: a node reads itself.
  bool reads_only_own_node = false;
};

class Proxy {
 public:
  /// All must outlive it. Errors name what is wrong with the options, or are of the first apply.
  static Result<std::unique_ptr<Proxy>> start(ProxyOptions options, client::Client& client,
                                              runtime::Runtime& runtime, Applier& applier);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  void stop();

 private:
  struct State;
  explicit Proxy(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace dibs::proxy
