#include "store/testing/sweeps.h"

#include <vector>

#include "base/strings.h"

namespace dibs::store::testing {
namespace {

bool is_crash(Fault fault) { return fault == Fault::kill || fault == Fault::power_loss; }

void count(Tally& tally, Fault fault) {
  (fault == Fault::kill         ? tally.kills
   : fault == Fault::power_loss ? tally.power_losses
                                : tally.faults) += 1;
}

/// The fault at the n-th call. True when it came about.
Result<bool> run_one(const Sweep& sweep, std::size_t at, Tally& tally) {
  TortureOptions options = sweep.options;
  options.seed += at * 1000;
  Torture torture(options);
  std::mt19937_64 random(options.seed);
  using End = Torture::End;
  constexpr End kEnds[] = {End::close, End::kill, End::power_loss};

  if (!sweep.fresh) DIBS_CHECK(torture.live({}, End::kill));
  DIBS_CHECK(torture.live(Plan{sweep.fault, sweep.call, at, sweep.lasts}, kEnds[at % 3]));
  const bool met = torture.has_met_fault();
  if (met) count(tally, sweep.fault);
  if (at % 2 == 0) DIBS_CHECK(torture.look());
  // Twice and thrice, mostly while the store is opened and recovers.
  for (int again = 0; is_crash(sweep.fault) && again < 2; ++again) {
    const Fault fault = random() % 2 == 0 ? Fault::kill : Fault::power_loss;
    DIBS_CHECK(torture.live(Plan{fault, {}, 1 + random() % 120}, End::kill));
    if (torture.has_met_fault()) count(tally, fault);
  }
  // What was acknowledged after the fault must be durable, too.
  DIBS_CHECK(torture.live({}, End::power_loss));
  DIBS_CHECK(torture.check_end());
  ++tally.runs;
  tally.acknowledged += torture.book().acknowledgements();
  return met;
}

}  // namespace

void Tally::add(const Tally& other) {
  runs += other.runs;
  faults += other.faults;
  kills += other.kills;
  power_losses += other.power_losses;
  acknowledged += other.acknowledged;
}

std::string show(const Tally& tally) {
  return cat(tally.runs, " runs, ", tally.faults, " faults, ", tally.kills, " kills, ",
             tally.power_losses, " power losses, ", tally.acknowledged, " acknowledged writes");
}

std::string show(const Sweep& sweep) {
  return cat(name_of(sweep.fault), " at ", sweep.call ? name_of(*sweep.call) : "any",
             sweep.lasts ? ", lasting" : "", sweep.fresh ? ", new file" : "",
             sweep.options.ballast ? ", ballast" : "", sweep.options.chores ? ", chores" : "",
             ", sectors of ", sweep.options.sector);
}

Result<Tally> run(const Sweep& sweep) {
  Tally tally;
  for (std::size_t at = sweep.first;; at += sweep.stride) {
    const auto met = run_one(sweep, at, tally);
    if (!met.ok()) return met.error().within(cat(show(sweep), ", n = ", at));
    if (!*met) return tally;
  }
}

std::vector<Sweep> all_sweeps(std::uint64_t seed, std::size_t stride) {
  std::vector<Sweep> sweeps;
  const auto add = [&](Fault fault, std::optional<Call> call, bool lasts) {
    for (const bool fresh : {false, true}) {
      Sweep sweep{fault, call, lasts, fresh, {}, 1, stride};
      sweep.options.seed = seed + sweeps.size();
      sweep.options.ballast = call == Call::allocate;
      sweep.options.sector = sweeps.size() % 4 < 2 ? 512 : 4096;
      sweeps.push_back(sweep);
    }
  };
  for (const bool lasts : {false, true}) {
    for (const Call call : kCalls) add(Fault::io_error, call, lasts);
    add(Fault::short_read, Call::read, lasts);
    add(Fault::full, Call::write, lasts);
    // With a ballast, which a full disk gives up.
    add(Fault::full, Call::write, lasts);
    sweeps.back().options.ballast = true;
    sweeps[sweeps.size() - 2].options.ballast = true;
  }
  for (const Fault fault : {Fault::kill, Fault::power_loss}) {
    add(fault, {}, false);
    // With the second thread.
    add(fault, {}, false);
    sweeps.back().options.chores = true;
    sweeps[sweeps.size() - 2].options.chores = true;
  }
  return sweeps;
}

Result<Tally> run_random(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  TortureOptions options;
  options.seed = seed;
  options.sector = random() % 2 == 0 ? 512 : 4096;
  options.chores = random() % 3 == 0;
  options.ballast = random() % 4 == 0;
  options.steps = 4 + static_cast<int>(random() % 16);
  Torture torture(options);
  Tally tally;
  tally.runs = 1;
  const auto lives = 1 + random() % 4;
  for (std::uint64_t life = 0; life < lives; ++life) {
    constexpr Fault kFaults[] = {Fault::io_error, Fault::full,       Fault::kill,
                                 Fault::kill,     Fault::power_loss, Fault::power_loss};
    Plan plan;
    plan.fault = kFaults[random() % std::size(kFaults)];
    if (plan.fault == Fault::full) plan.call = Call::write;
    if (plan.fault == Fault::io_error && random() % 2 == 0) plan.call = kCalls[random() % 10];
    plan.at = 1 + random() % (plan.call ? 60 : 600);
    plan.lasts = random() % 2 == 0;
    const auto end = random() % 2 == 0 ? Torture::End::kill : Torture::End::power_loss;
    auto lived = torture.live(plan, end);
    if (!lived.ok()) {
      return lived.error().within(cat("seed ", seed, ", life ", life, ", ", name_of(plan.fault),
                                      " at ", plan.call ? name_of(*plan.call) : "any", " ",
                                      plan.at));
    }
    const bool met = torture.has_met_fault();
    if (met) count(tally, plan.fault);
    if (!met || !is_crash(plan.fault)) {
      count(tally, end == Torture::End::kill ? Fault::kill : Fault::power_loss);
    }
    if (random() % 3 == 0) {
      auto looked = torture.look();
      if (!looked.ok()) return looked.error().within(cat("seed ", seed, ", look ", life));
      count(tally, Fault::power_loss);
    }
  }
  auto ended = torture.check_end();
  if (!ended.ok()) return ended.error().within(cat("seed ", seed, ", at the end"));
  tally.acknowledged = torture.book().acknowledgements();
  return tally;
}

}  // namespace dibs::store::testing
