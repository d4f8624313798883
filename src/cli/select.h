#pragma once
// dibs select: which devices does an expression choose?
//
// For whoever writes a selector: it is compiled as the API server would, then asked about the
// devices of ResourceSlices in files or in a cluster. Errors come with what to do about them.

#include <iosfwd>
#include <string>
#include <vector>

namespace dibs::cli {

struct SelectFlags {
  std::string expression;
  std::vector<std::string> files;  // "-": standard input
  std::vector<std::string> cases;  // files of probes, instead of an expression
  std::string output = "table";
  bool explain = false;
  bool stored = false;
  std::string release = "1.37";
  std::string feature_gates;
  std::string kubeconfig;
  std::string context;
};

/// What the command prints, and its exit status: 0 when a device matched (or all cases are the
/// same), 1 when none did, 2 for a wrong command line, expression or input.
struct SelectOutcome {
  int status = 0;
  std::string output = {};
  std::string errors = {};
};

SelectOutcome select(const SelectFlags& flags, std::istream& input);

}  // namespace dibs::cli
