// ServiceCIDRs: says that a range is ready to be used, and keeps one that is deleted until no
// Service has an address of it alone.
#include <algorithm>

#include "base/finalizers.h"
#include "base/ipv4.h"
#include "base/strings.h"
#include "controllers/controllers.h"

namespace dibs::controllers {
namespace {

const Gvr kCidrs = {"networking.k8s.io", "v1", "servicecidrs"};
const Gvr kAddresses = {"networking.k8s.io", "v1", "ipaddresses"};
constexpr std::string_view kManagedBy = "ipaddress.kubernetes.io/managed-by";
constexpr std::string_view kAllocator = "ipallocator.k8s.io";
constexpr std::string_view kFinalizer = "networking.k8s.io/service-cidr-finalizer";
constexpr const char* kManager = "service-cidr-controller";
/// Until every server has seen that the range is going, one may still give addresses out of it.
constexpr Duration kDeletionGrace = std::chrono::seconds(10);

bool has_finalizer(const Value& cidr) {
  const auto& list = cidr["metadata"]["finalizers"].items();
  return std::find(list.begin(), list.end(), Value(kFinalizer)) != list.end();
}

/// Ranges of the other family give out nothing here, so nothing depends on them.
std::vector<Ipv4Range> ranges_of(const Value& cidr) {
  std::vector<Ipv4Range> out;
  for (const Value& text : cidr["spec"]["cidrs"].items()) {
    if (const auto range = Ipv4Range::parse(text.as_string()); range.ok()) out.push_back(*range);
  }
  return out;
}

bool contains(const Value& cidr, std::uint32_t address) {
  for (const Ipv4Range& range : ranges_of(cidr)) {
    if (range.contains(address)) return true;
  }
  return false;
}

class ServiceCidrs : public Controller {
 public:
  explicit ServiceCidrs(Environment& environment)
      : environment_(environment),
        cidrs_(environment.informers.of(kCidrs)),
        addresses_(environment.informers.of(kAddresses)),
        loop_(
            environment, "service-cidrs", [this](const std::string& key) { return reconcile(key); },
            1) {
    // A range that comes or goes decides about those that overlap it.
    loop_.follow(cidrs_, [this](const Value& cidr) {
      loop_.add(client::key_of(cidr));
      add_deleted();
    });
    loop_.follow(addresses_, [this](const Value&) { add_deleted(); });
  }

  void stop() override { loop_.stop(); }

 private:
  void add_deleted() {
    for (const Value& cidr : cidrs_.list()) {
      if (is_deleting(cidr)) loop_.add(client::key_of(cidr));
    }
  }

  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto cidr = cidrs_.get(key);
    if (!cidr) return done();
    if (is_deleting(*cidr)) return finish(*cidr);
    if (!has_finalizer(*cidr)) {
      DIBS_CHECK(patch(*cidr, Value::object({{"finalizers", Value::array({kFinalizer})}})));
    }
    return tell(*cidr, "True", "", "Kubernetes Service CIDR is ready");
  }

  Result<WorkOutcome> finish(const Value& cidr) {
    if (!has_finalizer(cidr)) return done();
    if (is_needed(cidr)) {
      return tell(cidr, "False", "Terminating",
                  "There are still IPAddresses referencing the ServiceCIDR, please remove them or "
                  "create a new ServiceCIDR");
    }
    const auto asked = parse_rfc3339(cidr["metadata"]["deletionTimestamp"].as_string());
    const Duration passed = asked.ok() ? environment_.runtime.clock.now() - *asked : kDeletionGrace;
    if (passed < kDeletionGrace) return WorkOutcome::again_after(kDeletionGrace - passed);
    DIBS_CHECK(patch(cidr, Value::object({{"$deleteFromPrimitiveList/finalizers",
                                           Value::array({kFinalizer})}})));
    return done();
  }

  /// Some Service's address is in no other range. What others reserve keeps no range, as upstream.
  bool is_needed(const Value& going) const {
    const auto others = cidrs_.list();
    for (const Value& address : addresses_.list()) {
      if (address["metadata"]["labels"][kManagedBy].as_string() != kAllocator) continue;
      const auto number = parse_ipv4(name_of(address));
      if (!number || !contains(going, *number)) continue;
      const bool elsewhere = std::any_of(others.begin(), others.end(), [&](const Value& other) {
        return name_of(other) != name_of(going) && contains(other, *number);
      });
      if (!elsewhere) return true;
    }
    return false;
  }

  Result<> patch(const Value& cidr, Value metadata) {
    auto written =
        environment_.client.patch(kCidrs, "", name_of(cidr), client::PatchType::strategic,
                                  Value::object({{"metadata", std::move(metadata)}}));
    if (written.ok() || is_gone(written.error())) return success();
    return written.error();
  }

  Result<WorkOutcome> tell(const Value& cidr, std::string_view status, std::string_view reason,
                           std::string_view message) {
    const Value& known = find_condition(cidr, "Ready");
    // The server's own is ready in other words.
    if (known["status"].as_string() == status && known["reason"].as_string() == reason &&
        (known["message"].as_string() == message || status == "True"))
      return done();
    const Value condition =
        Value::object({{"type", "Ready"},
                       {"status", status},
                       {"reason", reason},
                       {"message", message},
                       {"lastTransitionTime", format_rfc3339(environment_.runtime.clock.now())}});
    const Value wanted =
        Value::object({{"apiVersion", "networking.k8s.io/v1"},
                       {"kind", "ServiceCIDR"},
                       {"metadata", Value::object({{"name", name_of(cidr)}})},
                       {"status", Value::object({{"conditions", Value::array({condition})}})}});
    client::WriteOptions options;
    options.field_manager = kManager;
    options.force = true;
    options.subresource = "status";
    auto written = environment_.client.patch(kCidrs, "", name_of(cidr), client::PatchType::apply,
                                             wanted, options);
    if (written.ok() || is_gone(written.error())) return done();
    return written.error();
  }

  Environment& environment_;
  client::Informer& cidrs_;
  client::Informer& addresses_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_service_cidr_controller(Environment& environment) {
  // Releases before 1.33 have one range, for ever.
  if (!environment.discovery.serves("networking.k8s.io", "servicecidrs")) return nullptr;
  return std::make_unique<ServiceCidrs>(environment);
}

}  // namespace dibs::controllers
