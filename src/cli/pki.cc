#include "cli/pki.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "base/names.h"
#include "base/strings.h"
#include "cli/clusters.h"
#include "cli/process.h"
#include "client/kubeconfig.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"
#include "server/credentials.h"

namespace dibs::cli {
namespace {

// More than any bundle has.
constexpr std::size_t kMost = 1 << 20;

Result<std::string> folder_of(const PkiFlags& flags) {
  DIBS_TRY(const std::string folder, data_folder(flags.data_dir));
  return folder + "/pki";
}

/// Keys do not belong on a screen.
Result<> print_secret(const std::string& text, std::string_view remedy) {
  if (isatty(STDOUT_FILENO) == 1) {
    return Error::bad_request(cat("standard output is a terminal, and this is a secret: ", remedy));
  }
  std::cout << text << std::flush;
  if (!std::cout) return Error::unavailable("standard output cannot be written");
  return success();
}

struct Identity {
  std::string user;
  std::vector<std::string> groups;
};

Result<Identity> identity_of(std::string_view who) {
  if (who == "scheduler") return Identity{"system:kube-scheduler", {}};
  if (who == "controllers") return Identity{"system:kube-controller-manager", {}};
  constexpr std::string_view kNode = "node/";
  if (who.starts_with(kNode)) {
    const std::string_view name = who.substr(kNode.size());
    if (is_dns1123_subdomain(name).empty())
      return Identity{cat("system:node:", name), {"system:nodes"}};
  }
  return Error::bad_request(
      cat("WHO ", quoted(who), ": must be node/NAME, scheduler or controllers"));
}

/// Of the administrator's kubeconfig beside the keys.
Result<std::string> server_of(const PkiFlags& flags) {
  if (!flags.server.empty()) return flags.server;
  DIBS_TRY(const std::string folder, data_folder(flags.data_dir));
  runtime::Files& files = runtime::system_files();
  const auto config = client::Kubeconfig::load(files, {folder + "/kubeconfig"});
  if (!config.ok()) return config.error().within("--server must be given");
  DIBS_TRY(const auto access, config->resolve(files));
  return access.server;
}

Result<> write_part_kubeconfig(const PkiFlags& flags) {
  DIBS_TRY(const Identity identity, identity_of(flags.who));
  DIBS_TRY(const std::string folder, folder_of(flags));
  DIBS_TRY(const std::string server, server_of(flags));
  runtime::Files& files = runtime::system_files();
  runtime::RealRuntime runtime;
  DIBS_TRY(const std::string ca, server::authority_of(files, folder));
  DIBS_TRY(const auto client, server::issue_client(files, runtime.runtime().clock, folder,
                                                   identity.user, identity.groups));
  const std::string text = server::make_kubeconfig(ca, context_of(""), client, server);
  if (flags.out.empty()) return print_secret(text, "name a file with --out, or pipe it");
  const auto written = files.write(flags.out, text, 0600);
  if (!written.ok()) return written.error().within("--out");
  return success();
}

}  // namespace

int export_pki(const PkiFlags& flags) {
  const auto run = [&]() -> Result<> {
    DIBS_TRY(const std::string folder, folder_of(flags));
    DIBS_TRY(const std::string text, server::export_authority(runtime::system_files(), folder));
    return print_secret(text, "pipe it into `dibs pki import` on the other machine");
  };
  return exit_status("pki export", run());
}

int import_pki(const PkiFlags& flags) {
  const auto run = [&]() -> Result<> {
    DIBS_TRY(const std::string folder, folder_of(flags));
    std::string text;
    char piece[4096];
    while (text.size() <= kMost && std::cin.read(piece, sizeof piece).gcount() > 0) {
      text.append(piece, static_cast<std::size_t>(std::cin.gcount()));
    }
    runtime::Files& files = runtime::system_files();
    runtime::RealRuntime runtime;
    if (auto made = server::import_authority(files, runtime.runtime().clock, folder, text); !made) {
      return made.error().within("standard input");
    }
    std::cout << "this machine's servers are of that cluster now: " << folder << '\n';
    return success();
  };
  return exit_status("pki import", run());
}

int make_part_kubeconfig(const PkiFlags& flags) {
  return exit_status("pki kubeconfig", write_part_kubeconfig(flags));
}

}  // namespace dibs::cli
