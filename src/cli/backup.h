#pragma once
// dibs backup and dibs restore, of a place or of a live server.

#include <string>

#include "cli/place.h"

namespace dibs::cli {

struct BackupFlags {
  std::string to;    // the file
  std::string from;  // a place; "": the server of the kubeconfig
  std::string kubeconfig;
  std::string context;
  std::string data_dir;  // whose keys and certificates go into it, too
  PlaceFlags place;
};

struct RestoreFlags {
  std::string from;  // the file
  std::string to;    // a place
  std::string data_dir;
  std::string kubeconfig;  // of a live server
  std::string context;
  bool resume = false;
  bool overwrite = false;
  bool abandon = false;
  PlaceFlags place;
};

/// Each returns the exit status.
int take_backup(const BackupFlags& flags);
int restore_backup(const RestoreFlags& flags);

}  // namespace dibs::cli
