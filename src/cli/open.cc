#include "cli/open.h"

#include <cstdio>

#include "base/strings.h"
#include "cli/process.h"
#include "client/client.h"
#include "client/https_transport.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

Result<> print_link(const OpenFlags& flags) {
  DIBS_TRY(const client::Access access, find_access(flags.kubeconfig, flags.context));
  runtime::RealRuntime runtime;
  DIBS_TRY(const auto transport,
           client::make_https_transport(access, runtime::system_files(), runtime.runtime()));
  client::Client client(*transport);
  std::string_view server = access.server;
  while (server.ends_with('/')) server.remove_suffix(1);
  // A link to a page that is not there would only be found out in the browser.
  client::Request page;
  page.method = "GET";
  page.target = "/dibs/";
  page.headers.add("Accept-Encoding", "gzip");
  DIBS_TRY(const client::Response found, transport->send(std::move(page)));
  if (found.status != 200) {
    const std::string_view text = trim(found.body);
    const bool explains = (found.status == 404 || found.status == 403) &&
                          found.headers.get("Content-Type").starts_with("text/plain");
    return Error::unavailable(explains ? cat(server, ": ", text)
                                       : cat(server, ": is no dibs with a page: it answers ",
                                             found.status, " to GET /dibs/"));
  }
  client::Request request;
  request.method = "POST";
  request.target = "/dibs/codes";
  DIBS_TRY(const json::Value answer, client.call(std::move(request)));
  const std::string_view code = answer["code"].as_string();
  if (code.empty()) return Error::unavailable(cat(server, ": answers without a code"));
  std::printf("%s/dibs/#code=%s\n", std::string(server).c_str(), std::string(code).c_str());
  std::fflush(stdout);
  std::fprintf(stderr, "good once, until %s\n", answer["expires"].str().c_str());
  return success();
}

}  // namespace

int open_page(const OpenFlags& flags) { return exit_status("open", print_link(flags)); }

}  // namespace dibs::cli
