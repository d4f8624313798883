#include "server/health.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/strings.h"
#include "server/status.h"

namespace dibs::server {
namespace {

net::Response plain_text(int status, std::string text) {
  net::Response response = text_response(status, std::move(text));
  response.headers.add("Cache-Control", "no-cache, private");
  return response;
}

}  // namespace

void Health::add(std::string name, Check check, Reason reason) {
  entries_.push_back({std::move(name), std::move(check), reason});
}

void Health::add_readiness(std::string name, Check check, Reason reason) {
  entries_.push_back({std::move(name), std::move(check), reason, true});
}

void Health::add_done(std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) add(std::string(name), [](bool) { return success(); });
}

bool Health::asks(std::string_view which, const Entry& entry) const {
  return !entry.readiness || which == "readyz";
}

net::Response Health::all(std::string_view which, const net::Target& target) const {
  std::set<std::string, std::less<>> excluded;
  for (const auto& [key, value] : target.query) {
    if (key == "exclude") excluded.insert(value);
  }
  auto unknown = excluded;
  std::string report;
  std::string failed;
  for (const Entry& entry : entries_) {
    if (!asks(which, entry)) continue;
    if (excluded.contains(entry.name)) {
      unknown.erase(entry.name);
      append(report, "[+]", entry.name, " excluded: ok\n");
      continue;
    }
    if (const auto outcome = entry.check(which == "readyz"); outcome.ok()) {
      append(report, "[+]", entry.name, " ok\n");
    } else {
      const bool told = entry.reason == Reason::told;
      append(report, "[-]", entry.name,
             " failed: ", told ? outcome.error().message() : "reason withheld", '\n');
      append(failed, failed.empty() ? "" : "; ", entry.name, ": ", outcome.error().message());
    }
  }
  if (!unknown.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : unknown) names.push_back(quoted(name));
    append(report, "warn: some health checks cannot be excluded: no matches for ", join(names, ","),
           '\n');
  }
  if (!failed.empty()) {
    log::debug("not well", {{"check", std::string(which)}, {"failed", failed}});
    return plain_text(500, cat(report, which, " check failed\n"));
  }
  if (!target.has("verbose")) return plain_text(200, "ok");
  return plain_text(200, cat(report, which, " check passed\n"));
}

net::Response Health::one(std::string_view which, std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.name == name && asks(which, entry);
  });
  if (found == entries_.end()) return text_response(404, "404 page not found\n");
  if (const auto outcome = found->check(which == "readyz"); !outcome.ok())
    return plain_text(500, cat("internal server error: ", outcome.error().message(), '\n'));
  return plain_text(200, "ok");
}

}  // namespace dibs::server
