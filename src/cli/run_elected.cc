#include "cli/run_elected.h"

#include <atomic>
#include <utility>

#include "base/strings.h"
#include "cli/process.h"
#include "client/https_transport.h"
#include "client/refusals.h"

namespace dibs::cli {
namespace {

/// What was given, where something was.
template <typename Value>
void take(Value& value, const Value& given) {
  if (given != Value{}) value = given;
}

}  // namespace

Result<client::LeaderElectionOptions> election_of(const ElectionFlags& flags,
                                                  client::LeaderElectionOptions otherwise,
                                                  runtime::Random& random) {
  take(otherwise.lease_duration, flags.lease_duration);
  take(otherwise.renew_deadline, flags.renew_deadline);
  take(otherwise.retry_period, flags.retry_period);
  take(otherwise.name, flags.name);
  take(otherwise.name_space, flags.name_space);
  otherwise.identity = cat(host_name(), '_', runtime::make_uuid(random));
  if (auto checked = otherwise.check(); !checked) return checked.error().within("--leader-elect");
  return otherwise;
}

Result<> run_elected(const client::LeaderElectionOptions& election,
                     client::LeaderCallbacks callbacks, const client::Access& access,
                     runtime::Files& files, runtime::Runtime& runtime, std::string user_agent) {
  client::HttpsOptions https;
  https.user_agent = std::move(user_agent);
  https.timeout = election.renew_deadline / 2;
  DIBS_TRY(auto connection, client::make_https_transport(access, files, runtime, https));
  const auto transport = client::warn_of_refusals(std::move(connection), runtime);
  client::Client client(*transport);
  std::atomic<bool> ending = false;
  std::atomic<bool> lost = false;
  callbacks.stopped = [&ending, &lost, stopped = std::move(callbacks.stopped)] {
    stopped();
    if (ending) return;
    lost = true;
    end_from_within();
  };
  client::LeaderElector elector(client, runtime, election, std::move(callbacks));
  elector.start();
  const auto limit = hurry(wait_for_end());
  ending = true;
  elector.stop();
  if (!lost) return success();
  return Error::unavailable(
      cat("leader election lost: lease ", election.name_space, "/", election.name));
}

}  // namespace dibs::cli
