#pragma once
// How far a client may reach when somebody else names the server.

namespace dibs::net {

/// Judged by the address that is dialled, not by the name it was found by: a name may mean another
/// address a moment later.
enum class Reach : char {
  anywhere,
  /// Global unicast addresses: not this machine's loopback, no link-local one, no group, not ::.
  others,
  /// As others, and by a route of their own: addresses of pods and of Services. One that only the
  /// default route leads to is not on this machine's networks, and a stranger would answer.
  cluster,
};

}  // namespace dibs::net
