#include "bench/case_report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "alloc/cases.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::bench {
namespace {

std::vector<double> microseconds(std::vector<std::int64_t> nanoseconds) {
  std::sort(nanoseconds.begin(), nanoseconds.end());
  std::vector<double> made;
  made.reserve(nanoseconds.size());
  for (const std::int64_t one : nanoseconds) made.push_back(static_cast<double>(one) / 1000);
  return made;
}

double quantile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<std::size_t>(part * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

std::string times(const std::vector<double>& sorted) {
  char text[96];
  std::snprintf(text, sizeof text, "median %.1f, p99 %.1f, max %.1f", quantile(sorted, 0.5),
                quantile(sorted, 0.99), sorted.empty() ? 0 : sorted.back());
  return text;
}

}  // namespace

CaseReport::CaseReport(Clock nanoseconds, alloc::Limits limits)
    : clock_(std::move(nanoseconds)), limits_(limits) {}

Result<> CaseReport::add_text(std::string_view text) {
  const std::string_view trimmed = trim(text);
  if (trimmed.starts_with("[")) {
    DIBS_TRY(const json::Value all, json::parse(trimmed));
    for (const json::Value& source : all.items()) add(source);
    return success();
  }
  std::size_t number = 0;
  for (const std::string_view line : split(trimmed, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const Result<json::Value> source = json::parse(line);
    if (!source.ok()) {
      // One case, written over several lines?
      if (number == 1) {
        if (const Result<json::Value> whole = json::parse(trimmed); whole.ok()) {
          add(*whole);
          return success();
        }
      }
      return source.error().within(cat("line ", number));
    }
    add(*source);
  }
  return success();
}

void CaseReport::add(const json::Value& source) {
  const std::int64_t start = clock_();
  alloc::Case example(source);
  const alloc::Outcome outcome = example.run(limits_);
  fresh_.push_back(clock_() - start);
  alloc::Outcome again;
  std::array<std::int64_t, 3> kept = {};
  for (std::int64_t& one : kept) {
    const std::int64_t before = clock_();
    again = example.run(limits_);
    one = clock_() - before;
  }
  // The middle one: a machine that was busy with something else spoils at most one of them.
  std::sort(kept.begin(), kept.end());
  kept_.push_back(kept[1]);

  if (outcome.answer == alloc::Answer::undecided) {
    ++unanswered_;
    differences_.push_back(cat(example.name(), ": no answer within ", limits_.steps, " steps"));
    return;
  }
  // Where Kubernetes gave no answer there is nothing to compare with.
  if (example.timeout()) ++not_recorded_;
  std::string difference = example.timeout() ? std::string() : example.difference(outcome);
  if (difference.empty() && again.answer != outcome.answer) {
    difference = "another answer the second time";
  }
  if (difference.empty()) {
    ++same_;
    return;
  }
  ++different_;
  differences_.push_back(cat(example.name(), ": ", difference));
}

std::vector<double> CaseReport::fresh() const { return microseconds(fresh_); }
std::vector<double> CaseReport::kept() const { return microseconds(kept_); }

std::string CaseReport::summary() const {
  const std::vector<double> anew = fresh();
  std::string note;
  if (not_recorded_ > 0) {
    note = cat(not_recorded_, " of the same are answers that Kubernetes did not give in time\n");
  }
  return cat(note, "us per case, inventory and selectors built anew: ", times(anew),
             "\nus per case, inventory and selectors kept: ", times(kept()), "\nallocator: ", same_,
             " same, ", different_, " different, ", unanswered_,
             " unanswered; us per case: ", times(kept()), "\n");
}

}  // namespace dibs::bench
