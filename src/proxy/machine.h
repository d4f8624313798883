#pragma once
// What rules are applied to: the kernel of this machine, or a test's stand-in.
//
// Calls block and come one at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/result.h"
#include "proxy/rules.h"

namespace dibs::proxy {

class Applier {
 public:
  virtual ~Applier() = default;
  /// All of the statements or none. Errors are nft's words.
  virtual Result<> apply(const std::string& statements) = 0;
  /// Client -> backend, as elements, of a map of homes.
  virtual Result<std::map<std::string, std::string>> homes(const std::string& table,
                                                           const std::string& map) = 0;
  /// Ends what the kernel knows of flows to these backends.
  virtual Result<> forget_udp(const std::set<UdpBackend>& gone) = 0;
  /// Lets connections from the machine's loopback leave by the bridge, for node ports at
  /// 127.0.0.1; the table keeps pods from using it the other way.
  virtual Result<> open_loopback(const std::string& bridge) = 0;
  /// Packets of the machine itself to these ranges have a way, by the bridge, whatever other routes
  /// it has. Those of an earlier call, or of a process before this one, that are not among them go.
  virtual Result<> keep_routes(const std::string& bridge, const std::set<std::string>& ranges) = 0;
  /// Whether only the default route leads to that address (net/route.h).
  virtual Result<bool> leads_away(const std::string& address) = 0;
};

/// By the program `nft` and netlink.
std::unique_ptr<Applier> make_machine_applier();
/// What is missing for it on this machine; "": nothing.
std::string missing_for_proxy();

/// As `nft -j list map` prints it.
Result<std::map<std::string, std::string>> parse_homes(std::string_view text);

/// The destinations of that metric, as `ip -j route show` prints them.
Result<std::set<std::string>> parse_routes(std::string_view text, std::int64_t metric);

}  // namespace dibs::proxy
