#include "cli/run_controllers.h"

#include "cli/account_clients.h"
#include "cli/process.h"
#include "client/https_transport.h"
#include "controllers/controllers.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

Result<> run_until_signal(const ControllersFlags& flags) {
  runtime::Files& files = runtime::system_files();
  runtime::RealRuntime runtime;
  DIBS_TRY(
      const client::LeaderElectionOptions election,
      election_of(flags.election, {.name = "kube-controller-manager"}, runtime.runtime().random));
  DIBS_TRY(const client::Access access, find_access(flags.kubeconfig, flags.context));
  client::HttpsOptions https;
  https.user_agent = "kube-controller-manager";
  DIBS_TRY(auto transport,
           client::make_https_transport(access, files, runtime.runtime(), std::move(https)));
  client::Client client(*transport);
  controllers::ControllersOptions options;
  options.ca_pem = access.tls.ca_pem;
  options.node_monitor_grace_period = flags.grace_period;
  std::unique_ptr<AccountClients> accounts;
  if (flags.use_accounts) {
    DIBS_TRY(accounts, AccountClients::open(client, access, files, runtime.runtime(),
                                            controllers::controller_accounts()));
    options.clients = accounts->clients();
  }
  controllers::Controllers controllers(client, runtime.runtime(), options);
  if (!flags.election.elect) {
    controllers.start();
    wait_for_end();
    controllers.stop();
    return success();
  }
  return run_elected(election, client::while_leading(controllers), access, files, runtime.runtime(),
                     "kube-controller-manager/leader-election");
}

}  // namespace

int run_controllers(const ControllersFlags& flags) {
  begin_process(flags.log_level);
  return exit_status("controllers", run_until_signal(flags));
}

}  // namespace dibs::cli
