#pragma once
// Where a webhook is: at a URL, or behind a Service.

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "server/webhook_transport.h"

namespace dibs::server {

/// The Service of that namespace and name, or null.
using ServiceFinder =
    std::function<json::Value(std::string_view name_space, std::string_view name)>;

/// Sets where `call` goes: `url`, or the cluster address of `service` where that is an object.
/// Requires the call's timeout, which errors tell. Errors: unavailable, in upstream's words.
Result<> address_webhook(WebhookCall& call, const std::string& url, const json::Value& service,
                         const ServiceFinder& find);

}  // namespace dibs::server
