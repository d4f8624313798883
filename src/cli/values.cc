#include "cli/values.h"

#include <utility>

#include "runtime/files.h"
#include "server/builtin_resources.h"
#include "server/encryption.h"
#include "server/etcd_form.h"

namespace dibs::cli {
namespace {

/// Null where nothing is to be encrypted.
Result<std::shared_ptr<const store::AtRest>> read_encryption(const std::string& file,
                                                             const std::string& registry,
                                                             const server::Options& options,
                                                             runtime::Random& random) {
  if (file.empty()) return std::shared_ptr<const store::AtRest>();
  auto text = runtime::system_files().read(file);
  if (!text.ok()) return text.error().within("--encryption-provider-config");
  DIBS_TRY(const auto builtin, server::builtin_resources(options));
  auto made = server::make_encryption(*text, builtin, random, registry);
  if (!made.ok()) return made.error().within("--encryption-provider-config");
  return made;
}

}  // namespace

Result<std::shared_ptr<const store::AtRest>> form_of_values(std::string_view store,
                                                            const std::string& encryption,
                                                            const store::EtcdOptions& etcd,
                                                            const server::Options& options,
                                                            runtime::Random& random) {
  const bool shared = store == "etcd";
  std::string registry = shared ? etcd.prefix : store::EtcdOptions().prefix;
  if (!registry.starts_with('/')) registry.insert(0, "/");
  while (registry.ends_with('/')) registry.pop_back();
  DIBS_TRY(auto sealed, read_encryption(encryption, registry, options, random));
  if (!shared) return sealed;
  return server::make_etcd_form(options, std::move(sealed));
}

Result<api::Features> parse_gates(const std::string& release, const std::string& gates,
                                  std::string_view release_flag) {
  const std::string& newest = api::known_releases().back();
  if (auto known = api::Features::parse(release.empty() ? newest : release, ""); !known.ok()) {
    return known.error().within(release_flag);
  }
  auto parsed = api::Features::parse(release.empty() ? newest : release, gates);
  if (!parsed.ok()) return parsed.error().within("--feature-gates");
  return parsed;
}

}  // namespace dibs::cli
