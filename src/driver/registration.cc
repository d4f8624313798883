#include "driver/registration.h"

#include "base/strings.h"
#include "proto/plugin_registration.pb.h"

namespace dibs::driver {

rpc::Methods registration_methods(RegistrationInfo info, std::function<void(Result<>)> told) {
  pluginregistration::PluginInfo answer;
  answer.set_type("DRAPlugin");
  answer.set_name(info.driver_name);
  answer.set_endpoint(info.endpoint);
  for (const auto& version : info.supported_versions) answer.add_supported_versions(version);
  rpc::Methods methods;
  methods.unary["/pluginregistration.Registration/GetInfo"] =
      [bytes = answer.SerializeAsString()](std::string_view) {
        return rpc::Reply{{}, bytes};
      };
  methods.unary["/pluginregistration.Registration/NotifyRegistrationStatus"] =
      [told = std::move(told)](std::string_view request) -> rpc::Reply {
    pluginregistration::RegistrationStatus status;
    if (!status.ParseFromArray(request.data(), static_cast<int>(request.size()))) {
      return {{rpc::Code::internal, "grpc: error unmarshalling request"}, ""};
    }
    if (status.plugin_registered()) {
      told(success());
      return {};
    }
    const std::string text = cat("failed registration process: ", status.error());
    told(Error::invalid(text));
    return {{rpc::Code::unknown, text}, ""};
  };
  return methods;
}

}  // namespace dibs::driver
