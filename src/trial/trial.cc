#include "trial/trial.h"

#include <algorithm>

#include "trial/checks.h"

namespace dibs::trial {
namespace {

std::vector<Check> all_checks() {
  std::vector<Check> out = start_checks();
  for (auto* more : {claim_checks, bad_claim_checks, life_checks}) {
    for (const Check& check : more()) out.push_back(check);
  }
  return out;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_wanted(const Options& options, std::string_view check) {
  return (options.only.empty() || contains(options.only, check)) && !contains(options.skip, check);
}

constexpr Duration kEnding = std::chrono::milliseconds(500);

/// One check after the other.
class Run {
 public:
  Run(Trial& trial, const std::function<void(const Finding&)>& tell) : trial_(trial), tell_(tell) {}

  std::vector<Finding> make() {
    for (const Check& check : start_checks()) make_needed(check);
    if (missing_.empty()) trial_.warm_up();
    for (auto* part : {claim_checks, bad_claim_checks, life_checks}) {
      for (const Check& check : part()) {
        if (is_wanted(trial_.options, check.name)) make_one(check);
      }
    }
    return std::move(findings_);
  }

 private:
  /// The others cannot do without it, so it is made in any case, and told where it is wanted or
  /// wrong.
  void make_needed(const Check& check) {
    if (!missing_.empty()) return skip(check, missing_);
    Finding finding = judge(check);
    if (finding.outcome == Outcome::failed) missing_ = cat("see ", check.name);
    if (finding.outcome == Outcome::failed || is_wanted(trial_.options, check.name)) {
      report(std::move(finding));
    }
  }

  void make_one(const Check& check) {
    if (missing_.empty() && !(trial_.program.is_running() && trial_.agent.has_driver())) {
      // What ended it, or kept it from registering again, was told.
      trial_.kill();
      if (const auto back = trial_.start(); !back) missing_ = "the driver does not come back";
    }
    if (!missing_.empty()) return skip(check, missing_);
    if (check.skip != nullptr) {
      if (const std::string why = check.skip(trial_); !why.empty()) return skip(check, why);
    }
    report(judge(check));
  }

  Finding judge(const Check& check) {
    Finding finding;
    finding.check = check.name;
    const std::size_t written = trial_.program.written();
    const Duration begin = clock().steady();
    auto verdict = check.run(trial_);
    // Its sockets close a moment before it has ended.
    const Duration patience = verdict ? Program::kNoWait : kEnding;
    const bool ended = check.name != "stops" && !trial_.program.is_running(patience);
    if (verdict && ended) verdict = unmet("the driver to go on", "it ended by itself");
    if (verdict) {
      finding.text = *verdict;
    } else {
      finding.outcome = Outcome::failed;
      finding.text = verdict.error().message();
      if (ended && trial_.program.ended()) {
        append(finding.text, " (the driver ended with ", text_of(*trial_.program.ended()), ")");
      }
      finding.output = trial_.program.last_lines(written);
    }
    finding.took = clock().steady() - begin;
    trial_.clear();
    return finding;
  }

  void skip(const Check& check, std::string why) {
    if (!is_wanted(trial_.options, check.name)) return;
    report({std::string(check.name), Outcome::skipped, std::move(why), Duration(0), ""});
  }

  void report(Finding finding) {
    tell_(finding);
    findings_.push_back(std::move(finding));
  }

  runtime::Clock& clock() { return trial_.stage.runtime().clock; }

  Trial& trial_;
  const std::function<void(const Finding&)>& tell_;
  std::string missing_;  // why nothing more can be tried
  std::vector<Finding> findings_;
};

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok:
      return "ok";
    case Outcome::failed:
      return "failed";
    case Outcome::skipped:
      break;
  }
  return "skipped";
}

std::vector<CheckName> check_names() {
  std::vector<CheckName> out;
  for (const Check& check : all_checks()) out.push_back({check.name, check.help});
  return out;
}

std::string output_file(const std::string& folder) { return folder + "/driver.log"; }

Result<std::vector<Finding>> run(const Options& options,
                                 const std::function<void(const Finding&)>& tell) {
  DIBS_TRY(const auto stage, Stage::build(options.folder, options.node_name));
  Program program(options.program, options.environment(options.folder, stage->kubeconfig()),
                  output_file(options.folder));
  Agent agent(stage->runtime(), stage->registry(), options.call_timeout);
  DIBS_CHECK(agent.watch());
  Trial trial(options, *stage, program, agent);
  return Run(trial, tell).make();
}

}  // namespace dibs::trial
