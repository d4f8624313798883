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
  std::erase_if(plugins_, [&](const auto& plugin) { return has(disabled, plugin->name()); });
  return success();
}

Result<> AdmissionChain::mutate(AdmissionRequest& request) const {
  if (request.operation == Operation::create && request.resource.ending) {
    return forbidden_error(request.resource.group, request.resource.plural, request.name,
                           "create not allowed while custom resource definition is terminating");
  }
  for (const auto& plugin : plugins_) DIBS_CHECK(plugin->mutate(request));
  return success();
}

void AdmissionChain::judge(const AdmissionRequest& request, api::FieldErrors& errors) const {
  for (const auto& plugin : plugins_) plugin->judge(request, errors);
}

Result<> AdmissionChain::validate(AdmissionRequest& request) const {
  for (std::size_t i = 0; i < plugins_.size(); ++i) {
    auto verdict = plugins_[i]->validate(request);
    if (verdict.ok()) continue;
    while (i > 0) plugins_[--i]->roll_back(request);
    return verdict;
  }
  return success();
}

void AdmissionChain::stored(const AdmissionRequest& request) const {
  for (const auto& plugin : plugins_) plugin->stored(request);
}

void AdmissionChain::roll_back(const AdmissionRequest& request) const {
  for (const auto& plugin : plugins_) plugin->roll_back(request);
}

}  // namespace dibs::server
