#include "driver/generated_parameters.h"

#include <optional>

#include "base/log.h"
#include "base/strings.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "driver/guarded.h"
#include "driver/own_writes.h"

namespace dibs::driver {
namespace {

using client::WorkOutcome;
using json::Value;

constexpr const char* kByVendor = "vendor";
/// No object has this key: it stands for what comes before all of them.
constexpr const char* kBegin = "";
constexpr Duration kKindPoll = std::chrono::seconds(2);
constexpr Duration kSyncPoll = std::chrono::milliseconds(20);
constexpr std::size_t kLongestName = 240;

/// All that is wanted is there; a server adds what it pleases.
bool covers(const Value& there, const Value& wanted) {
  if (wanted.is_object()) {
    for (const auto& [key, value] : wanted.members()) {
      if (!covers(there[key], value)) return false;
    }
    return there.is_object() || wanted.empty();
  }
  if (wanted.is_array() && there.is_array() && wanted.size() == there.size()) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!covers(there[i], wanted[i])) return false;
    }
    return true;
  }
  return there == wanted;
}

}  // namespace

struct GeneratedParameters::State {
  State(Generate given, Environment& environment, GeneratedParametersOptions given_options)
      : generate(std::move(given)),
        api(environment.api),
        runtime(environment.runtime),
        options(std::move(given_options)),
        gvr{"resource.k8s.io", "v1alpha2",
            options.of_classes ? "resourceclassparameters" : "resourceclaimparameters"},
        kind(options.of_classes ? "ResourceClassParameters" : "ResourceClaimParameters"),
        finder(api),
        events(api, runtime,
               {.controller = cat("resource driver ", options.driver_name), .core = true}) {}

  const Generate generate;
  client::Client& api;
  runtime::Runtime& runtime;
  const GeneratedParametersOptions options;
  const client::Gvr gvr;
  const std::string kind;
  // Only the queue's work touches these, one at a time.
  ObjectFinder finder;
  client::EventRecorder events;
  std::unique_ptr<client::Informer> vendors;
  std::unique_ptr<client::Informer> made;
  std::unique_ptr<OwnWrites> written;
  std::unique_ptr<client::WorkQueue> queue;

  WorkOutcome work(const std::string& key);
  Result<> begin();
  Result<> sync(const std::string& key);
  Result<> write(const Value& vendor, const std::string& name, const Value& content,
                 const std::optional<Value>& before);
  Result<> remove(const Value& object);
  std::string vendor_key(const Value& object) const;
  bool is_made_here(const Value& object) const;
  std::string place_of(const Value& vendor) const;
  void warn(const Value& vendor, const Error& error);
};

/// The key of what an object was made from.
std::string GeneratedParameters::State::vendor_key(const Value& object) const {
  const Value& from = object["generatedFrom"];
  return client::key_of(
      options.of_classes ? from["namespace"].as_string() : client::namespace_of(object),
      from["name"].as_string());
}

bool GeneratedParameters::State::is_made_here(const Value& object) const {
  const Value& from = object["generatedFrom"];
  if (from["kind"].as_string() != options.kind.kind ||
      from["apiGroup"].as_string() != options.kind.group) {
    return false;
  }
  for (const auto& owner : object["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].as_bool() && owner["kind"].as_string() == options.kind.kind) {
      return true;
    }
  }
  return false;
}

std::string GeneratedParameters::State::place_of(const Value& vendor) const {
  const auto own = client::namespace_of(vendor);
  return own.empty() ? options.name_space : std::string(own);
}

Result<> GeneratedParameters::State::begin() {
  DIBS_TRY(const ServedKind served, finder.kind(options.kind));
  client::InformerOptions watch;
  watch.gvr = served.gvr;
  vendors = std::make_unique<client::Informer>(api, runtime, watch);
  watch.gvr = gvr;
  made = std::make_unique<client::Informer>(api, runtime, watch);
  made->add_index(kByVendor, [this](const Value& object) -> std::vector<std::string> {
    if (!is_made_here(object)) return {};
    return {vendor_key(object)};
  });
  written = std::make_unique<OwnWrites>(*made);
  const auto look = [this](const Value& vendor) { queue->add(client::key_of(vendor)); };
  vendors->add_handler({.added = [look](const Value& vendor, bool) { look(vendor); },
                        .updated = [look](const Value&, const Value& vendor) { look(vendor); },
                        .removed = look});
  const auto look_back = [this](const Value& object) {
    if (is_made_here(object)) queue->add(vendor_key(object));
  };
  made->add_handler(
      {.added = [look_back](const Value& object, bool) { look_back(object); },
       .updated = [look_back](const Value&, const Value& object) { look_back(object); },
       .removed = look_back});
  vendors->start();
  made->start();
  return success();
}

WorkOutcome GeneratedParameters::State::work(const std::string& key) {
  if (key == kBegin) {
    const auto begun = begin();
    if (begun) return WorkOutcome::done();
    log::info("waits for the kind of its parameters", {{"error", begun.error()}});
    return WorkOutcome::again_after(kKindPoll);
  }
  if (!vendors->synced() || !made->synced()) return WorkOutcome::again_after(kSyncPoll);
  const auto synced = sync(key);
  if (synced) return WorkOutcome::done();
  const Code code = synced.error().code();
  if (code != Code::conflict && code != Code::already_exists) {
    log::warn("parameters are not in step", {{"object", key}, {"error", synced.error()}});
    if (const auto vendor = vendors->get(key)) warn(*vendor, synced.error());
  }
  return WorkOutcome::retry();
}

void GeneratedParameters::State::warn(const Value& vendor, const Error& error) {
  client::EventInput event;
  event.regarding = client::object_reference(vendor);
  event.warning = true;
  event.reason = "Failed";
  event.note = error.message();
  events.record(std::move(event));
}

Result<> GeneratedParameters::State::sync(const std::string& key) {
  const auto vendor = vendors->get(key);
  const bool gone = !vendor || !(*vendor)["metadata"]["deletionTimestamp"].as_string().empty();
  std::optional<Error> failed;
  Value content;
  if (!gone) {
    auto generated = guarded([&] { return generate(*vendor); });
    if (generated) {
      content = std::move(generated).value();
    } else {
      failed = generated.error();
    }
  }
  const bool wanted = !gone && !failed;
  // An object that takes the place of another has another uid: so has what is made from it.
  const std::string name = wanted ? cat(client::name_of(*vendor).substr(0, kLongestName), "-",
                                        client::uid_of(*vendor).substr(0, 8))
                                  : "";
  std::optional<Value> there;
  for (const auto& object : written->by_index(kByVendor, key)) {
    if (!is_made_here(object) || vendor_key(object) != key) continue;
    if (wanted && client::name_of(object) == name &&
        client::namespace_of(object) == place_of(*vendor)) {
      there = object;
    } else {
      DIBS_CHECK(remove(object));
    }
  }
  if (wanted) DIBS_CHECK(write(*vendor, name, content, there));
  if (failed) return *failed;
  return success();
}

Result<> GeneratedParameters::State::write(const Value& vendor, const std::string& name,
                                           const Value& content,
                                           const std::optional<Value>& before) {
  Value from = Value::object({{"kind", options.kind.kind}, {"name", vendor["metadata"]["name"]}});
  if (!options.kind.group.empty()) from.set("apiGroup", options.kind.group);
  if (options.of_classes && !client::namespace_of(vendor).empty()) {
    from.set("namespace", vendor["metadata"]["namespace"]);
  }
  Value wanted = content;
  wanted.set("generatedFrom", std::move(from));
  if (before && covers(*before, wanted)) return success();
  const std::string place = place_of(vendor);
  Value metadata;
  if (before) {
    metadata = (*before)["metadata"];
  } else {
    const Value owner = Value::object({{"apiVersion", vendor["apiVersion"]},
                                       {"kind", options.kind.kind},
                                       {"name", vendor["metadata"]["name"]},
                                       {"uid", vendor["metadata"]["uid"]},
                                       {"controller", true}});
    metadata = Value::object(
        {{"name", name}, {"namespace", place}, {"ownerReferences", Value::array({owner})}});
  }
  wanted.set("apiVersion", "resource.k8s.io/v1alpha2");
  wanted.set("kind", kind);
  wanted.set("metadata", std::move(metadata));
  DIBS_TRY(const Value now,
           before ? api.update(gvr, place, wanted) : api.create(gvr, place, wanted));
  written->note(now);
  return success();
}

Result<> GeneratedParameters::State::remove(const Value& object) {
  client::DeleteOptions precise;
  precise.uid = client::uid_of(object);
  const auto removed =
      api.remove(gvr, client::namespace_of(object), client::name_of(object), precise);
  // A collector of garbage may have been faster.
  if (!removed && removed.error().code() != Code::not_found &&
      removed.error().code() != Code::conflict) {
    return removed.error();
  }
  return success();
}

GeneratedParameters::GeneratedParameters() = default;

GeneratedParameters::~GeneratedParameters() { stop(); }

std::unique_ptr<GeneratedParameters> GeneratedParameters::start(
    Generate generate, Environment environment, GeneratedParametersOptions options) {
  std::unique_ptr<GeneratedParameters> out(new GeneratedParameters());
  out->state_ = std::make_unique<State>(std::move(generate), environment, std::move(options));
  State& state = *out->state_;
  state.queue = std::make_unique<client::WorkQueue>(
      state.runtime, client::WorkQueueOptions(),
      client::WorkQueue::Work([&state](const std::string& key) { return state.work(key); }));
  state.queue->add(kBegin);
  return out;
}

void GeneratedParameters::stop() {
  if (!state_) return;
  state_->queue->stop();
  if (state_->vendors) state_->vendors->stop();
  if (state_->made) state_->made->stop();
}

}  // namespace dibs::driver
