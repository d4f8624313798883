#pragma once
// Which requests share the server with which: priority levels and flows, as Kubernetes begins with
// them.
//
// A level has its own part of the server, so that no level starves another. Within it each flow, as
// a rule one user, has its turn, so that no user starves another. Levels and schemas cannot be
// changed: flowcontrol.apiserver.k8s.io is not served.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "server/auth/user.h"
#include "server/request_info.h"

namespace dibs::server {

struct PriorityLevel {
  std::string_view name;
  unsigned shares = 0;  // of the seats; 0: not limited
  unsigned queues = 0;  // 0: what finds no seat is refused
  unsigned hand = 0;    // queues that a flow may wait in
  unsigned queue_length = 0;
};

/// Two flows of one schema wait in different queues, as a rule.
struct Flow {
  std::size_t level;  // in priority_levels()
  std::string_view schema;
  std::string distinguisher;  // a user, or a namespace
};

std::span<const PriorityLevel> priority_levels();

Flow flow_of(const auth::UserInfo& user, const RequestInfo& info);

/// Streams between a client and a node, which may last for ever: they hold no seat. A watch holds
/// one until it is open.
bool is_long_running(const RequestInfo& info);

}  // namespace dibs::server
