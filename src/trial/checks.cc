#include "trial/checks.h"

#include <algorithm>
#include <filesystem>

#include "cdi/cache.h"
#include "runtime/files.h"

namespace dibs::trial {

namespace fs = std::filesystem;
using json::Value;

namespace {

/// More than a driver keeps of claims.
constexpr std::uintmax_t kLargest = 4U << 20U;

bool mentions(std::string_view text, std::string_view uid) {
  return text.find(uid) != std::string_view::npos;
}

Result<> check_files(const Files& files) {
  for (const auto& [name, text] : files) {
    if (!name.ends_with(".json") && !name.ends_with(".yaml")) continue;
    const auto spec = cdi::parse_spec(text);
    const auto valid = spec ? cdi::validate(*spec) : Result<>(spec.error());
    if (!valid) return unmet("CDI files that are valid", cat(name, ": ", valid.error().message()));
  }
  return success();
}

}  // namespace

Files read_below(const std::string& folder) {
  Files out;
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(folder, failed)) {
    const std::string name = fs::relative(entry.path(), folder, failed);
    std::string text;
    if (entry.is_regular_file(failed) && entry.file_size(failed) <= kLargest) {
      if (auto read = runtime::system_files().read(entry.path())) text = std::move(read).value();
    }
    out[name] = std::move(text);
  }
  return out;
}

std::string text_of(const std::vector<node::PreparedDevice>& devices) {
  std::string out;
  for (const auto& device : devices) {
    append(out, out.empty() ? "" : ", ", join(device.requests, "+"), " ", device.pool, "/",
           device.device, device.share_id.empty() ? "" : " share ", device.share_id);
    for (const auto& id : device.cdi_ids) append(out, " ", id);
  }
  return out.empty() ? "no devices" : out;
}

Result<> check_answer(const TriedClaim& claim, const std::vector<node::PreparedDevice>& devices) {
  const auto is_for = [](const node::PreparedDevice& given, const AllocatedTo& wanted) {
    const auto& requests = given.requests;
    const bool of_request = requests.empty() || std::find(requests.begin(), requests.end(),
                                                          wanted.request) != requests.end();
    return of_request && given.pool == wanted.pool && given.device == wanted.device &&
           (given.share_id.empty() || given.share_id == wanted.share_id);
  };
  for (const AllocatedTo& wanted : claim.devices) {
    const bool there = std::any_of(devices.begin(), devices.end(),
                                   [&](const auto& given) { return is_for(given, wanted); });
    if (there) continue;
    return unmet(cat("device ", wanted.pool, "/", wanted.device, " for request ", wanted.request),
                 text_of(devices));
  }
  for (const auto& given : devices) {
    const bool wanted = std::any_of(claim.devices.begin(), claim.devices.end(),
                                    [&](const auto& one) { return is_for(given, one); });
    if (!wanted) return unmet("no device that was not allocated", text_of({given}));
  }
  return success();
}

Result<> Trial::start() {
  agent.forget();
  DIBS_CHECK(program.start());
  return agent.find_driver(options.start_timeout, [this] { return program.is_running(); });
}

void Trial::kill() {
  program.kill();
  agent.forget();
}

const Offered* Trial::other_device() const {
  for (const Offered& one : inventory) {
    if (&one != &device() && go_together(device(), one)) return &one;
  }
  return nullptr;
}

Value Trial::result_for(const Offered& offered, std::string_view request) {
  return allocation_result(offered, driver_name(), request,
                           runtime::make_uuid(stage.runtime().random));
}

Result<TriedClaim> Trial::claim(const Offered& offered, const Value& parameters) {
  return claim(std::vector<Value>{result_for(offered)}, parameters);
}

Result<TriedClaim> Trial::claim(std::vector<Value> results, const Value& parameters) {
  DIBS_TRY(const Value made, stage.allocated_claim(results, driver_name(), parameters));
  TriedClaim out;
  out.ref.name_space = made["metadata"]["namespace"].str();
  out.ref.name = made["metadata"]["name"].str();
  out.ref.uid = made["metadata"]["uid"].str();
  for (const Value& result : results) {
    if (result["driver"].as_string() != driver_name()) continue;
    out.devices.push_back({result["request"].str(), result["pool"].str(), result["device"].str(),
                           result["shareID"].str()});
  }
  claims_.push_back(out.ref);
  uids_.push_back(out.ref.uid);
  return out;
}

Result<node::PrepareAnswers> Trial::prepare_all(const std::vector<TriedClaim>& claims) {
  std::vector<node::ClaimRef> refs;
  for (const auto& claim : claims) refs.push_back(claim.ref);
  return agent.driver().prepare(refs);
}

Result<node::PrepareAnswer> Trial::prepare(node::DraPlugin& driver, const TriedClaim& claim) {
  auto answers = driver.prepare({claim.ref});
  if (!answers) return unmet("an answer to NodePrepareResources", answers.error().message());
  const auto found = answers->find(claim.uid());
  if (found == answers->end()) {
    return unmet("an entry for the claim's uid in the answer to NodePrepareResources",
                 answers->empty() ? "none at all" : "other uids");
  }
  if (!found->second.error.empty()) return unmet("the claim to be prepared", found->second.error);
  DIBS_CHECK(check_answer(claim, found->second.devices));
  return std::move(found->second);
}

Result<node::PrepareAnswer> Trial::prepared_well(const TriedClaim& claim) {
  DIBS_TRY(auto answer, prepare(claim));
  std::vector<std::string> ids;
  for (const auto& device : answer.devices) {
    for (const auto& id : device.cdi_ids) {
      if (auto name = cdi::parse_qualified_name(id); !name) {
        return unmet("CDI ids of the form vendor/class=device", name.error().message());
      }
      ids.push_back(id);
    }
  }
  DIBS_CHECK(check_files(cdi_files()));
  cdi::Cache cache({cdi::kStaticDirectory, cdi::kDynamicDirectory, stage.cdi()});
  if (auto edits = cache.edits(ids); !edits) {
    return unmet(cat("each CDI id to be in a file of ", stage.cdi()), edits.error().message());
  }
  return answer;
}

Result<> Trial::unprepare(const node::ClaimRef& claim, std::string_view what) {
  const std::string expected = cat("success when ", what, " is unprepared");
  const auto answers = agent.driver().unprepare({claim});
  if (!answers) return unmet(expected, answers.error().message());
  const auto found = answers->find(claim.uid);
  if (found == answers->end()) {
    return unmet("an entry for the claim's uid in the answer to NodeUnprepareResources",
                 answers->empty() ? "none at all" : "other uids");
  }
  if (!found->second.empty()) return unmet(expected, found->second);
  return success();
}

bool Trial::names_claim(std::string_view text) const {
  return std::any_of(uids_.begin(), uids_.end(),
                     [&](const std::string& uid) { return mentions(text, uid); });
}

void Trial::warm_up() {
  if (const auto made = claim(device())) (void)prepare(*made);
  clear();
  // What names a claim is a fault that the checks will find.
  for (auto& [name, text] : cdi_files()) {
    if (!names_claim(name) && !names_claim(text)) idle_cdi[name] = text;
  }
}

Files Trial::cdi_files() const { return read_below(stage.cdi()); }

Result<> Trial::check_gone(const TriedClaim& claim) {
  for (const auto& [name, text] : cdi_files()) {
    const bool names_it = mentions(name, claim.uid()) || mentions(text, claim.uid());
    if (names_it || !idle_cdi.contains(name)) {
      return unmet("no CDI file of the claim once it is unprepared", name);
    }
  }
  return success();
}

void Trial::clear() {
  for (const auto& claim : claims_) {
    if (agent.has_driver()) (void)agent.driver().unprepare({claim});
    (void)stage.api().remove(kClaims, claim.name_space, claim.name);
  }
  claims_.clear();
}

}  // namespace dibs::trial
