// A driver that comes, is killed, comes again, tells of its devices' health, and goes.
#include <chrono>
#include <filesystem>
#include <thread>

#include "proto/dra_health.pb.h"
#include "trial/checks.h"

namespace dibs::trial {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Duration kLook = std::chrono::milliseconds(50);
/// So long a driver that answers already may look for its devices.
constexpr Duration kSettled = std::chrono::seconds(5);

Verdict registers(Trial& trial) {
  DIBS_CHECK(trial.start());
  const auto& info = trial.agent.info();
  return cat(info.name, ": ", join(info.versions, ", "));
}

Verdict publishes(Trial& trial) {
  const auto end = Clock::now() + trial.options.start_timeout;
  while (true) {
    DIBS_TRY(const auto slices, trial.stage.slices(trial.driver_name()));
    auto read = read_inventory(slices, trial.stage.node(), trial.stage.node_uid());
    if (read) {
      trial.inventory = std::move(read).value();
      const std::size_t count = trial.inventory.size();
      return cat(count, count == 1 ? " device" : " devices");
    }
    if (!trial.program.is_running() || Clock::now() >= end) {
      return unmet(cat("complete ResourceSlices of node ", trial.stage.node(), " within ",
                       format_duration(trial.options.start_timeout)),
                   read.error().message());
    }
    std::this_thread::sleep_for(kLook);
  }
}

Result<> come_back(Trial& trial) {
  trial.kill();
  auto back = trial.start();
  return back ? std::move(back) : back.error().within("started again after kill -9");
}

Verdict killed(Trial& trial) {
  DIBS_TRY(const auto claim, trial.claim(trial.device()));
  DIBS_TRY(const auto before, trial.prepared_well(claim));
  DIBS_CHECK(come_back(trial));
  const auto after = trial.prepared_well(claim);
  if (!after) return after.error().within("prepared again after kill -9");
  if (text_of(before.devices) != text_of(after->devices)) {
    return unmet(cat("the same answer after kill -9, ", text_of(before.devices)),
                 text_of(after->devices));
  }
  DIBS_CHECK(trial.unprepare(claim));
  DIBS_CHECK(trial.check_gone(claim));
  return "";
}

Verdict killed_unprepare(Trial& trial) {
  DIBS_TRY(const auto claim, trial.claim(trial.device()));
  DIBS_TRY(const auto before, trial.prepared_well(claim));
  DIBS_CHECK(come_back(trial));
  DIBS_CHECK(trial.unprepare(claim.ref, "a claim that was prepared before kill -9"));
  DIBS_CHECK(trial.check_gone(claim));
  return "";
}

constexpr std::pair<std::string_view, const char*> kHealth[] = {
    {"v1.DRAResourceHealth", "/v1.DRAResourceHealth/NodeWatchResources"},
    {"v1alpha1.DRAResourceHealth", "/v1alpha1.DRAResourceHealth/NodeWatchResources"}};

std::string no_health(Trial& trial) {
  for (const auto& [version, method] : kHealth) {
    if (trial.agent.offers(version)) return "";
  }
  return "the driver does not offer it";
}

/// What a stream has brought last; or how it ended.
class Reports {
 public:
  rpc::StreamHandlers handlers() {
    return {[this](std::string_view message) { set(std::string(message)); },
            [this](const rpc::Status& status) {
              set(Error::internal(cat("the stream ended: ", status.text())));
            }};
  }
  /// One that came since the last call.
  std::optional<Result<std::string>> next(Duration timeout) {
    MutexLock lock(mutex_);
    there_.wait_for(lock, timeout, [this]() DIBS_REQUIRES(mutex_) { return last_.has_value(); });
    return std::exchange(last_, std::nullopt);
  }

 private:
  void set(Result<std::string> what) {
    const MutexLock lock(mutex_);
    // Why it ended does not go with what came before.
    if (!last_ || last_->ok()) last_ = std::move(what);
    there_.notify_all();
  }

  Mutex mutex_;
  CondVar there_;
  std::optional<Result<std::string>> last_ DIBS_GUARDED_BY(mutex_);
};

struct Told {
  std::size_t known = 0;  // devices that are published
  std::size_t healthy = 0;
};

Told count_published(const Trial& trial, const dra_health::NodeWatchResourcesResponse& report) {
  Told told;
  for (const auto& one : report.devices()) {
    for (const Offered& offered : trial.inventory) {
      if (one.device().pool_name() != offered.pool) continue;
      if (one.device().device_name() != offered.name()) continue;
      ++told.known;
      told.healthy += one.health() == dra_health::HEALTHY ? 1 : 0;
    }
  }
  return told;
}

/// Reads on until a report has published devices: a driver that has just been started again may
/// answer before it has found them.
Result<Told> read_health(Trial& trial, std::string_view version, const char* method) {
  Reports reports;
  const auto stream = trial.agent.channel().open_stream(method, "", reports.handlers());
  auto came = reports.next(trial.options.call_timeout);
  const std::string expected = cat("a report by ", std::string_view(method).substr(1));
  if (!came) {
    return unmet(expected, cat("none within ", format_duration(trial.options.call_timeout)));
  }
  const auto end = Clock::now() + kSettled;
  while (true) {
    if (!*came) return unmet(expected, came->error().message());
    dra_health::NodeWatchResourcesResponse report;
    if (!report.ParseFromString(**came)) return unmet(expected, "bytes that cannot be decoded");
    const Told told = count_published(trial, report);
    if (told.known > 0) return told;
    came = reports.next(std::max(Duration(0), Duration(end - Clock::now())));
    if (!came) {
      return unmet(cat("devices that are published in the report of ", version),
                   cat("none of them among ", report.devices_size()));
    }
  }
}

Verdict health(Trial& trial) {
  Told told;
  for (const auto& [version, method] : kHealth) {
    if (!trial.agent.offers(version)) continue;
    DIBS_TRY(told, read_health(trial, version, method));
  }
  return cat(told.healthy, " of ", told.known, " healthy");
}

Verdict nothing_left(Trial& trial) {
  for (const auto& [name, text] : trial.cdi_files()) {
    if (trial.idle_cdi.contains(name) && !trial.names_claim(text)) continue;
    return unmet("no CDI file of a claim once all are unprepared", name);
  }
  for (const auto& [name, text] : read_below(trial.stage.plugins())) {
    if (name.ends_with(".log")) continue;
    if (!trial.names_claim(name) && !trial.names_claim(text)) continue;
    return unmet("nothing of a claim in the driver's folder once all are unprepared", name);
  }
  return "";
}

Verdict stops(Trial& trial) {
  const std::string registration = trial.agent.socket();
  const std::string service = trial.agent.info().endpoint;
  const auto status = trial.program.end(trial.options.stop_timeout);
  trial.agent.forget();
  if (!status) {
    trial.program.kill();
    return unmet(cat("an end within ", format_duration(trial.options.stop_timeout), " of SIGTERM"),
                 "none");
  }
  if (status->signal != 0 || status->code != 0) {
    return unmet("status 0 after SIGTERM", text_of(*status));
  }
  for (const auto& socket : {registration, service}) {
    if (!std::filesystem::exists(socket)) continue;
    return unmet("no socket after SIGTERM: its file is what an agent goes by", socket);
  }
  return "";
}

}  // namespace

std::vector<Check> start_checks() {
  return {
      {"registers", "the registration socket appears, GetInfo says what an agent can use",
       registers},
      {"publishes", "complete ResourceSlices of the node, owned by it", publishes},
  };
}

std::vector<Check> life_checks() {
  return {
      {"killed", "killed while a claim is prepared, the driver answers the same again", killed},
      {"killed-unprepare", "killed while a claim is prepared, it takes it back", killed_unprepare},
      {"health", "the stream of health tells of published devices", health, no_health},
      {"nothing-left", "no file tells of a claim once all are unprepared", nothing_left},
      {"stops", "SIGTERM ends it with status 0, and its sockets with it", stops},
  };
}

}  // namespace dibs::trial
