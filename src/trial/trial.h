#pragma once
// Tries a driver without a cluster: is to it what an API server and a node's agent are, and looks
// at what it does.
//
// The program is run as `dibs up --driver` runs one. It finds an API server in memory, behind a
// port and a kubeconfig, and the folders of a node; its sockets are found, asked and called as a
// kubelet does it. What is tried is a table of checks (checks.h), which do not depend on each
// other: each makes its own claims and takes them back.
//
// Blocks. One thread calls it; a trial has threads of its own.

#include <functional>
#include <string>
#include <vector>

#include "base/plug_points.h"
#include "base/result.h"
#include "base/time.h"

namespace dibs::trial {

struct Options {
  /// With its arguments.
  std::vector<std::string> program = {};
  /// The variables that it gets, of a node with that folder and a kubeconfig.
  std::function<std::vector<std::string>(const std::string& folder, const std::string& kubeconfig)>
      environment = {};
  std::string node_name = {};
  /// For everything that is written; absolute, there, and short: it is part of sockets' paths.
  std::string folder = {};
  /// Names of checks: those, or all; and none of these.
  std::vector<std::string> only = {};
  std::vector<std::string> skip = {};
  /// Until it is registered, and until its devices are published.
  Duration start_timeout = std::chrono::seconds(30);
  Duration call_timeout = std::chrono::seconds(45);
  Duration stop_timeout = std::chrono::seconds(30);
};

enum class Outcome : std::uint8_t { ok, failed, skipped };
std::string_view name_of(Outcome outcome);

struct Finding {
  std::string check = {};
  Outcome outcome = Outcome::ok;
  /// What is worth knowing; what was expected and seen; why it was skipped.
  std::string text = {};
  Duration took{0};
  /// Of one that failed: what the program wrote meanwhile, the last lines of it.
  std::string output = {};
};

struct CheckName {
  std::string_view name;
  std::string_view help;
};
/// In the order in which they are made.
std::vector<CheckName> check_names();

/// Where in `folder` the output of the program is.
std::string output_file(const std::string& folder);

/// `tell` hears each finding when it is there. Errors: what keeps the trial itself from running.
Result<std::vector<Finding>> run(const Options& options,
                                 const std::function<void(const Finding&)>& tell);

}  // namespace dibs::trial
