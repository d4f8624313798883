#include "proxy/machine.h"

#include <fstream>

#include "base/strings.h"
#include "json/parse.h"
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

 private:
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

}  // namespace dibs::proxy
