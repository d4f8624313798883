#include "cli/run_controllers.h"

#include <optional>

#include "api/schema/features.h"
#include "base/strings.h"
#include "cli/account_clients.h"
#include "cli/part_port.h"
#include "cli/process.h"
#include "cli/starting.h"
#include "cli/values.h"
#include "client/https_transport.h"
#include "client/refusals.h"
#include "controllers/controllers.h"
#include "net/jwt.h"
#include "net/x509.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

/// The file that a flag names, if it does.
Result<> read_pem(runtime::Files& files, const char* flag, const std::string& path,
                  std::string& out) {
  if (path.empty()) return success();
  auto text = files.read(path);
  if (!text.ok()) return as_usage(text.error(), flag);
  out = std::move(text).value();
  return success();
}

/// Keys that work only together, and each only where it can be read.
Result<> read_keys(const ControllersFlags& flags, runtime::Files& files,
                   controllers::ControllersOptions& options) {
  DIBS_CHECK(read_pem(files, "--service-account-private-key-file", flags.account_key_file,
                      options.account_key_pem));
  if (!flags.account_key_file.empty()) {
    if (auto signer = net::JwtSigner::open(options.account_key_pem); !signer.ok())
      return as_usage(signer.error(), "--service-account-private-key-file");
  }
  if (flags.signing_certificate_file.empty() != flags.signing_key_file.empty()) {
    return Error::bad_request(
        "--cluster-signing-cert-file, --cluster-signing-key-file: one without the other");
  }
  net::Credential& ca = options.signing_ca;
  DIBS_CHECK(read_pem(files, "--cluster-signing-cert-file", flags.signing_certificate_file,
                      ca.certificate_pem));
  DIBS_CHECK(read_pem(files, "--cluster-signing-key-file", flags.signing_key_file, ca.key_pem));
  if (ca.certificate_pem.empty() && ca.key_pem.empty()) return success();
  if (auto info = net::parse_certificate(ca.certificate_pem); !info.ok())
    return as_usage(info.error(), "--cluster-signing-cert-file");
  if (!net::is_private_key(ca.key_pem))
    return Error::bad_request("--cluster-signing-key-file: no PEM key found");
  // Now, not when the first certificate is asked for.
  if (auto good = net::check_authority(ca); !good.ok())
    return as_usage(good.error(), "--cluster-signing-cert-file, --cluster-signing-key-file");
  return success();
}

Result<> run_until_signal(const ControllersFlags& flags) {
  auto interruption = std::make_optional<Interruption>("controllers");
  DIBS_CHECK(check_part_port(flags.metrics_address));
  runtime::Files& files = runtime::system_files();
  DIBS_TRY(const api::Features gates, parse_gates(flags.release, flags.feature_gates));
  controllers::ControllersOptions options;
  controllers::follow_gates(gates, options);
  DIBS_CHECK(check_autoscaler(flags.autoscaler));
  options.autoscaler = flags.autoscaler;
  DIBS_CHECK(read_keys(flags, files, options));
  runtime::RealRuntime runtime;
  DIBS_TRY(
      client::LeaderElectionOptions election,
      election_of(flags.election, {.name = "kube-controller-manager"}, runtime.runtime().random));
  DIBS_TRY(const client::Access access, find_access(flags.kubeconfig, flags.context));
  client::HttpsOptions https;
  https.user_agent = "kube-controller-manager";
  DIBS_TRY(auto connection,
           client::make_https_transport(access, files, runtime.runtime(), std::move(https)));
  const auto transport = client::warn_of_refusals(std::move(connection), runtime.runtime());
  client::Client client(*transport);
  options.ca_pem = access.tls.ca_pem;
  options.node_monitor_grace_period = flags.grace_period;
  std::unique_ptr<AccountClients> accounts;
  if (flags.use_accounts) {
    DIBS_TRY(accounts, AccountClients::open(client, access, files, runtime.runtime(),
                                            controllers::controller_accounts()));
    options.clients = accounts->clients();
  }
  metrics::Registry registry;
  options.metrics = &registry;
  election.metrics = &registry;
  controllers::Controllers controllers(client, runtime.runtime(), options);
  LeadingPart part(controllers);
  DIBS_TRY(const auto port,
           open_part_port(flags.metrics_address, registry, [&part] { return part.ready(); }));
  interruption.reset();
  if (!flags.election.elect) {
    part.start();
    const auto limit = hurry(wait_for_end());
    part.stop();
    return success();
  }
  return run_elected(election, client::while_leading(part), access, files, runtime.runtime(),
                     "kube-controller-manager/leader-election");
}

}  // namespace

Result<> check_autoscaler(const controllers::AutoscalerOptions& options) {
  const auto wrong = [](const char* flag, const std::string& value, const char* rule) {
    return Error::bad_request(cat("--horizontal-pod-autoscaler-", flag, " ", value, ": ", rule));
  };
  if (options.sync_period < std::chrono::seconds(1))
    return wrong("sync-period", format_duration(options.sync_period), "must be 1s or more");
  if (!(options.tolerance >= 0))
    return wrong("tolerance", std::to_string(options.tolerance), "must be 0 or more");
  for (const auto& [flag, value] :
       {std::pair("downscale-stabilization", options.downscale_stabilization),
        {"cpu-initialization-period", options.cpu_initialization_period},
        {"initial-readiness-delay", options.initial_readiness_delay}}) {
    if (value < Duration(0)) return wrong(flag, format_duration(value), "must be 0 or more");
  }
  return success();
}

int run_controllers(const ControllersFlags& flags) {
  begin_process(flags.log_level);
  return exit_status("controllers", run_until_signal(flags));
}

}  // namespace dibs::cli
