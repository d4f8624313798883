#include "cli/etcd_flags.h"

#include "base/strings.h"
#include "runtime/files.h"

namespace dibs::cli {

Flags etcd_flags(EtcdFlags& flags) {
  store::EtcdOptions& etcd = flags.options;
  return {
      {"--etcd-endpoints,--etcd-servers",
       &etcd.endpoints,
       "For --store etcd: https://HOST:PORT of its members, with commas between them; http without "
       "TLS",
       {.commas = true}},
      {"--etcd-cafile", &etcd.ca_file,
       "Certificates of who may have signed those of its members (default: this machine's)"},
      {"--etcd-certfile", &etcd.certificate_file, "Certificate to show to it"},
      {"--etcd-keyfile", &etcd.key_file, "Key of that certificate"},
      {"--etcd-prefix", &etcd.prefix, "What keys begin with there"},
      {"--etcd-user", &etcd.user, "User of it to be"},
      {"--etcd-password-file", &flags.password_file, "File with that user's password"},
  };
}

Result<store::EtcdOptions> etcd_options(const EtcdFlags& flags, std::string_view store) {
  store::EtcdOptions etcd = flags.options;
  const bool any = !etcd.endpoints.empty() || !flags.password_file.empty() ||
                   !(etcd.ca_file + etcd.certificate_file + etcd.key_file + etcd.user).empty() ||
                   etcd.prefix != store::EtcdOptions().prefix;
  if (store != "etcd") {
    if (any) return Error::bad_request(cat("--etcd-… need --store etcd, and it is ", store));
    return etcd;
  }
  if (!flags.password_file.empty()) {
    auto text = runtime::system_files().read(flags.password_file);
    if (!text.ok())
      return Error::bad_request(text.error().message()).within("--etcd-password-file");
    while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
    if (text->empty()) {
      return Error::bad_request(cat("--etcd-password-file: ", flags.password_file, ": empty"));
    }
    etcd.password = *text;
  }
  return etcd;
}

}  // namespace dibs::cli
