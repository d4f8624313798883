#include "cli/commands.h"

#include <CLI/CLI.hpp>

#include "cli/serve.h"

namespace dibs::cli {
namespace {

constexpr const char* kVersion = "dibs 0.1.0";

void add_server_flags(CLI::App& command, ServeFlags& flags) {
  command.add_option("--data-dir", flags.data_dir, "Folder for everything that lasts (default: ~/.local/share/dibs)")
      ->envname("DIBS_DATA_DIR");
  command.add_option("--bind", flags.bind, "HOST:PORT to listen on; port 0 picks a free one")->capture_default_str();
  command.add_option("--kubeconfig-out", flags.kubeconfig_out,
                     "Where to write the kubeconfig (default: kubeconfig in the data folder)");
  command.add_option("--store", flags.store, "Where objects are kept")
      ->check(CLI::IsMember({"sqlite", "memory"}))
      ->capture_default_str();
  command.add_option("--emulate-release", flags.release, "Kubernetes release to answer as")->capture_default_str();
  command.add_option("--token-auth-file", flags.token_auth_file,
                     "CSV file of static bearer tokens: token,user,uid,\"group,group\"");
  command.add_option("--service-cluster-ip-range", flags.service_range, "CIDR of Service addresses")
      ->capture_default_str();
  command.add_option("--service-account-issuer", flags.issuer, "Issuer of service account tokens")
      ->capture_default_str();
  command.add_option("--log-level", flags.log_level, "What to log")
      ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  command.add_option("--threads", flags.threads, "Threads that serve connections (default: one per core)");
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app{"Dynamic Resource Allocation for Kubernetes, in one binary.", "dibs"};
  app.require_subcommand(1);
  app.set_version_flag("--version", kVersion);
  app.failure_message(CLI::FailureMessage::help);

  ServeFlags up_flags;
  auto* up = app.add_subcommand("up", "Run a cluster on this machine, until Ctrl-C");
  add_server_flags(*up, up_flags);
  ServeFlags server_flags;
  auto* apiserver = app.add_subcommand("apiserver", "Run the API server alone");
  add_server_flags(*apiserver, server_flags);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (up->parsed()) return serve(up_flags, "up");
  return serve(server_flags, "apiserver");
}

}  // namespace dibs::cli
