#include "server/plugins/admission_policies_bodies.h"

#include <charconv>

#include "base/strings.h"

namespace dibs::server {
namespace {

Value stream_options(const Context& context) {
  const api::SubresourceInfo* sub = context.resource->subresource(context.info.subresource);
  Value out = Value::object();
  if (sub != nullptr) out.set("kind", sub->kind.kind);
  out.set("apiVersion", "v1");
  const net::Target& target = context.target;
  if (context.info.subresource == "proxy") {
    if (!context.info.rest.empty()) out.set("path", context.info.rest);
    return out;
  }
  if (context.info.subresource == "portforward") {
    Value ports = Value::array();
    for (std::string_view text : split(target.get("ports"), ',')) {
      std::int64_t port = 0;
      auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), port);
      if (code == std::errc() && end == text.data() + text.size()) ports.push(port);
    }
    if (!ports.empty()) out.set("ports", std::move(ports));
    return out;
  }
  for (std::string_view flag : {"stdin", "stdout", "stderr", "tty"}) {
    if (query_flag(target, flag)) out.set(flag, true);
  }
  if (auto container = target.get("container"); !container.empty()) out.set("container", container);
  if (context.info.subresource == "attach") return out;
  Value command = Value::array();
  for (const auto& [key, value] : target.query) {
    if (key == "command") command.push(value);
  }
  out.set("command", command.empty() ? Value() : std::move(command));
  return out;
}

}  // namespace

Result<> admit_body(const AdmissionChain& chain, Context& context, Operation operation,
                    Value& body) {
  Write write(context, *context.resource, Verb::create);
  write.operation = operation;
  write.subresource = context.info.subresource;
  write.object = body;
  DIBS_CHECK(chain.mutate_unstored(write));
  DIBS_CHECK(chain.validate(write));
  body = std::move(write.object);
  return success();
}

Result<> admit_stream(const AdmissionChain& chain, Context& context) {
  Value options = stream_options(context);
  return admit_body(chain, context, Operation::connect, options);
}

}  // namespace dibs::server
