#include "cli/usage.h"

#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/time.h"
#include "cli/columns.h"
#include "cli/process.h"
#include "client/https_transport.h"
#include "json/parse.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"
#include "server/usage/query.h"

namespace dibs::cli {
namespace {

using json::Value;

/// Before anybody is asked. Errors: bad_request, naming the flag.
Result<> check(const UsageFlags& flags) {
  if (flags.all_namespaces && !flags.name_space.empty())
    return Error::bad_request("--namespace and --all-namespaces exclude each other");
  if (!flags.since.empty() && (!flags.from.empty() || !flags.to.empty()))
    return Error::bad_request("--since excludes --from and --to");
  if (const auto by = server::parse_usage_by(flags.by); !by.ok()) return by.error().within("--by");
  for (const auto& [flag, text] :
       {std::pair("--since", &flags.since), std::pair("--step", &flags.step)}) {
    if (text->empty()) continue;
    if (const auto span = server::parse_span(*text); !span.ok()) return span.error().within(flag);
  }
  for (const auto& [flag, text] :
       {std::pair("--from", &flags.from), std::pair("--to", &flags.to)}) {
    if (!text->empty() && !parse_rfc3339(*text).ok()) {
      return Error::bad_request(
          cat(flag, ": ", quoted(*text), " is no time like 2026-01-02T15:04:05Z"));
    }
  }
  return success();
}

std::string target_of(const UsageFlags& flags, const std::string& name_space) {
  std::string target = cat(server::kUsagePath, "?by=", percent_encode(flags.by),
                           "&format=", flags.output == "csv" ? "csv" : "json");
  for (const auto& [name, text] : {std::pair("since", &flags.since), std::pair("from", &flags.from),
                                   std::pair("to", &flags.to), std::pair("step", &flags.step),
                                   std::pair("namespace", &name_space)}) {
    if (!text->empty()) append(target, "&", name, "=", percent_encode(*text));
  }
  return target;
}

std::string number(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string table_of(const Value& answer, bool steps) {
  std::vector<std::vector<std::string>> rows(1);
  if (steps) rows[0].emplace_back("FROM");
  for (const Value& by : answer["by"].items()) rows[0].push_back(to_upper(by.as_string()));
  rows[0].insert(rows[0].end(), {"DEVICE-SECONDS", "USED", "MEAN"});
  for (const Value& item : answer["items"].items()) {
    std::vector<std::string> row;
    if (steps) row.push_back(item["from"].str());
    for (const Value& by : answer["by"].items()) {
      const std::string name = item[by.as_string()].str();
      row.push_back(name.empty() ? "<none>" : name);
    }
    const double held = item["deviceSeconds"].as_double();
    const auto from = parse_rfc3339(item["from"].as_string());
    const auto to = parse_rfc3339(item["to"].as_string());
    const double seconds =
        from.ok() && to.ok() ? std::chrono::duration<double>(*to - *from).count() : 0;
    row.insert(row.end(), {number(held, 1), number(item["usedDeviceSeconds"].as_double(), 1),
                           seconds > 0 ? number(held / seconds, 2) : "<unknown>"});
    rows.push_back(std::move(row));
  }
  return rows.size() == 1 ? std::string() : in_columns(rows);
}

Result<UsageOutcome> ask(const UsageFlags& flags) {
  DIBS_TRY(const client::Access access, find_access(flags.kubeconfig, flags.context));
  runtime::RealRuntime runtime;
  DIBS_TRY(const auto transport,
           client::make_https_transport(access, runtime::system_files(), runtime.runtime()));
  std::string name_space = flags.name_space.empty() ? access.default_namespace : flags.name_space;
  if (flags.all_namespaces) name_space.clear();
  client::Request request;
  request.method = "GET";
  request.target = target_of(flags, name_space);
  DIBS_TRY(client::Response response, transport->send(std::move(request)));
  UsageOutcome made;
  if (response.status == 200 && flags.output == "csv") {
    made.output = std::move(response.body);
    return made;
  }
  auto answer = json::parse(response.body);
  if (response.status != 200) {
    const std::string_view message = answer.ok() ? (*answer)["message"].as_string() : "";
    return Error::unavailable(
        message.empty() ? cat(access.server, ": ", response.status, " ", trim(response.body))
                        : std::string(message));
  }
  if (!answer.ok()) return answer.error();
  if ((*answer)["kind"].as_string() != "DeviceUsage")
    return Error::unavailable(cat(access.server, ": is no dibs that records usage"));
  if (flags.output == "json") {
    made.output = cat(json::write_pretty(*answer), "\n");
    return made;
  }
  made.output = table_of(*answer, !flags.step.empty());
  if (made.output.empty()) {
    made.errors = cat("No device was held from ", (*answer)["from"].as_string(), " to ",
                      (*answer)["to"].as_string(), ".\n");
  }
  return made;
}

}  // namespace

UsageOutcome usage(const UsageFlags& flags) {
  const auto failed = [](int status, const Error& error) {
    return UsageOutcome{status, "", cat("dibs usage: ", error.message(), "\n")};
  };
  if (const auto fine = check(flags); !fine.ok()) return failed(2, fine.error());
  auto made = ask(flags);
  return made.ok() ? std::move(made).value() : failed(1, made.error());
}

}  // namespace dibs::cli
