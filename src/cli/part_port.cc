#include "cli/part_port.h"

#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "cli/listen_address.h"
#include "net/part_pages.h"
#include "runtime/process_metrics.h"

namespace dibs::cli {
namespace {

constexpr const char* kFlag = "--metrics-bind-address";

}  // namespace

Result<> check_part_port(const std::string& address) {
  if (address.empty()) return success();
  const auto parsed = parse_listen_address(kFlag, address);
  return parsed.ok() ? success() : Result<>(parsed.error());
}

Result<std::unique_ptr<net::HttpServer>> open_part_port(const std::string& address,
                                                        metrics::Registry& registry,
                                                        std::function<bool()> ready) {
  if (address.empty()) return std::unique_ptr<net::HttpServer>();
  DIBS_TRY(const ListenAddress where, parse_listen_address(kFlag, address));
  runtime::tell_of_process(registry);
  net::ServerOptions listen;
  listen.host = where.host;
  listen.port = where.port;
  listen.threads = 1;
  auto started =
      net::HttpServer::start(std::move(listen), net::part_pages(registry, std::move(ready)));
  if (!started) return started.error().within(cat(kFlag, " ", address));
  log::info("metrics and probes", {{"host", where.host}, {"port", (*started)->port()}});
  return started;
}

}  // namespace dibs::cli
