#pragma once
// What a Service is in nftables: chains, sets and elements of maps that packets are looked up in.
// Pure; ruleset.h puts the pieces of all Services together.
//
// A packet to (address, protocol, port) finds its chain by one lookup, and that picks a backend by
// one more, however many Services and backends there are:
//
//     services    cluster address, balancers' -> svc/… or lb/…     packets of pods and the machine
//     external    externalIPs -> ext/…                             of pods and strangers
//     node-ports  port -> ext/…                                    to an address of the machine
//
//     svc/NS/NAME/tcp/80    any backend, as seen from each node
//     int/…                 with internalTrafficPolicy Local: those of the sender's node
//     ext/…                 from outside: masquerades, or keeps to the machine's backends (Local)
//     lb/…                  who may use a balancer's address
//
// Where a choice depends on the sender's node and the machine has several, a chain begins with a
// rule for each node (`ip saddr @pods/NODE goto …/NODE`).
//
// Session affinity: live/CHAIN has the clients of the last seconds, renewed by each connection,
// home/CHAIN the backend of each.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proxy/service_view.h"

namespace dibs::proxy {

/// UDP has no end that conntrack could see: flows to a backend that is gone are cut by hand.
struct UdpBackend {
  std::string address = {};  // of the backend
  int port = 0;
  int service_port = 0;  // that packets were sent to
  friend auto operator<=>(const UdpBackend&, const UdpBackend&) = default;
};

struct Piece {
  std::map<std::string, std::string> sets = {};                 // name -> declaration
  std::map<std::string, std::vector<std::string>> chains = {};  // name -> rules
  /// (set, key) -> value, "" in a set that is no map.
  std::map<std::pair<std::string, std::string>, std::string> elements = {};
  /// home/… -> the backends that may stand in it, as elements.
  std::map<std::string, std::set<std::string>> homes = {};
  std::set<UdpBackend> udp = {};
  /// It depends on which node a pod is on.
  bool by_node = false;

  friend bool operator==(const Piece&, const Piece&) = default;
};

/// `key`: NAMESPACE/NAME. A name that no Service can have makes an empty piece: it would be nft's
/// language.
Piece make_piece(const std::string& key, const ServiceView& service, const Machine& machine);

/// Whether these are the letters of names in the API.
bool is_plain_name(std::string_view name);
/// The set of the addresses of a node's pods. nft takes no name of more than 255 letters: a long
/// name of a node is told by its digest.
std::string pods_set(const std::string& node);

struct TableOptions {
  std::string table = {};
  Machine machine = {};
  /// Packets to the cluster's DNS go there, whatever its Service says; "": as any other.
  std::string dns_address = {};
  std::string local_dns = {};  // ADDRESS:PORT
};

/// The part that is always there: hooks, refusal, the second wall. Statements inside of a table.
std::string table_frame(const TableOptions& options);
/// Elements of the frame: (set, key) -> value.
std::map<std::pair<std::string, std::string>, std::string> frame_elements(
    const TableOptions& options);

}  // namespace dibs::proxy
