#pragma once
// The checks, and what they have in common: a driver that runs, its devices, and claims for them.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "json/value.h"
#include "trial/agent.h"
#include "trial/inventory.h"
#include "trial/program.h"
#include "trial/stage.h"
#include "trial/trial.h"
#include "trial/verdict.h"

namespace dibs::trial {

struct AllocatedTo {
  std::string request = {};
  std::string pool = {};
  std::string device = {};
  std::string share_id = {};
};

struct TriedClaim {
  node::ClaimRef ref = {};
  /// What of it is this driver's.
  std::vector<AllocatedTo> devices = {};
  const std::string& uid() const { return ref.uid; }
};

/// Of a folder: name and content of each file.
using Files = std::map<std::string, std::string>;

class Trial {
 public:
  Trial(const Options& options, Stage& stage, Program& program, Agent& agent)
      : options(options), stage(stage), program(program), agent(agent) {}

  const Options& options;
  Stage& stage;
  Program& program;
  Agent& agent;
  std::vector<Offered> inventory = {};
  Files idle_cdi = {};  // what is there while nothing is prepared

  /// Starts the program and waits until it is registered.
  Result<> start();
  /// Ends it as the end of a machine would.
  void kill();
  /// Prepares a claim and takes it back, to learn what stays.
  void warm_up();

  const std::string& driver_name() const { return agent.info().name; }
  const Offered& device() const { return inventory.front(); }
  /// One that can be in use beside the first; null: there is none.
  const Offered* other_device() const;

  Result<TriedClaim> claim(const Offered& offered, const json::Value& parameters = {});
  /// The results may be anybody's.
  Result<TriedClaim> claim(std::vector<json::Value> results, const json::Value& parameters = {});
  json::Value result_for(const Offered& offered, std::string_view request = "device");

  Result<node::PrepareAnswer> prepare(const TriedClaim& claim) {
    return prepare(agent.driver(), claim);
  }
  Result<node::PrepareAnswer> prepare(node::DraPlugin& driver, const TriedClaim& claim);
  /// All in one call. `what` says in errors what they are.
  Result<node::PrepareAnswers> prepare_all(const std::vector<TriedClaim>& claims);
  Result<> unprepare(const node::ClaimRef& claim, std::string_view what);
  Result<> unprepare(const TriedClaim& claim) {
    return unprepare(claim.ref, "a claim that is prepared");
  }
  /// Prepares it, and looks at all that follows from it.
  Result<node::PrepareAnswer> prepared_well(const TriedClaim& claim);
  /// Nothing of it is left where runtimes look for CDI devices.
  Result<> check_gone(const TriedClaim& claim);
  Files cdi_files() const;

  /// Whether a text has to do with a claim that was ever made.
  bool names_claim(std::string_view text) const;

  /// Takes back all claims that are still there, whatever the driver says of it.
  void clear();

 private:
  std::vector<node::ClaimRef> claims_;
  std::vector<std::string> uids_;  // of all there have ever been
};

/// "pool/device id id" of each.
std::string text_of(const std::vector<node::PreparedDevice>& devices);
/// That the answer is one for the claim. Errors: what was expected instead.
Result<> check_answer(const TriedClaim& claim, const std::vector<node::PreparedDevice>& devices);
/// Names and contents of the files below a folder.
Files read_below(const std::string& folder);

struct Check {
  std::string_view name;
  std::string_view help;
  Verdict (*run)(Trial& trial);
  /// Why it cannot be made; "": it can.
  std::string (*skip)(Trial& trial) = nullptr;
};

/// The first two, which all others need.
std::vector<Check> start_checks();
std::vector<Check> claim_checks();
std::vector<Check> bad_claim_checks();
/// The last ones.
std::vector<Check> life_checks();

}  // namespace dibs::trial
