#include "server/admission.h"

#include <algorithm>

#include "base/strings.h"
#include "server/status.h"

namespace dibs::server {

Result<> AdmissionChain::choose(const std::vector<std::string>& enabled,
                                const std::vector<std::string>& disabled) {
  auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> known;
  for (const auto& plugin : plugins_) known.emplace_back(plugin->name());
  for (const auto* names : {&enabled, &disabled}) {
    for (const std::string& name : *names) {
      if (!has(known, name)) {
        return Error::bad_request(
            cat("admission plugin ", quoted(name), " is unknown; known are ", join(known, ", ")));
      }
    }
  }
  for (const std::string& name : enabled) {
    if (has(disabled, name))
      return Error::bad_request(cat("admission plugin ", name, " is both enabled and disabled"));
  }
  for (const auto& plugin : plugins_) {
    if (has(disabled, plugin->name()) && !plugin->may_be_disabled()) {
      return Error::bad_request(cat("admission plugin ", plugin->name(),
                                    " cannot be disabled: others' rights depend on it"));
    }
  }
  std::erase_if(plugins_, [&](const auto& plugin) { return has(disabled, plugin->name()); });
  return success();
}

Result<> AdmissionChain::mutate(Write& write) const {
  if (write.operation == Operation::create && write.resource.ending) {
    return forbidden_error(write.resource.group, write.resource.plural, write.name,
                           "create not allowed while custom resource definition is terminating");
  }
  for (const auto& plugin : plugins_) DIBS_CHECK(plugin->mutate(write));
  if (!write.wants_second_round) return success();
  write.second_round = true;
  for (const auto& plugin : plugins_) DIBS_CHECK(plugin->mutate(write));
  return success();
}

Result<> AdmissionChain::mutate_unstored(Write& write) const {
  for (const auto& plugin : plugins_) DIBS_CHECK(plugin->mutate_unstored(write));
  return success();
}

void AdmissionChain::judge(const Write& write, api::FieldErrors& errors) const {
  for (const auto& plugin : plugins_) plugin->judge(write, errors);
}

Result<> AdmissionChain::allocate(Write& write) const {
  for (const auto& plugin : plugins_) {
    DIBS_TRY(TicketPtr ticket, plugin->allocate(write));
    if (ticket) write.tickets.push_back(std::move(ticket));
  }
  return success();
}

Result<> AdmissionChain::validate(const Write& write) const {
  for (const auto& plugin : plugins_) DIBS_CHECK(plugin->validate(write));
  return success();
}

Result<bool> AdmissionChain::charge(Write& write, const std::function<void()>& go_on) const {
  for (const auto& plugin : plugins_) {
    DIBS_TRY(const bool done, plugin->charge(write, go_on));
    if (!done) return false;
  }
  return true;
}

void AdmissionChain::give_back(Write& write) const {
  for (const auto& plugin : plugins_) plugin->give_back(write);
}

}  // namespace dibs::server
