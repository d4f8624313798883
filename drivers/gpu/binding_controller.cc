#include "drivers/gpu/binding_controller.h"

#include "base/log.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "driver/device_status.h"

namespace dibs::drivers {
namespace {

using client::WorkOutcome;
using json::Value;

const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};

}  // namespace

Value with_conditions(const Value& claim, std::string_view driver_name, std::string_view pool,
                      Time now) {
  Value out = claim;
  for (const auto& result : claim["status"]["allocation"]["devices"]["results"].items()) {
    if (result["driver"].as_string() != driver_name) continue;
    if (!pool.empty() && result["pool"].as_string() != pool) continue;
    for (const auto& type : result["bindingConditions"].items()) {
      Value& device =
          driver::device_status(out, driver_name, result["pool"].as_string(),
                                result["device"].as_string(), result["shareID"].as_string());
      if (driver::has_condition(device, type.as_string())) continue;
      driver::set_condition(device, {type.str(), true, "Ready", "Device is ready"}, now);
    }
  }
  return out;
}

struct BindingController::State {
  State(client::Client& api, runtime::Runtime& runtime, std::string driver_name, std::string pool)
      : api(api),
        runtime(runtime),
        driver_name(std::move(driver_name)),
        pool(std::move(pool)),
        queue(runtime, {}, [this](const std::string& key) { return work(key); }) {}

  WorkOutcome work(const std::string& key) {
    const auto claim = informer->get(key);
    if (!claim) return WorkOutcome::done();
    const Value wanted = with_conditions(*claim, driver_name, pool, runtime.clock.now());
    if (wanted == *claim) return WorkOutcome::done();
    auto written = api.update_status(kClaims, client::split_key(key).first, wanted);
    if (written || written.error().code() == Code::not_found) return WorkOutcome::done();
    log::warn("binding condition not written", {{"claim", key}, {"error", written.error()}});
    return WorkOutcome::retry();
  }

  void begin() {
    client::InformerOptions options;
    options.gvr = kClaims;
    informer = std::make_unique<client::Informer>(api, runtime, options);
    client::InformerHandlers handlers;
    handlers.added = [this](const Value& claim, bool) { queue.add(client::key_of(claim)); };
    handlers.updated = [this](const Value&, const Value& claim) {
      queue.add(client::key_of(claim));
    };
    informer->add_handler(std::move(handlers));
    informer->start();
  }

  client::Client& api;
  runtime::Runtime& runtime;
  const std::string driver_name;
  const std::string pool;
  std::unique_ptr<client::Informer> informer;
  client::WorkQueue queue;
};

BindingController::BindingController(client::Client& api, runtime::Runtime& runtime,
                                     std::string driver_name, std::string pool)
    : state_(std::make_unique<State>(api, runtime, std::move(driver_name), std::move(pool))) {}

BindingController::~BindingController() { stop(); }

void BindingController::start() { state_->begin(); }

void BindingController::stop() {
  state_->queue.stop();
  if (state_->informer) state_->informer->stop();
}

}  // namespace dibs::drivers
