#include "cli/select.h"

#include <algorithm>
#include <filesystem>

#include "api/devices/device.h"
#include "api/devices/hints.h"
#include "api/devices/probes.h"
#include "api/devices/selector.h"
#include "api/devices/slices.h"
#include "api/schema/features.h"
#include "base/strings.h"
#include "cli/columns.h"
#include "cli/select_input.h"
#include "json/parse.h"

namespace dibs::cli {
namespace {

constexpr int kMatched = 0;
constexpr int kNoneMatched = 1;
constexpr int kWrong = 2;

/// A device with what the selector said about it.
struct Answer {
  api::SliceDevice device;
  api::DeviceMatch match;
};

SelectOutcome failed(std::string_view message) {
  return {kWrong, "", cat("error: ", message, "\n")};
}

std::string verdict(const api::DeviceMatch& match) {
  if (!match.error.empty()) return cat("error: ", match.error);
  return match.matches ? "match" : "no match";
}

std::string as_table(const SelectFlags& flags, const std::vector<Answer>& answers) {
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"NODE", "POOL", "DRIVER", "DEVICE"});
  if (flags.explain) rows[0].insert(rows[0].end(), {"COST", "RESULT"});
  for (const Answer& answer : answers) {
    if (!flags.explain && !answer.match.matches) continue;
    const api::SliceDevice& device = answer.device;
    rows.push_back(
        {device.node.empty() ? "<none>" : device.node, device.pool, device.driver, device.name});
    if (flags.explain)
      rows.back().insert(rows.back().end(),
                         {std::to_string(answer.match.cost), verdict(answer.match)});
  }
  return rows.size() == 1 ? "" : in_columns(rows);
}

std::string as_names(const std::vector<Answer>& answers) {
  std::string out;
  for (const Answer& answer : answers) {
    if (answer.match.matches)
      append(out, answer.device.driver, "/", answer.device.pool, "/", answer.device.name, "\n");
  }
  return out;
}

std::string as_json(const SelectFlags& flags, const api::Selector& selector,
                    const std::vector<Answer>& answers) {
  json::Value devices = json::Value::array();
  for (const Answer& answer : answers) {
    if (!flags.explain && !answer.match.matches && answer.match.error.empty()) continue;
    json::Value device = json::Value::object();
    if (!answer.device.node.empty()) device.set("node", answer.device.node);
    device.set("slice", answer.device.slice);
    device.set("pool", answer.device.pool);
    device.set("driver", answer.device.driver);
    device.set("device", answer.device.name);
    if (answer.match.error.empty())
      device.set("match", answer.match.matches);
    else
      device.set("error", answer.match.error);
    if (flags.explain) device.set("cost", answer.match.cost);
    devices.push(std::move(device));
  }
  json::Value made = json::Value::object({{"expression", flags.expression}});
  if (flags.explain) {
    made.set("type", selector.type.full_name());
    // It may be more than a JSON number holds exactly.
    made.set("estimatedCost", std::to_string(selector.estimated_cost));
  }
  made.set("devices", std::move(devices));
  return cat(json::write_pretty(made), "\n");
}

/// The message, the line with a mark below the place, and what to do.
std::string shown_issue(const SelectFlags& flags, const cel::Issue& issue,
                        const api::SelectorEnvironment& environment) {
  if (issue.position == cel::kNoPosition) return cat("error: ", issue.message, "\n");
  const api::IssuePlace place = api::place_of(flags.expression, issue);
  std::string out = cat("error: ", place.line, ":", place.column, ": ", issue.message, "\n");
  std::string mark(place.column - 1, ' ');
  append(out, "  | ", place.text, "\n  | ", mark, "^\n");
  const std::string hint = api::hint_for(issue.message, environment);
  if (!hint.empty()) append(out, "  = ", hint, "\n");
  return out;
}

std::string shown_fault(const SelectFlags& flags, const api::Selector& selector,
                        const api::SelectorEnvironment& environment) {
  std::string out;
  for (const cel::Issue& issue : selector.issues) out += shown_issue(flags, issue, environment);
  if (!selector.issues.empty()) return out;
  append(out, "error: ", selector.message, "\n");
  if (selector.fault == api::SelectorFault::too_costly)
    append(out, "  = the estimate is ", selector.estimated_cost, ", the limit ",
           api::kSelectorCostLimit, "\n");
  const std::string hint = api::hint_for(selector.message, environment);
  if (!hint.empty()) append(out, "  = ", hint, "\n");
  return out;
}

/// Errors of devices, each text once with the devices that have it.
std::string shown_errors(const std::vector<Answer>& answers) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<std::pair<std::string, std::vector<const api::SliceDevice*>>> grouped;
  for (const Answer& answer : answers) {
    if (answer.match.error.empty()) continue;
    auto at = std::find_if(grouped.begin(), grouped.end(),
                           [&](const auto& group) { return group.first == answer.match.error; });
    if (at == grouped.end()) at = grouped.insert(grouped.end(), {answer.match.error, {}});
    at->second.push_back(&answer.device);
  }
  std::string out;
  for (const auto& [error, devices] : grouped) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < devices.size() && i < kMostNamed; ++i)
      names.push_back(cat(devices[i]->pool, "/", devices[i]->name));
    append(out, "error: ", join(names, ", "));
    if (devices.size() > kMostNamed) append(out, " and ", devices.size() - kMostNamed, " more");
    append(out, ": ", error, "\n");
    const std::string hint = api::hint_for_error(error);
    if (!hint.empty()) append(out, "  = ", hint, "\n");
  }
  return out;
}

Result<api::SelectorEnvironment> environment_of(const SelectFlags& flags) {
  DIBS_TRY(const api::Features features, api::Features::parse(flags.release, flags.feature_gates));
  api::SelectorEnvironment made;
  made.release = features.minor();
  made.stored = flags.stored;
  made.consumable_capacity = features.on("DRAConsumableCapacity");
  made.list_attributes = features.on("DRAListTypeAttributes");
  if (made.release < 31)
    return Error::bad_request(
        cat("--release ", flags.release, ": selectors of devices begin with 1.31"));
  return made;
}

/// `-f FILE… EXPRESSION`: the option takes all that follows it.
SelectFlags untangled(SelectFlags flags) {
  std::error_code code;
  if (flags.expression.empty() && flags.files.size() > 1 && flags.files.back() != "-" &&
      !std::filesystem::exists(flags.files.back(), code)) {
    flags.expression = std::move(flags.files.back());
    flags.files.pop_back();
  }
  return flags;
}

SelectOutcome run_cases(const SelectFlags& flags, std::istream& input) {
  SelectOutcome made;
  std::size_t same = 0;
  std::size_t different = 0;
  for (const std::string& path : flags.cases) {
    auto documents = read_documents(path, input);
    if (!documents.ok()) return failed(documents.error().message());
    for (const auto& [where, document] : *documents) {
      auto report = api::run_probes(document);
      if (!report.ok()) return failed(report.error().within(where).message());
      same += report->same;
      different += report->different.size();
      for (const api::ProbeDifference& difference : report->different) {
        append(made.output, where, ": ", difference.name, "\n");
        for (const std::string& what : difference.what) append(made.output, "    ", what, "\n");
      }
    }
  }
  append(made.output, "select: ", same, " same, ", different, " different\n");
  made.status = different == 0 ? kMatched : kNoneMatched;
  return made;
}

}  // namespace

SelectOutcome select(const SelectFlags& given, std::istream& input) {
  const SelectFlags flags = untangled(given);
  if (!flags.cases.empty()) {
    if (!flags.expression.empty()) return failed("--cases brings its own expressions");
    return run_cases(flags, input);
  }
  if (flags.expression.empty())
    return failed("an expression is missing: dibs select EXPRESSION -f FILE");
  if (flags.files.empty() == flags.kubeconfig.empty())
    return failed("either -f or --kubeconfig must say where the devices are");
  const auto environment = environment_of(flags);
  if (!environment.ok()) return failed(environment.error().message());
  const api::Selector selector = api::compile_selector(flags.expression, *environment);
  SelectOutcome made;
  // One that is stored already is evaluated however much it might cost.
  const bool refused = selector.program == nullptr ||
                       (selector.fault == api::SelectorFault::too_costly && !flags.stored);
  if (refused) {
    made.errors = shown_fault(flags, selector, *environment);
    if (selector.program == nullptr || !flags.explain) {
      made.status = kWrong;
      return made;
    }
  }

  auto devices = flags.kubeconfig.empty() ? read_slices(flags.files, input)
                                          : fetch_slices(flags.kubeconfig, flags.context);
  if (!devices.ok()) return failed(devices.error().message());
  api::DeviceNames names;
  std::vector<Answer> answers;
  bool matched = false;
  for (api::SliceDevice& device : api::newest_generation(std::move(*devices))) {
    const auto read =
        api::DeviceInput::read(device.driver, device.device, api::lists_are_read(*environment));
    names.add(read);
    answers.push_back({std::move(device), api::match(selector, read)});
    matched = matched || answers.back().match.matches;
  }

  if (flags.output == "json") {
    made.output = as_json(flags, selector, answers);
  } else if (flags.output == "name") {
    made.output = as_names(answers);
  } else {
    if (flags.explain)
      append(made.output, "type ", selector.type.str(), ", estimated cost ",
             selector.estimated_cost, " of ", api::kSelectorCostLimit, "\n");
    made.output += as_table(flags, answers);
  }
  if (flags.output != "json") made.errors += shown_errors(answers);
  if (answers.empty())
    append(made.errors, "No devices found.\n");
  else if (!matched && flags.output == "table" && !flags.explain)
    append(made.errors, "No device matches, of ", answers.size(), ".\n");
  for (const std::string& note : api::unknown_names(flags.expression, names))
    append(made.errors, "note: ", note, "\n");
  made.status = refused ? kWrong : matched ? kMatched : kNoneMatched;
  return made;
}

}  // namespace dibs::cli
