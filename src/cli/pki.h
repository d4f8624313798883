#pragma once
// `dibs pki`: what other machines need to take part in a cluster. Keys go over pipes and into files
// that their owner alone can read, never over a command line or to a terminal.

#include <string>

namespace dibs::cli {

struct PkiFlags {
  std::string data_dir = {};
  std::string who = {};     // of a kubeconfig: node/NAME, scheduler, controllers
  std::string server = {};  // "": that of the data folder's kubeconfig
  std::string out = {};     // "": standard output
};

/// Each returns the exit status.
int export_pki(const PkiFlags& flags);
int import_pki(const PkiFlags& flags);
int make_part_kubeconfig(const PkiFlags& flags);

}  // namespace dibs::cli
