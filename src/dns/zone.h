#pragma once
// The names of a cluster: its Services and their endpoints, as the specification of Kubernetes'
// DNS-based service discovery 1.1.0 has them.
//
//   SERVICE.NS.svc.DOMAIN                     its cluster addresses; headless: of ready endpoints
//   ENDPOINT.SERVICE.NS.svc.DOMAIN            by hostname, or the address with dashes
//   _PORT._PROTOCOL.SERVICE.NS.svc.DOMAIN     SRV
//   A-B-C-D.NS.pod.DOMAIN                     the address that the name says, in a namespace there
//   is D.C.B.A.in-addr.arpa, ….ip6.arpa          PTR of cluster addresses and endpoints
//   dns-version.DOMAIN                        TXT
//
// A change of an object costs what that object holds, not what the zone holds. Thread-safe.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "dns/address.h"
#include "dns/message.h"
#include "json/value.h"

namespace dibs::dns {

struct ZoneOptions {
  std::string domain = "cluster.local";
  /// Of the cluster's name server.
  std::vector<std::string> server_addresses = {};
  /// Reverse names of these are answered here and nowhere else: services' and pods'.
  std::vector<Range> ranges = {};
};

struct Answer {
  Rcode rcode = Rcode::no_error;
  std::vector<Record> answers = {};
  std::vector<Record> authority = {};
  std::vector<Record> additional = {};
  /// The answer is an alias of this name, which was not asked for by itself.
  std::optional<Name> alias = {};
};

class Zone {
 public:
  static constexpr std::uint32_t kTtl = 5;

  /// Errors: a domain that is no name.
  static Result<Name> parse_domain(std::string_view domain);
  /// `options.domain` must be one.
  explicit Zone(ZoneOptions options);

  // Objects as the API has them; what is not as it should be in one is left out.
  void set_namespace(std::string_view name);
  void remove_namespace(std::string_view name);
  void set_service(const json::Value& service);
  void remove_service(const json::Value& service);
  void set_slice(const json::Value& slice);
  void remove_slice(const json::Value& slice);
  /// Everything there is has been told once. Before that, names are not known not to exist.
  void set_complete();

  /// Null when the name is not of this cluster. Server failure before set_complete(). No more than
  /// `most` records are looked for: an answer costs what can be sent of it.
  std::optional<Answer> answer(const Question& question, std::size_t most = 4096) const;

 private:
  struct Port {
    std::string name;
    std::string protocol;  // "tcp"
    std::uint16_t number = 0;
  };
  struct Service {
    std::vector<std::string> addresses;  // empty: headless
    std::string external;
    bool publish_not_ready = false;
    std::vector<Port> ports;
  };
  struct Endpoint {
    std::vector<std::string> addresses;
    std::string hostname;  // "": by address
    bool ready = true;
  };
  struct Slice {
    std::vector<Port> ports;
    std::vector<Endpoint> endpoints;
  };
  using Slices = std::map<std::string, Slice>;  // by key of the slice
  struct Backends {
    const Service* service;
    const Slices* slices;
  };
  struct Asked;

  static std::vector<Port> ports_of(const json::Value& ports, const char* number);
  void forget_service(const std::string& key) DIBS_REQUIRES(mutex_);
  void forget_slice(const std::string& key) DIBS_REQUIRES(mutex_);
  std::optional<Backends> find(const std::string& key) const DIBS_REQUIRES(mutex_);

  void answer_name(Asked& asked, std::vector<std::string_view> labels) const DIBS_REQUIRES(mutex_);
  void answer_apex(Asked& asked) const;
  void answer_server(Asked& asked) const;
  void answer_service(Asked& asked, const std::vector<std::string_view>& labels) const
      DIBS_REQUIRES(mutex_);
  void answer_backends(Asked& asked, const std::string& key, std::string_view endpoint) const
      DIBS_REQUIRES(mutex_);
  void answer_ports(Asked& asked, const std::string& key, std::string_view port,
                    std::string_view protocol) const DIBS_REQUIRES(mutex_);
  void answer_headless_ports(Asked& asked, const std::string& key, const Backends& backends,
                             std::string_view port, std::string_view protocol) const;
  void answer_pod(Asked& asked, const std::vector<std::string_view>& labels) const
      DIBS_REQUIRES(mutex_);
  void answer_reverse(Asked& asked, const std::string& address) const DIBS_REQUIRES(mutex_);
  Name name_of(const std::string& key, std::string_view endpoint = "") const;
  Record start_of_authority() const;

  const ZoneOptions options_;
  const Name domain_;  // in lower case
  const std::size_t domain_labels_;
  const Name server_;
  std::vector<std::string> server_addresses_;

  mutable Mutex mutex_;
  bool complete_ DIBS_GUARDED_BY(mutex_) = false;
  std::set<std::string, std::less<>> namespaces_ DIBS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Service> services_ DIBS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Slices> slices_ DIBS_GUARDED_BY(mutex_);  // by their service
  /// Of which service a slice is.
  std::unordered_map<std::string, std::string> owners_ DIBS_GUARDED_BY(mutex_);
  /// Whose an address is: services, and {service, slice}.
  std::unordered_map<std::string, std::set<std::string>> service_addresses_ DIBS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::set<std::pair<std::string, std::string>>> endpoint_addresses_
      DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::dns
