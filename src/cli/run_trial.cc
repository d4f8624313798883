#include "cli/run_trial.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/names.h"
#include "base/plug_points.h"
#include "base/strings.h"
#include "cli/common_flags.h"
#include "cli/driver_programs.h"
#include "cli/process.h"
#include "cli/starting.h"
#include "json/parse.h"
#include "trial/trial.h"

namespace dibs::cli {
namespace {

namespace fs = std::filesystem;
using json::Value;
using trial::Finding;
using trial::Outcome;

constexpr const char* kCommand = "driver test";

std::vector<std::string> check_words() {
  std::vector<std::string> out;
  for (const auto& check : trial::check_names()) out.emplace_back(check.name);
  return out;
}

std::size_t widest_name() {
  std::size_t widest = 0;
  for (const auto& check : trial::check_names()) widest = std::max(widest, check.name.size());
  return widest;
}

std::string padded(std::string_view text, std::size_t width) {
  return cat(text, std::string(width - std::min(width, text.size()), ' '));
}

/// The folder of a trial. One that nobody asked for goes, unless somebody wants to look into it.
class Folder {
 public:
  static Result<Folder> make(const std::string& wanted) {
    Folder out;
    out.is_asked_for_ = !wanted.empty();
    if (!out.is_asked_for_) {
      // Not in $TMPDIR: the path of a socket has 107 bytes at most.
      std::string pattern = "/tmp/dibs-XXXXXX";
      if (::mkdtemp(pattern.data()) == nullptr) {
        return Error::internal("no folder can be made in /tmp");
      }
      out.path_ = pattern;
      return out;
    }
    const auto wrong = [&](std::string_view why) {
      return Error::bad_request(cat("--data-dir ", quoted(wanted), ": ", why));
    };
    out.path_ = fs::absolute(wanted).lexically_normal();
    std::error_code failed;
    if (fs::exists(out.path_, failed) && !fs::is_empty(out.path_, failed)) {
      return wrong("must be empty, or not there");
    }
    fs::create_directories(out.path_, failed);
    if (failed) return wrong(failed.message());
    return out;
  }
  Folder(Folder&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        is_asked_for_(other.is_asked_for_),
        is_kept_(other.is_kept_) {}
  Folder& operator=(Folder&&) = delete;
  ~Folder() {
    if (!is_kept_) abandon();
  }

  const std::string& path() const { return path_; }
  void keep() { is_kept_ = true; }
  /// Whatever was said. Any thread.
  void abandon() const {
    std::error_code failed;
    if (!is_asked_for_ && !path_.empty()) fs::remove_all(path_, failed);
  }

 private:
  Folder() = default;
  std::string path_;
  bool is_asked_for_ = false;
  bool is_kept_ = false;
};

void print_line(const Finding& finding) {
  const std::string outcome =
      finding.outcome == Outcome::failed ? "FAILED" : std::string(name_of(finding.outcome));
  std::string line = cat(padded(outcome, 7), "  ", finding.check);
  if (!finding.text.empty()) {
    line = cat(padded(outcome, 7), "  ", padded(finding.check, widest_name()), "  ", finding.text);
  }
  std::printf("%s\n", line.c_str());
  for (const std::string_view written : split(finding.output, '\n')) {
    if (!written.empty()) std::printf("         | %s\n", std::string(written).c_str());
  }
  std::fflush(stdout);
}

std::size_t count(const std::vector<Finding>& findings, Outcome outcome) {
  return static_cast<std::size_t>(std::count_if(
      findings.begin(), findings.end(), [&](const auto& one) { return one.outcome == outcome; }));
}

void print_summary(const std::vector<Finding>& findings, const std::string& log) {
  const std::size_t failed = count(findings, Outcome::failed);
  std::printf("%zu ok, %zu failed, %zu skipped\n", count(findings, Outcome::ok), failed,
              count(findings, Outcome::skipped));
  if (!log.empty()) std::printf("What the driver wrote is in %s\n", log.c_str());
}

void print_json(const TrialFlags& flags, const std::vector<Finding>& findings,
                const std::string& log) {
  Value program = Value::array();
  for (const auto& word : flags.program) program.push(word);
  Value checks = Value::array();
  for (const Finding& finding : findings) {
    Value check = Value::object({{"check", finding.check},
                                 {"outcome", name_of(finding.outcome)},
                                 {"text", mend_utf8(finding.text)},
                                 {"seconds", std::chrono::duration<double>(finding.took).count()}});
    if (!finding.output.empty()) check.set("output", mend_utf8(finding.output));
    checks.push(std::move(check));
  }
  Value out = Value::object({{"program", std::move(program)}, {"checks", std::move(checks)}});
  for (const Outcome outcome : {Outcome::ok, Outcome::failed, Outcome::skipped}) {
    out.set(name_of(outcome), static_cast<std::int64_t>(count(findings, outcome)));
  }
  if (!log.empty()) out.set("log", log);
  std::printf("%s\n", json::write_pretty(out).c_str());
}

Result<trial::Options> trial_options(const TrialFlags& flags) {
  if (const auto runs = check_program(flags.program.front()); !runs) return runs.error();
  if (!is_dns1123_subdomain(flags.node_name).empty()) {
    return Error::bad_request(
        cat("--node-name ", quoted(flags.node_name), ": must be a name such as node-0"));
  }
  trial::Options options;
  options.program = flags.program;
  options.environment = [name = flags.node_name](const std::string& folder,
                                                 const std::string& kubeconfig) {
    return driver_environment({name, folder}, kubeconfig);
  };
  options.node_name = flags.node_name;
  options.only = flags.only;
  options.skip = flags.skip;
  options.start_timeout = flags.start_timeout;
  options.call_timeout = flags.call_timeout;
  options.stop_timeout = flags.stop_timeout;
  return options;
}

/// Whatever keeps a trial from being made is a 2: 1 says that the driver is wrong.
int cannot_try(const Error& error) {
  exit_status(kCommand, error);
  return 2;
}

}  // namespace

Flags trial_flags(TrialFlags& flags) {
  return {
      {"PROGRAM",
       &flags.program,
       "The driver; what stands behind it are its own arguments",
       {.required = true, .rest = true}},
      {"--only",
       &flags.only,
       "Checks to make, with commas between them (default: all)",
       {.type = "CHECK", .one_of = check_words(), .commas = true}},
      {"--skip",
       &flags.skip,
       "Checks not to make",
       {.type = "CHECK", .one_of = check_words(), .commas = true}},
      {"-o,--output", &flags.output, "How to print what was found", one_of({"text", "json"})},
      {"--node-name", &flags.node_name, "Name of the node that the driver is on"},
      {"--data-dir",
       &flags.data_dir,
       "Folder for the driver's files and its output, which stays (default: one in /tmp, which "
       "stays when a check failed)",
       {.type = "FOLDER"}},
      {"--start-timeout",
       &flags.start_timeout,
       "How long the driver may take to register, and to publish",
       {.least = 0.1}},
      {"--call-timeout",
       &flags.call_timeout,
       "How long it may take for a call, as a kubelet waits",
       {.least = 0.1}},
      {"--stop-timeout", &flags.stop_timeout, "How long it may take to end", {.least = 0.1}},
  };
}

std::string trial_footer() {
  std::string out = "Checks:\n";
  for (const auto& check : trial::check_names()) {
    append(out, "  ", padded(check.name, widest_name()), "  ", check.help, "\n");
  }
  append(out,
         "\nExit status: 0 no check failed, 1 one did, 2 wrong usage or nothing can be tried.");
  return out;
}

int run_trial(const TrialFlags& flags) {
  auto options = trial_options(flags);
  if (!options) return cannot_try(options.error());
  auto folder = Folder::make(flags.data_dir);
  if (!folder) return cannot_try(folder.error());
  options->folder = folder->path();
  begin_process("error");
  const Interruption interruption(kCommand, [&] {
    end_left_programs(folder->path());
    folder->abandon();
  });
  const bool text = flags.output == "text";
  const auto findings = trial::run(*options, [&](const Finding& finding) {
    if (text) print_line(finding);
  });
  end_left_programs(folder->path());
  if (!findings) return cannot_try(findings.error());
  const bool failed = count(*findings, Outcome::failed) > 0;
  if (failed) folder->keep();
  const std::string log =
      failed || !flags.data_dir.empty() ? trial::output_file(folder->path()) : "";
  if (text) {
    print_summary(*findings, log);
  } else {
    print_json(flags, *findings, log);
  }
  return failed ? 1 : 0;
}

}  // namespace dibs::cli
