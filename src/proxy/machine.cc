#include "proxy/machine.h"

#include <fstream>

#include "base/strings.h"
#include "json/parse.h"
#include "net/route.h"
#include "proxy/conntrack.h"
#include "runtime/processes.h"

namespace dibs::proxy {
namespace {

constexpr Duration kLimit = std::chrono::seconds(30);

class MachineApplier final : public Applier {
 public:
  Result<> apply(const std::string& statements) override {
    return nft({"-f", "-"}, statements).status;
  }

  Result<std::map<std::string, std::string>> homes(const std::string& table,
                                                   const std::string& map) override {
    auto output = nft({"-j", "list", "map", "inet", table, map});
    if (!output.status.ok()) return output.status.error();
    return parse_homes(output.text);
  }

  Result<> forget_udp(const std::set<UdpBackend>& gone) override { return forget_udp_flows(gone); }

  Result<> open_loopback(const std::string& bridge) override {
    const std::string path = cat("/proc/sys/net/ipv4/conf/", bridge, "/route_localnet");
    std::ofstream file(path);
    file << "1" << std::flush;
    if (!file) return Error::internal(cat("cannot set ", path));
    return success();
  }

  Result<> keep_routes(const std::string& bridge, const std::set<std::string>& ranges) override {
    const std::string metric = std::to_string(kMetric);
    if (!routes_known_) {
      DIBS_TRY(const std::string text, ip({"-j", "route", "show", "dev", bridge}));
      DIBS_TRY(routes_, parse_routes(text, kMetric));
      routes_known_ = true;
    }
    for (const std::string& range : ranges) {
      DIBS_CHECK(ip({"route", "replace", range, "dev", bridge, "metric", metric}));
      routes_.insert(range);
    }
    for (auto route = routes_.begin(); route != routes_.end();) {
      if (ranges.contains(*route)) {
        ++route;
        continue;
      }
      const auto gone = ip({"route", "del", *route, "dev", bridge, "metric", metric});
      // Somebody else has taken it away, or to another bridge.
      if (!gone.ok() && gone.error().message().find("No such process") == std::string::npos)
        return gone.error();
      route = routes_.erase(route);
    }
    return success();
  }

  Result<bool> leads_away(const std::string& address) override {
    return net::is_by_default_route(address);
  }

 private:
  /// Of routes that another may have as well: not below what people set by hand, and none that a
  /// bridge has for the cluster's first range (node/runtime/machine_network.cc).
  static constexpr std::int64_t kMetric = 65537;

  static Result<std::string> ip(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), runtime::find_program("ip"));
    if (arguments[0].empty()) return Error::unavailable("ip is not in PATH (Debian: iproute2)");
    DIBS_TRY(auto output, runtime::run({.argv = std::move(arguments)}, {}, kLimit));
    if (output.status.code == 0) return std::move(output.out);
    return Error::internal(cat("ip: ", trim(output.err)));
  }

  std::set<std::string> routes_;
  bool routes_known_ = false;  // those that were there before

  struct Outcome {
    Result<> status = success();
    std::string text = {};
  };
  static Outcome nft(std::vector<std::string> arguments, const std::string& input = {}) {
    arguments.insert(arguments.begin(), runtime::find_program("nft"));
    if (arguments[0].empty()) return {Error::unavailable(missing_for_proxy())};
    auto output = runtime::run({.argv = std::move(arguments)}, input, kLimit);
    if (!output.ok()) return {output.error()};
    if (output->status.code != 0) {
      // The first words say what and where; the rest repeats the statements.
      const std::string_view words = trim(output->err);
      return {Error::internal(cat("nft: ", words.substr(0, words.find('\n'))))};
    }
    return {success(), std::move(output->out)};
  }
};

}  // namespace

std::unique_ptr<Applier> make_machine_applier() { return std::make_unique<MachineApplier>(); }

std::string missing_for_proxy() {
  return runtime::find_program("nft").empty() ? "nft is not in PATH (Debian: nftables)" : "";
}

Result<std::map<std::string, std::string>> parse_homes(std::string_view text) {
  DIBS_TRY(const json::Value printed, json::parse(text));
  std::map<std::string, std::string> out;
  for (const json::Value& item : printed["nftables"].items()) {
    for (const json::Value& pair : item["map"]["elem"].items()) {
      // With a time that is left an element is {"elem": {"val": …}}.
      const json::Value& key = pair[0].is_string() ? pair[0] : pair[0]["elem"]["val"];
      const json::Value& parts = pair[1]["concat"];
      out[key.str()] = cat(parts[0].as_string(), " . ", parts[1].as_int());
    }
  }
  return out;
}

Result<std::set<std::string>> parse_routes(std::string_view text, std::int64_t metric) {
  std::set<std::string> out;
  if (trim(text).empty()) return out;  // as some releases print no route at all
  DIBS_TRY(const json::Value printed, json::parse(text));
  for (const json::Value& route : printed.items()) {
    const std::string to = route["dst"].str();
    if (route["metric"].as_int() != metric || to == "default") continue;
    out.insert(to.find('/') == std::string::npos ? to + "/32" : to);
  }
  return out;
}

}  // namespace dibs::proxy
