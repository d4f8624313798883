#pragma once
// Backends that packets would leave the cluster for: pods of other machines that only the default
// route leads to. Nobody makes routes between machines' pods but an administrator, or a network
// that has some of its own; until then a stranger would get what was sent to a Service.
//
// One thread at a time, which may block.

#include <map>
#include <set>
#include <string>

#include "client/client.h"
#include "proxy/machine.h"
#include "proxy/service_view.h"

namespace dibs::proxy {

class FarBackends {
 public:
  FarBackends(client::Client& client, Applier& applier) : api_(client), applier_(applier) {}

  /// Takes them out of the Service. True when there were some: routes may come.
  bool leave_out(ServiceView& service, const Machine& machine);

 private:
  bool is_far(const Backend& backend, const Machine& machine);
  bool is_on_host_network(const Backend& backend);

  client::Client& api_;
  Applier& applier_;
  std::map<std::string, bool> on_host_network_;  // by the pod's uid
  std::set<std::string> told_;                   // addresses
};

}  // namespace dibs::proxy
