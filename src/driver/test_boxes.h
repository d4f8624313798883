#pragma once
// For tests of a classic driver's controller: a driver of boxes, a world with classes, claims, pods
// and their contexts, and a way to the API server that breaks at a chosen write.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/strings.h"
#include "driver/allocator.h"
#include "driver/claim_sync.h"
#include "driver/test_world.h"

namespace dibs::driver::test {

inline constexpr std::string_view kDriver = "boxes.example.com";
inline constexpr std::string_view kFinalizer = "boxes.example.com/deletion-protection";
inline const client::Gvr kClaims2 = kClassicClaims;
inline const client::Gvr kPods = {"", "v1", "pods"};

/// Gives every claim a box of its own: "node-0/box-1". Knows nothing but what it is told.
class Boxes : public Allocator {
 public:
  enum class Mood : std::uint8_t { good, throws, forgets };

  std::map<std::string, int> per_node = {{"node-0", 2}, {"node-1", 2}};
  Mood mood = Mood::good;
  std::vector<std::string> calls;

  Result<json::Value> class_parameters(const json::Value& resource_class,
                                       ObjectFinder& objects) override {
    const json::Value& reference = resource_class["parametersRef"];
    return objects.parameters(reference, reference["namespace"].as_string(), {{"", "ConfigMap"}});
  }

  std::vector<Result<Allocation>> allocate(const std::vector<PendingClaim>& claims,
                                           const std::string& node, const Taken& taken) override {
    calls.push_back(cat("allocate", names(claims), " on '", node, "'"));
    if (mood == Mood::throws) throw std::runtime_error("splinters");
    if (mood == Mood::forgets) return {};
    std::set<std::string> used = used_by(taken);
    std::vector<Result<Allocation>> out;
    for (const auto& claim : claims) {
      if (client::name_of(claim.claim) == "unlucky") {
        out.push_back(Error::invalid("bad luck"));
        continue;
      }
      out.push_back(pick(claim.class_parameters["data"]["prefix"].str(), node, used));
    }
    return out;
  }

  Result<> deallocate(const json::Value& claim) override {
    const auto handles = handles_of(claim, kDriver);
    calls.push_back(cat("deallocate ", client::name_of(claim), " of ",
                        handles.empty() ? "nothing" : handles[0].data));
    return success();
  }

  Result<Unsuitable> unsuitable_nodes(const json::Value& pod,
                                      const std::vector<PendingClaim>& claims,
                                      const std::vector<std::string>& nodes,
                                      const Taken& taken) override {
    std::string call = cat("unsuitable ", client::name_of(pod), names(claims), " of");
    for (const auto& node : nodes) append(call, " ", node);
    calls.push_back(call);
    std::vector<std::string> bad;
    for (const auto& node : nodes) {
      std::set<std::string> used = used_by(taken);
      const bool fits = std::all_of(claims.begin(), claims.end(),
                                    [&](const PendingClaim&) { return pick("", node, used).ok(); });
      if (!fits) bad.push_back(node);
    }
    Unsuitable out{NodeLists(claims.size(), bad)};
    for (const auto& node : bad) out.reasons[node] = "no box is free";
    return out;
  }

 private:
  static std::string names(const std::vector<PendingClaim>& claims) {
    std::string out;
    for (const auto& claim : claims) append(out, " ", client::name_of(claim.claim));
    return out;
  }

  static std::set<std::string> used_by(const Taken& taken) {
    std::set<std::string> used;
    for (const auto& claim : taken) {
      for (const auto& handle : handles_of(claim, kDriver)) used.insert(handle.data);
    }
    return used;
  }

  Result<Allocation> pick(const std::string& prefix, const std::string& node,
                          std::set<std::string>& used) const {
    for (const auto& [name, count] : per_node) {
      if (!node.empty() && name != node) continue;
      for (int i = 0; i < count; ++i) {
        const std::string box = cat(prefix, name, "/box-", i);
        if (!used.insert(box).second) continue;
        return Allocation{{box}, only_on(name), false};
      }
    }
    return Error::invalid("no box is free");
  }
};

class ControllerWorld : public TestWorld {
 public:
  explicit ControllerWorld(const std::string& release) : ControllerWorld(options_of(release)) {}
  explicit ControllerWorld(cluster::Options options) : TestWorld(std::move(options)) {
    create(kNodes, "", "{'metadata': {'name': 'node-1'}}");
    // Where there are controllers they may have been faster.
    (void)api->create({"", "v1", "serviceaccounts"}, "default",
                      from_text("{'metadata': {'name': 'default'}}"));
  }

  void make_class(const std::string& name = "boxes", std::string_view driver = kDriver,
                  const std::string& more = "") {
    create(kClassicClasses, "",
           cat("{'metadata': {'name': '", name, "'},", more, "'driverName': '", driver, "'}"));
  }

  json::Value make_claim(const std::string& name, const std::string& mode = "WaitForFirstConsumer",
                         const json::Value* owner = nullptr, const std::string& more = "") {
    json::Value claim = from_text(cat("{'metadata': {'name': '", name,
                                      "'}, 'spec': {'resourceClassName': 'boxes', "
                                      "'allocationMode': '",
                                      mode, "'", more, "}}"));
    if (owner != nullptr) {
      claim.mut("metadata").set("ownerReferences", json::Value::array({reference(*owner)}));
    }
    return expect(api->create(kClaims2, "default", claim));
  }

  /// Entries are named as the claims, a second one of the same claim "c-1".
  json::Value make_pod(const std::string& name, const std::vector<std::string>& claims) {
    std::string entries;
    std::set<std::string> seen;
    for (const auto& claim : claims) {
      const std::string entry = seen.insert(claim).second ? claim : claim + "-1";
      append(entries, entries.empty() ? "" : ", ", "{'name': '", entry, "', ",
             source(cat("'resourceClaimName': '", claim, "'")), "}");
    }
    return make_pod_with(name, entries);
  }
  json::Value make_pod_with_template(const std::string& name, const std::string& entry) {
    return make_pod_with(
        name, cat("{'name': '", entry, "', ", source("'resourceClaimTemplateName': 't'"), "}"));
  }

  void make_context(const std::string& pod, const std::string& selected,
                    const std::vector<std::string>& potential, const std::string& uid = "") {
    json::Value context = from_text(cat("{'metadata': {'name': '", pod, "'}, 'spec': {}}"));
    if (!selected.empty()) context.mut("spec").set("selectedNode", selected);
    for (const auto& node : potential) context.mut("spec").mut("potentialNodes").push(node);
    json::Value owner = uid.empty() ? reference(get(kPods, "default", pod))
                                    : json::Value::object({{"apiVersion", "v1"},
                                                           {"kind", "Pod"},
                                                           {"name", pod},
                                                           {"uid", uid},
                                                           {"controller", true}});
    context.mut("metadata").set("ownerReferences", json::Value::array({owner}));
    expect(api->create(kContexts, "default", context));
  }

  json::Value claim(const std::string& name) { return get(kClaims2, "default", name); }
  json::Value context(const std::string& name) { return get(kContexts, "default", name); }

  /// Handles of all claims, sorted: one that stands there twice was given away twice.
  std::vector<std::string> boxes_in_use() {
    std::vector<std::string> boxes;
    for (const auto& claim : list(kClaims2, "default")) {
      if (!claim["status"]["allocation"].is_object()) continue;
      for (const auto& handle : handles_of(claim, kDriver)) boxes.push_back(handle.data);
    }
    std::sort(boxes.begin(), boxes.end());
    return boxes;
  }

  Environment environment_over(client::Client& client) {
    return {client, sim.runtime(), *files, nullptr, {}};
  }
  /// As system:admin, for a client of one's own.
  client::Transport& way() { return *transport_; }

 protected:
  static cluster::Options options_of(const std::string& release) {
    cluster::Options options;
    options.server.release = release;
    if (!release.empty()) {
      options.server.feature_gates = "DynamicResourceAllocation=true";
      options.server.runtime_config = "resource.k8s.io/v1alpha2=true";
    }
    return options;
  }

 private:
  static json::Value reference(const json::Value& pod) {
    return json::Value::object({{"apiVersion", "v1"},
                                {"kind", "Pod"},
                                {"name", pod["metadata"]["name"]},
                                {"uid", pod["metadata"]["uid"]},
                                {"controller", true}});
  }
  static std::string source(const std::string& text) {
    return cat("'source': {", text, "}, ", text);
  }
  json::Value make_pod_with(const std::string& name, const std::string& entries) {
    return create(kPods, "default",
                  cat("{'metadata': {'name': '", name, "'}, 'spec': {'resourceClaims': [", entries,
                      "], 'containers': [{'name': 'c', 'image': 'i'}]}}"));
  }
};

/// A way to the server that dies at a write: from then on nothing gets through, as for a process
/// that is killed. The write itself may still arrive (`arrives`), with its answer lost. One that
/// `recovers` loses nothing else, as when the server was killed.
class DyingTransport : public client::Transport {
 public:
  DyingTransport(client::Transport& inner, int writes, bool arrives, bool recovers = false)
      : inner_(inner), left_(writes), arrives_(arrives), recovers_(recovers) {}

  /// Creates and patches count as well, not only updates.
  void count_all_writes() { all_ = true; }
  bool died() const { return last_.has_value(); }
  /// The write that it died at.
  const std::optional<client::Request>& last() const { return last_; }

  Result<client::Response> send(client::Request request) override {
    if (dead_) return lost();
    if (is_counted(request) && left_-- == 0) {
      dead_ = !recovers_;
      last_ = request;
      if (arrives_) (void)inner_.send(std::move(request));
      return lost();
    }
    return inner_.send(std::move(request));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    if (!dead_) inner_.send_async(std::move(request), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    if (dead_) return nullptr;
    return inner_.open_stream(std::move(request), std::move(handlers));
  }

 private:
  static Error lost() { return Error::unavailable("connection lost"); }
  /// Not the lease, which is renewed again and again, and no events.
  bool is_counted(const client::Request& request) const {
    if (request.method == "GET" || request.target.find("/leases/") != std::string::npos ||
        request.target.find("/events") != std::string::npos) {
      return false;
    }
    return all_ || request.method == "PUT";
  }

  client::Transport& inner_;
  int left_;
  const bool arrives_;
  const bool recovers_;
  bool all_ = false;
  bool dead_ = false;
  std::optional<client::Request> last_;
};

}  // namespace dibs::driver::test
