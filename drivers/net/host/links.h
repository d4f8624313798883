#pragma once
// The links of a network namespace and their addresses: from the kernel, or from a file.
//
// A recorded file is what `ip -j -d address show` prints, or {"links": that, "rdmaNetnsMode":
// "exclusive"}; JSON or YAML. Files of /sys are no part of it (host_facts.h), so that links may be
// real and hardware made up.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/files.h"

namespace dibs::drivers::net {

struct LinkAddress {
  std::string ip = {};
  int prefix = 0;
  bool link_local = false;
};

struct Link {
  std::string name = {};
  int index = 0;
  std::string kind = {};  // "" for hardware: "veth", "vlan", "bond", "bridge", …
  int hardware_type = 0;  // ARPHRD_…: 1 ethernet, 32 infiniband, 772 loopback
  std::string mac = {};
  int mtu = 0;
  bool up = false;  // as its owner wants it
  std::string oper_state = {};
  int parent = 0;  // index of the link below; 0: none in this namespace
  int master = 0;  // index of the bond or bridge that it is part of
  int vlan_id = 0;
  std::vector<LinkAddress> addresses = {};
};

struct LinkFacts {
  std::vector<Link> links = {};
  std::string rdma_netns_mode = {};  // "": the kernel does not say
};

/// Not thread-safe: one owner calls one after the other.
class Links {
 public:
  virtual ~Links() = default;
  virtual Result<LinkFacts> read() = 0;
  /// Whether something changed since the last call; may say so once too often. Never waits.
  virtual bool changed() = 0;
};

/// Of the namespace in which this is called. Errors say which socket.
Result<std::unique_ptr<Links>> open_netlink();

/// The file is read again at each read(). `files` must outlive it.
std::unique_ptr<Links> recorded_links(runtime::Files& files, std::string path);

/// What the file says. Errors (invalid) name the field.
Result<LinkFacts> parse_recorded_links(std::string_view text);

/// Takes over what messages of the kernel say of links and addresses; the rest of them, and what is
/// cut off, is left out.
void read_netlink_messages(std::span<const std::uint8_t> bytes, LinkFacts& facts);

}  // namespace dibs::drivers::net
