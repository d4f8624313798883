// Any configuration of CNI plugins, and anything that a plugin prints: the next plugin gets JSON,
// and a pod only gets addresses that are some.
#include <arpa/inet.h>

#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "json/parse.h"
#include "node/runtime/cni_text.h"

namespace dibs::fuzz {
namespace {

bool is_address(const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  return text.find('\0') == std::string::npos && (::inet_pton(AF_INET, text.c_str(), bytes) == 1 ||
                                                  ::inet_pton(AF_INET6, text.c_str(), bytes) == 1);
}

}  // namespace

int fuzz_cni(const std::uint8_t* data, std::size_t size) {
  using namespace node;
  Texts texts(data, size);
  const int code = texts.byte();
  const std::string_view configuration = texts.next();
  const std::string_view err = texts.next();
  const CniOutput output{code, texts.rest(), err};

  (void)read_cni_output("DEL", output).ok();
  const auto result = read_cni_output("ADD", output);
  require(!result.ok() || (code == 0 && result->is_object()), "a result is an object");
  if (result.ok()) {
    const auto addresses = cni_addresses(*result);
    require(!addresses.ok() || !addresses->empty(), "a pod has an address");
    for (const auto& one : addresses.ok() ? *addresses : std::vector<std::string>()) {
      require(is_address(one), "an address is one");
    }
  }

  const auto list = parse_cni_configuration(configuration);
  if (!list.ok()) {
    require(!list.error().message().empty(), "an error has a message");
    return 0;
  }
  SandboxConfig sandbox;
  sandbox.ports = {{"TCP", 80, 8080, "127.0.0.1"}};
  require(!(*list)["plugins"].empty(), "a list has plugins");
  for (const auto& plugin : (*list)["plugins"].items()) {
    const std::string type = plugin["type"].str();
    require(!type.empty() && type.find('/') == std::string::npos, "a type is a name");
    const json::Value input = cni_input(cni_attachment({.interface = "eth0"}, *list), plugin,
                                        sandbox, result.ok() ? *result : json::Value());
    const auto again = json::parse(json::write(input));
    require(again.ok() && *again == input, "a plugin gets JSON");
    require(input["name"] == (*list)["name"] && input["type"].str() == type, "as configured");
    require(!result.ok() || input["prevResult"] == *result, "with what the last one said");
  }
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_cni)
