#pragma once
// Changes to the network of the namespace in which it was opened: links, routes, rules, neighbours.
//
// Every change may be repeated: what is there already, or gone already, is a success. Errors carry
// what was tried and the kernel's word for why not. Not thread-safe.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/net/address/ip.h"

namespace dibs::drivers::net {

inline constexpr int kMainTable = 254;

struct KernelLink {
  int index = 0;
  std::string name = {};
  std::string kind = {};  // "veth", "vlan", "bond", …; "": hardware
  std::string mac = {};
  int mtu = 0;
  bool up = false;
  int parent = 0;
  int master = 0;
  int vlan_id = 0;
  int bond_mode = -1;
};

struct KernelAddress {
  int device = 0;
  Ip ip = {};
  int prefix = 0;
  bool link_scope = false;  // not seen beyond the link or the machine
  /// Somebody else has it; the kernel looked (IPv6 only).
  bool duplicate = false;
};

struct KernelRoute {
  Subnet dst = {};  // prefix 0: the default route
  std::optional<Ip> gateway = {};
  std::optional<Ip> source = {};  // preferred one of packets without
  int device = 0;
  int table = kMainTable;
  bool unicast = true;

  bool v6() const { return dst.base.v6; }
};

struct KernelRule {
  bool v6 = false;
  std::optional<Subnet> from = {};
  int table = 0;
  int priority = 0;
};

struct KernelNeighbour {
  int device = 0;
  Ip ip = {};
  std::string mac = {};
  bool failed = false;
};

struct LinkChange {
  std::optional<bool> up = {};
  std::optional<int> tx_queue = {};
  std::optional<int> master = {};
  std::string mac = {};
};

struct BondOptions {
  int mode = 0;
  /// "miimon=100;lacp_rate=fast"
  std::string options = {};
};

class Netlink {
 public:
  static Result<Netlink> open();
  ~Netlink();
  Netlink(Netlink&&) noexcept;

  Result<std::vector<KernelLink>> links();
  Result<std::optional<KernelLink>> find_link(std::string_view name);
  /// An error where there is none.
  Result<KernelLink> link(std::string_view name);
  Result<> change_link(int index, const LinkChange& change);
  Result<> remove_link(int index);
  /// `peer` is made in the namespace of that descriptor.
  Result<> add_veth(const std::string& name, const std::string& peer, int peer_namespace, int mtu);
  Result<> add_vlan(const std::string& name, int parent, int id);
  Result<> add_bond(const std::string& name, const BondOptions& bond);

  Result<std::vector<KernelAddress>> addresses();

  Result<std::vector<KernelRoute>> routes();
  Result<> replace_route(const KernelRoute& route);
  Result<> remove_route(const KernelRoute& route);

  Result<std::vector<KernelRule>> rules();
  Result<> add_rule(const KernelRule& rule);
  Result<> remove_rule(const KernelRule& rule);

  /// Known for good, so that nobody has to be asked.
  Result<> set_neighbour(int device, const Ip& ip, const std::string& mac);
  /// Lets the kernel find out.
  Result<> resolve_neighbour(int device, const Ip& ip);
  Result<std::vector<KernelNeighbour>> neighbours();

 private:
  struct State;
  explicit Netlink(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Bytes of "aa:bb:cc:dd:ee:ff"; empty where it is none.
std::vector<std::uint8_t> mac_bytes(std::string_view text);
std::string mac_text(const std::uint8_t* bytes, std::size_t size);
/// As it goes over the wire: 4 or 16 bytes.
std::vector<std::uint8_t> ip_bytes(const Ip& ip);
std::optional<Ip> ip_of(const std::uint8_t* bytes, std::size_t size);

}  // namespace dibs::drivers::net
