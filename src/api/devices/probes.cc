#include "api/devices/probes.h"

#include <charconv>

#include "api/devices/device.h"
#include "api/devices/selector.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

json::Value number(const json::Value& value) {
  if (!value.is_string()) return value;
  const std::string_view text = value.as_string();
  std::int64_t parsed = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (code != std::errc() || end != text.data() + text.size()) return value;
  return parsed;
}

json::Value attribute(json::Value spec) {
  if (spec.contains("int")) spec.set("int", number(spec["int"]));
  if (spec["ints"].is_array()) {
    json::Value items = json::Value::array();
    for (const json::Value& item : spec["ints"].items()) items.push(number(item));
    spec.set("ints", std::move(items));
  }
  return spec;
}

struct Setting {
  SelectorEnvironment environment;
  DeviceInput device;
};

Result<SelectorEnvironment> environment_of(const json::Value& spec) {
  SelectorEnvironment made;
  made.release = 36;
  if (const json::Value& release = spec["release"]; release.is_string()) {
    const std::string_view text = release.as_string();
    const std::size_t dot = text.find('.');
    const std::string_view minor = dot == std::string_view::npos ? "" : text.substr(dot + 1);
    if (std::from_chars(minor.data(), minor.data() + minor.size(), made.release).ec != std::errc())
      return Error::bad_request(cat("release ", quoted(text), ": must be like \"1.36\""));
  }
  made.stored = spec["envType"].as_string("StoredExpressions") != "NewExpressions";
  made.consumable_capacity = spec["consumableCapacity"].as_bool(true);
  bool has_lists = false;
  for (const json::Value* device : {&spec, &spec["device"]}) {
    for (const auto& [name, value] : (*device)["attributes"].members()) {
      for (const char* many : {"ints", "bools", "strings", "versions"})
        has_lists = has_lists || value.contains(many);
    }
  }
  made.list_attributes = spec["listTypeAttributes"].as_bool(has_lists);
  return made;
}

Result<Setting> setting_of(const json::Value& spec, const json::Value& device) {
  DIBS_TRY(const SelectorEnvironment environment, environment_of(spec));
  return Setting{environment, DeviceInput::read(device["driver"].as_string(), probe_device(device),
                                                lists_are_read(environment))};
}

std::string shown(const json::Value& value) {
  if (value.is_string()) return value.str();
  if (value.is_boolean()) return cat(value.as_bool());
  return std::to_string(value.as_int());
}

/// Up to the position of the first syntax error; otherwise the whole.
std::string_view comparable(std::string_view message) {
  constexpr std::string_view kMark = ": Syntax error:";
  const std::size_t at = message.find(kMark);
  return at == std::string_view::npos ? message : message.substr(0, at + kMark.size());
}

class Comparison {
 public:
  explicit Comparison(const json::Value& wanted) : wanted_(wanted) {}

  void value(const char* member, std::string_view what, const std::string& got) {
    const json::Value* wanted = wanted_.find(member);
    if (wanted == nullptr) return;
    if (shown(*wanted) != got) found(cat(what, " ", got, ", was ", shown(*wanted)));
  }
  /// Where one side may have no message at all.
  void message(const char* member, std::string_view what, const std::string& got) {
    const std::string wanted = wanted_[member].str();
    if (comparable(wanted) == comparable(got)) return;
    found(cat(what, " ", got.empty() ? "none" : quoted(got), ", was ",
              wanted.empty() ? "none" : quoted(wanted)));
  }
  /// For tables that give a part of the message only.
  void contains(const char* member, std::string_view what, const std::string& got) {
    const std::string wanted = wanted_[member].str();
    if (wanted.empty() == got.empty() && got.find(wanted) != std::string::npos) return;
    found(cat(what, " ", got.empty() ? "none" : quoted(got), ", was with ", quoted(wanted)));
  }
  void found(std::string difference) { differences_.push_back(std::move(difference)); }
  std::vector<std::string> take() { return std::move(differences_); }

 private:
  const json::Value& wanted_;
  std::vector<std::string> differences_;
};

std::vector<std::string> differences(const std::string& expression, const json::Value& wanted,
                                     const Setting& setting) {
  const Selector selector = compile_selector(expression, setting.environment);
  const bool compiled = selector.program != nullptr;
  Comparison comparison(wanted);
  const bool partial =
      wanted.contains("compileErrorContains") || wanted.contains("matchErrorContains");
  const std::string compile_error = compiled ? "" : selector.message;
  if (partial)
    comparison.contains("compileErrorContains", "compile error", compile_error);
  else
    comparison.message("compileError", "compile error", compile_error);
  if (!compiled) return comparison.take();

  comparison.value("outputType", "type", selector.type.full_name());
  comparison.value("estimatedCost", "estimated cost", std::to_string(selector.estimated_cost));
  const DeviceMatch made = match(selector, setting.device);
  if (wanted.contains("match"))
    comparison.value("match", "match", made.error.empty() ? cat(made.matches) : "error");
  if (partial)
    comparison.contains("matchErrorContains", "error", made.error);
  else
    comparison.message("matchError", "error", made.error);
  comparison.value("actualCost", "actual cost", std::to_string(made.cost));
  return comparison.take();
}

void note(ProbeReport& report, std::string name, std::vector<std::string> what) {
  if (what.empty())
    ++report.same;
  else
    report.different.push_back({std::move(name), std::move(what)});
}

/// One that brings its device and its expectation along, in members of its own or around them.
Result<> run_case(const json::Value& spec, ProbeReport& report) {
  const json::Value& wanted = spec.contains("observed") ? spec["observed"]
                              : spec.contains("expect") ? spec["expect"]
                                                        : spec;
  DIBS_TRY(const Setting setting,
           setting_of(spec, spec["device"].is_object() ? spec["device"] : spec));
  const std::string expression = spec["expression"].str();
  std::string name =
      spec.contains("name") ? cat(spec["name"].as_string(), ": ", expression) : expression;
  note(report, std::move(name), differences(expression, wanted, setting));
  return success();
}

}  // namespace

json::Value probe_device(const json::Value& spec) {
  json::Value made = json::Value::object();
  json::Value attributes = json::Value::object();
  for (const auto& [name, value] : spec["attributes"].members())
    attributes.set(name, attribute(value));
  json::Value capacity = json::Value::object();
  for (const auto& [name, value] : spec["capacity"].members())
    capacity.set(name, value.is_object() ? value : json::Value::object({{"value", value}}));
  made.set("attributes", std::move(attributes));
  made.set("capacity", std::move(capacity));
  if (spec.contains("allowMultipleAllocations"))
    made.set("allowMultipleAllocations", spec["allowMultipleAllocations"]);
  return made;
}

Result<ProbeReport> run_probes(const json::Value& file) {
  ProbeReport report;
  if (file["probes"].is_array()) {
    if (!file["device"].is_object()) return Error::bad_request("device: must be an object");
    DIBS_TRY(const Setting setting, setting_of(file, file["device"]));
    for (const json::Value& probe : file["probes"].items()) {
      if (!probe["expression"].is_string())
        return Error::bad_request(cat("probes[", report.same + report.different.size(),
                                      "].expression: must be a string"));
      const std::string expression = probe["expression"].str();
      note(report, expression, differences(expression, probe, setting));
    }
    return report;
  }
  if (file["expression"].is_string()) {
    DIBS_CHECK(run_case(file, report));
    return report;
  }
  if (!file["cases"].is_array())
    return Error::bad_request("not a file of probes: it has neither probes nor cases");
  for (const json::Value& spec : file["cases"].items()) {
    if (!spec["expression"].is_string())
      return Error::bad_request(
          cat("cases[", report.same + report.different.size(), "].expression: must be a string"));
    DIBS_CHECK(run_case(spec, report));
  }
  return report;
}

}  // namespace dibs::api
