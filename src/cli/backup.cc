#include "cli/backup.h"

#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "base/time.h"
#include "cli/backup_file.h"
#include "cli/live_restore.h"
#include "cli/process.h"
#include "client/https_transport.h"
#include "json/parse.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

/// The server of a kubeconfig.
struct Server {
  runtime::RealRuntime runtime;
  std::string url;
  std::unique_ptr<client::Transport> transport;
};

Result<std::unique_ptr<Server>> find_server(const std::string& kubeconfig,
                                            const std::string& context) {
  auto server = std::make_unique<Server>();
  DIBS_TRY(const auto access, find_access(kubeconfig, context));
  server->url = access.server;
  DIBS_TRY(server->transport, client::make_https_transport(access, runtime::system_files(),
                                                           server->runtime.runtime()));
  return server;
}

/// Keys and certificates of a data folder. Errors: not_found, where it has none.
Result<std::vector<server::BackupFile>> read_pki(const std::string& data_dir) {
  runtime::Files& files = runtime::system_files();
  auto names = files.list(data_dir + "/pki");
  if (!names.ok()) return names.error().within("--data-dir");
  std::vector<server::BackupFile> out;
  for (const std::string& name : *names) {
    server::BackupFile file;
    file.name = cat("pki/", name);
    const std::string path = cat(data_dir, "/", file.name);
    struct stat found = {};
    if (!server::is_backup_file_name(file.name) || ::stat(path.c_str(), &found) != 0 ||
        !S_ISREG(found.st_mode)) {
      continue;
    }
    file.mode = found.st_mode & 0777;
    DIBS_TRY(file.bytes, files.read(path));
    out.push_back(std::move(file));
  }
  if (out.empty()) return Error::not_found(cat("--data-dir ", data_dir, ": has no files in pki"));
  return out;
}

/// Before anything is written. Errors: already_exists, where others are there.
Result<> check_pki(const std::string& data_dir, const std::vector<server::BackupFile>& wanted,
                   bool overwrite) {
  runtime::Files& files = runtime::system_files();
  for (const auto& file : wanted) {
    const std::string path = cat(data_dir, "/", file.name);
    if (overwrite || !files.exists(path)) continue;
    const auto there = files.read(path);
    if (!there.ok() || *there != file.bytes) {
      return Error::already_exists(
          cat(path, ": is there and another one: choose an empty folder, or say --overwrite"));
    }
  }
  return success();
}

Result<> write_pki(const std::string& data_dir, const std::vector<server::BackupFile>& wanted) {
  if (wanted.empty()) return success();
  runtime::Files& files = runtime::system_files();
  DIBS_CHECK(files.make_dirs(data_dir + "/pki", 0700));
  for (const auto& file : wanted) {
    DIBS_CHECK(files.write(cat(data_dir, "/", file.name), file.bytes, file.mode));
  }
  return success();
}

Result<> backup_place(const BackupFlags& flags, BackupOutput& out, std::size_t& keys,
                      store::Revision& revision) {
  DIBS_TRY(const Place place, parse_place("--from", flags.from));
  DIBS_TRY(const Reading reading, read_whole_place(place, flags.place));
  revision = reading.state->revision();
  runtime::RealRuntime runtime;
  DIBS_CHECK(out.head({revision, format_rfc3339(runtime.runtime().clock.now())}));
  store::Item item;
  while (true) {
    DIBS_TRY(const bool more, reading.state->next(item));
    if (!more) return success();
    DIBS_CHECK(out.key(item));
    ++keys;
  }
}

Result<> backup_server(client::Transport& transport, BackupOutput& out, std::size_t& keys,
                       store::Revision& revision) {
  return read_server(transport, [&](server::BackupEntry& entry) -> Result<> {
    if (const auto* head = std::get_if<server::BackupHead>(&entry)) {
      revision = head->revision;
      return out.head(*head);
    }
    if (const auto* item = std::get_if<store::Item>(&entry)) {
      ++keys;
      return out.key(*item);
    }
    return success();
  });
}

Result<> backup(const BackupFlags& flags) {
  if (!flags.from.empty() && !flags.kubeconfig.empty()) {
    return Error::bad_request("--from and --kubeconfig: say one of them");
  }
  std::vector<server::BackupFile> files;
  if (!flags.data_dir.empty()) {
    DIBS_TRY(files, read_pki(flags.data_dir));
  }
  DIBS_TRY(const auto out, BackupOutput::open(flags.to));
  std::size_t keys = 0;
  store::Revision revision = 0;
  std::string source = flags.from;
  if (flags.from.empty()) {
    DIBS_TRY(const auto server, find_server(flags.kubeconfig, flags.context));
    source = server->url;
    DIBS_CHECK(backup_server(*server->transport, *out, keys, revision));
  } else {
    DIBS_CHECK(backup_place(flags, *out, keys, revision));
  }
  for (const auto& file : files) DIBS_CHECK(out->file(file));
  DIBS_CHECK(out->finish());
  std::printf("backup of %s at revision %lld: %zu objects, %zu files of pki, in %s\n",
              source.c_str(), static_cast<long long>(revision), keys, files.size(),
              flags.to.c_str());
  std::printf("secrets are in it as they are: keep it as you keep %s\n",
              files.empty() ? "those" : "those and the cluster's keys");
  return success();
}

Result<> restore_place(const RestoreFlags& flags, BackupInput& input) {
  const std::string text = flags.to.empty() ? cat("sqlite:", flags.data_dir) : flags.to;
  DIBS_TRY(const Place place, parse_place("--to", text));
  const std::string& data_dir = flags.data_dir.empty() ? place.folder : flags.data_dir;
  if (!data_dir.empty()) {
    DIBS_CHECK(check_pki(data_dir, input.files(), flags.overwrite || flags.resume));
  }
  store::FillOptions options;
  options.mark = json::write(json::Value::object(
      {{"what", "restore"}, {"from", flags.from}, {"taken", input.head().taken}}));
  options.resume = flags.resume;
  options.overwrite = flags.overwrite;
  options.progress = print_progress("restore");
  DIBS_TRY(const auto count,
           fill_place(place, flags.place, input, std::move(options), [&]() -> Result<> {
             return data_dir.empty() ? success() : write_pki(data_dir, input.files());
           }));
  std::printf(
      "restored %zu objects of %s to %s: %zu written, %zu removed; all read back and the "
      "same\n",
      count.keys, input.head().taken.c_str(), place.text.c_str(), count.written, count.removed);
  if (input.files().empty() || data_dir.empty()) {
    std::printf("%s: certificates and tokens of that cluster hold only where its pki is\n",
                input.files().empty() ? "the backup has no files of pki (`dibs backup --data-dir`)"
                                      : "pki was not restored (--data-dir)");
  } else {
    std::printf("%zu files of pki restored to %s/pki\n", input.files().size(), data_dir.c_str());
  }
  return success();
}

Result<> restore_server(const RestoreFlags& flags, BackupInput& input) {
  if (!flags.overwrite && !flags.abandon) {
    return Error::bad_request(
        "a restore on a live server removes what was made since the backup and changes back what "
        "was changed: say --overwrite");
  }
  DIBS_TRY(const auto server, find_server(flags.kubeconfig, flags.context));
  LiveRestore restore(*server->transport, input,
                      runtime::make_uuid(server->runtime.runtime().random));
  if (flags.abandon) {
    DIBS_CHECK(restore.abandon());
    std::printf("%s takes writes again, with whatever was restored\n", server->url.c_str());
    return success();
  }
  const auto count = restore.run(print_progress("restore"));
  if (!count.ok()) {
    return Error(count.error().code(), cat(count.error().message(),
                                           ": run it again to finish, or with --abandon to go on "
                                           "with what was restored"));
  }
  for (const std::string& key : restore.unreadable()) {
    std::fprintf(stderr, "%s: is no object that a server reads, left out\n", key.c_str());
  }
  std::printf("restored %s to %s: %zu written, %zu removed; read back and the same\n",
              input.head().taken.c_str(), server->url.c_str(), count->written, count->removed);
  if (restore.began_at() < input.revision()) {
    std::printf(
        "its versions are below those of the backup (%lld, %lld): clients that knew that "
        "cluster must start again\n",
        static_cast<long long>(restore.began_at()), static_cast<long long>(input.revision()));
  }
  return success();
}

Result<> restore(const RestoreFlags& flags) {
  const bool live = !flags.kubeconfig.empty();
  if (live == (!flags.to.empty() || !flags.data_dir.empty())) {
    return Error::bad_request(
        "say where to: --data-dir or --to for a cluster that does not run, --kubeconfig for a "
        "server that does");
  }
  DIBS_TRY(const auto input, BackupInput::open(flags.from));
  return live ? restore_server(flags, *input) : restore_place(flags, *input);
}

}  // namespace

int take_backup(const BackupFlags& flags) {
  log::set_level(log::Level::warn);
  return exit_status("backup", backup(flags));
}

int restore_backup(const RestoreFlags& flags) {
  log::set_level(log::Level::warn);
  return exit_status("restore", restore(flags));
}

}  // namespace dibs::cli
