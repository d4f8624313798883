#include "cli/clusters.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/names.h"
#include "base/strings.h"
#include "cli/columns.h"
#include "cli/driver_programs.h"
#include "cli/process.h"
#include "cli/user_kubeconfig.h"
#include "json/parse.h"
#include "node/runtime/machine_network.h"
#include "node/runtime/mounts.h"
#include "node/runtime/traces.h"
#include "server/credentials.h"
#include "store/sqlite_file.h"

namespace dibs::cli {
namespace {

namespace fs = std::filesystem;
using json::Value;

constexpr const char* kLock = "/cluster.lock";
constexpr const char* kRecord = "/cluster.json";
constexpr const char* kStore = "/store.db";
/// What a cluster has in its folder besides: a restored one has none of it yet.
constexpr std::string_view kMadeByStart[] = {"cluster.json", "cluster.nodes", "kubeconfig",
                                             "log",          "nodes",         "usage"};
/// A cluster ends within a second; one on a slow disk may take longer.
constexpr std::chrono::seconds kPatience{20};
constexpr std::chrono::seconds kMoment{3};
constexpr std::size_t kLongestName = 40;
/// That of the unit in the package, whose process has no home folder.
constexpr const char* kService = "/var/lib/dibs";

/// Of a cluster with a name.
Result<std::string> named_folder(const std::string& name) {
  DIBS_TRY(const std::string unnamed, data_folder(""));
  return cat(unnamed, '-', name);
}

/// Also of a folder that was deleted, by the link to it that is left.
std::string canonical(const std::string& folder) {
  std::error_code failed;
  fs::path path = fs::absolute(folder, failed);
  if (fs::is_symlink(path, failed) && !fs::exists(path, failed)) {
    const fs::path target = fs::read_symlink(path, failed);
    if (target.is_absolute()) path = target;
  }
  return fs::weakly_canonical(path, failed).string();
}

/// Whatever a `dibs up` was killed at: it made the lock before anything else. A store alone is one
/// that was restored. Other software has files and folders of such names, too, and all of a cluster
/// is about to be taken away.
bool is_cluster(const std::string& folder) {
  return runtime::system_files().exists(folder + kLock) ||
         store::SqliteFile::open(folder + kStore, nullptr).ok();
}

bool has_open(pid_t pid, const std::string& file) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(cat("/proc/", pid, "/fd"), failed)) {
    if (fs::read_symlink(entry.path(), failed) == file) return true;
  }
  return false;
}

/// Who holds the lock, by the kernel's word: the record may be of a process before it. 0: nobody,
/// or a process that is not seen from here.
pid_t holder_of(const std::string& folder) {
  const std::string file = canonical(folder) + kLock;
  struct stat lock = {};
  const auto locks = runtime::system_files().read("/proc/locks");
  if (::stat(file.c_str(), &lock) != 0 || !locks.ok()) return 0;
  const std::string inode = cat(':', lock.st_ino);
  // 3: FLOCK  ADVISORY  WRITE 25459 fe:00:9980417 0 EOF. The device is not always the one that
  // stat() names, so the process is asked.
  for (const auto line : split(*locks, '\n')) {
    std::vector<std::string_view> words;
    for (const auto word : split(line, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    if (words.size() < 6 || words[1] != "FLOCK" || !words[5].ends_with(inode)) continue;
    const auto pid = static_cast<pid_t>(std::atol(std::string(words[4]).c_str()));
    if (pid > 1 && has_open(pid, file)) return pid;
  }
  return 0;
}

Value record_of(const std::string& folder) {
  const auto text = runtime::system_files().read(folder + kRecord);
  const auto record = text.ok() ? json::parse(*text) : Result<Value>(text.error());
  return record.ok() ? *record : Value();
}

std::vector<std::string> texts(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) out.push_back(item.str());
  return out;
}

Value as_list(const std::vector<std::string>& texts) {
  Value list = Value::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

struct Known {
  std::string name;
  std::string folder;
  bool has_link = false;  // the name alone leads to it
};

/// A link to the folder of a cluster that has no name for one: "dibs-%2Fsrv%2Fdata". No name of a
/// cluster looks like that.
Result<std::string> link_to(const std::string& folder) {
  std::string text;
  for (const char c : folder) {
    if (c == '/' || c == '%') {
      text += c == '/' ? "%2F" : "%25";
    } else {
      text += c;
    }
  }
  return named_folder(text);
}

Result<std::vector<Known>> known_clusters() {
  std::vector<Known> found;
  const auto note = [&found](Known one) {
    if (!is_cluster(one.folder)) return;
    const bool is_known = std::any_of(
        found.begin(), found.end(), [&](const Known& known) { return known.folder == one.folder; });
    if (!is_known) found.push_back(std::move(one));
  };
  DIBS_TRY(const std::string unnamed, data_folder(""));
  note({kUnnamed, canonical(unnamed), true});
  const fs::path folder(unnamed);
  const std::string prefix = cat(folder.filename().string(), '-');
  const auto files = runtime::system_files().list(folder.parent_path());
  for (const std::string& file : files.ok() ? *files : std::vector<std::string>()) {
    const std::string path = folder.parent_path() / file;
    if (!file.starts_with(prefix) || file == prefix) continue;
    std::error_code failed;
    if (fs::is_symlink(path, failed) && !fs::exists(path, failed)) {
      fs::remove(path, failed);  // its folder was deleted
      continue;
    }
    const std::string name = file.substr(prefix.size());
    const bool is_name = !name.starts_with("%2F");
    note({is_name ? name : kUnnamed, canonical(path), is_name});
  }
  note({kUnnamed, canonical(kService)});
  return found;
}

/// For `dibs list`, where there is a home folder to write to. Links to folders that were deleted
/// go.
void note_folder(const std::string& folder) {
  const auto known = known_clusters();
  const auto link = link_to(folder);
  if (!known.ok() || !link.ok()) return;
  for (const Known& one : *known) {
    if (one.folder == folder) return;
  }
  if (!runtime::system_files().make_dirs(fs::path(*link).parent_path()).ok()) return;
  std::error_code failed;
  fs::create_directory_symlink(folder, *link, failed);
}

/// Ends the process that has the folder; it is let end by itself first.
Result<> end_process(const std::string& folder, const std::string& name) {
  if (!is_running(folder)) return success();
  const auto ended = [&](std::chrono::seconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (is_running(folder)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  };
  pid_t pid = holder_of(folder);
  // One that was just killed has no files any more, and its lock for a moment.
  if (pid == 0 && ended(kMoment)) return success();
  if (pid == 0) pid = holder_of(folder);
  if (pid == 0) {
    return Error::unavailable(
        cat("a process that is not seen from here has ", folder, " open: end it, then try again"));
  }
  if (::kill(pid, SIGTERM) != 0 && errno == EPERM) {
    return Error::forbidden(cat("process ", pid, " of cluster ", name, " is not yours to end"));
  }
  if (ended(kPatience)) return success();
  std::fprintf(stderr, "dibs down: process %d does not end, it is killed\n", static_cast<int>(pid));
  ::kill(pid, SIGKILL);
  if (ended(kPatience)) return success();
  return Error::timeout(cat("process ", pid, " of cluster ", name, " does not end"));
}

bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

/// The root folder of `dibs node`: agents alone make that file.
bool is_agent(const std::string& folder) {
  return !is_cluster(folder) && runtime::system_files().exists(folder + "/.agent");
}

template <std::size_t N>
bool is_one_of(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// The name of a file that is half written, "NAME.PID.NUMBER.tmp", without what makes it one.
std::string_view without_marks(std::string_view file) {
  if (!file.ends_with(".tmp")) return file;
  std::string_view name = file.substr(0, file.size() - 4);
  for (int i = 0; i < 2; ++i) {
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos || dot + 1 == name.size()) return file;
    if (name.find_first_not_of("0123456789", dot + 1) != std::string_view::npos) return file;
    name = name.substr(0, dot);
  }
  return name;
}

/// --data-dir may name a folder that has other things in it.
bool is_made_here(const fs::directory_entry& entry, bool agent) {
  constexpr std::string_view kCluster[] = {"store.db",     "store.db-journal", "store.db-shm",
                                           "store.db-wal", "store.db.ballast", "store.db.lock"};
  constexpr std::string_view kAgent[] = {".agent",
                                         "cdi",
                                         "containers",
                                         "device-plugins",
                                         "dra_manager_state",
                                         "logs",
                                         "plugins",
                                         "pod-resources",
                                         "plugins_registry",
                                         "pods",
                                         "network-devices",
                                         "node.kubeconfig"};
  const std::string file = entry.path().filename();
  const std::string_view name = without_marks(file);
  if (agent) return is_one_of(kAgent, name);
  const bool is_folder = name == "nodes" || name == "usage";
  std::error_code failed;
  return (is_one_of(kCluster, name) || is_one_of(kMadeByStart, name)) &&
         fs::is_directory(entry.symlink_status(failed)) == is_folder;
}

/// Of what is in the folder, those that `is_ours`; `others` gets the names of the rest.
template <typename IsOurs>
Result<> remove_ours(const std::string& folder, const std::string& prefix, IsOurs is_ours,
                     std::vector<std::string>& others) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (!is_ours(entry)) {
      others.push_back(prefix + entry.path().filename().string());
      continue;
    }
    std::error_code left;
    fs::remove_all(entry.path(), left);
    if (left) {
      return Error::internal(cat("cannot remove ", entry.path().string(), ": ", left.message()));
    }
  }
  return success();
}

/// `dibs node` holds no lock of a cluster.
Result<> check_no_agent(const std::string& folder) {
  const auto end = std::chrono::steady_clock::now() + kMoment;
  for (const node::Trace& trace : node::find_traces()) {
    if (!is_below(trace.root, folder)) continue;
    while (true) {
      const auto lock = runtime::system_files().lock(trace.run + "/lock");
      if (lock.ok() || lock.error().code() != Code::unavailable) break;
      if (std::chrono::steady_clock::now() > end) {
        return Error::unavailable(
            cat("an agent has ", trace.root, " open: end it (dibs node), then try again"));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  return success();
}

/// What of the machine is the cluster's. Of clusters whose folders were deleted, too.
Result<> clear_machine(const std::string& folder) {
  end_left_programs(folder);
  for (const node::Trace& trace : node::find_traces()) {
    if (is_below(trace.root, folder)) DIBS_CHECK(node::remove_trace(trace));
  }
  DIBS_CHECK(node::unmount_below(folder));
  node::remove_networks_of(folder);
  if (::geteuid() == 0) {
    node::remove_abandoned();
    node::remove_abandoned_networks();
  }
  return success();
}

/// Processes, and what is on the machine for them. Nobody starts it again before the lock goes.
Result<std::unique_ptr<runtime::FileLock>> end_cluster(const std::string& name,
                                                       const std::string& folder) {
  DIBS_CHECK(end_process(folder, name));
  std::unique_ptr<runtime::FileLock> lock;
  // That of an agent alone has none, and needs none.
  if (is_cluster(folder)) {
    DIBS_TRY(lock, runtime::system_files().lock(folder + kLock));
  }
  DIBS_CHECK(check_no_agent(folder));
  DIBS_CHECK(clear_machine(folder));
  return lock;
}

/// Who reads one of them is the administrator.
Result<> remove_kubeconfigs(const std::string& name, const std::string& folder,
                            const Value& record) {
  const auto authority = server::authority_of(runtime::system_files(), folder + "/pki");
  if (!authority.ok()) return success();
  for (const std::string& file : texts(record["kubeconfigs"])) {
    DIBS_CHECK(remove_kubeconfig(file, context_of(name), *authority));
  }
  return success();
}

Result<> take_down_folder(const std::string& name, const std::string& folder, const Value& record) {
  const bool agent = is_agent(folder);
  DIBS_TRY(const auto lock, end_cluster(name, folder));
  DIBS_CHECK(remove_kubeconfigs(name, folder, record));
  std::vector<std::string> others;
  const auto is_key = [keys = server::credential_files()](const fs::directory_entry& entry) {
    const std::string file = entry.path().filename();
    return std::find(keys.begin(), keys.end(), without_marks(file)) != keys.end();
  };
  const auto is_ours = [agent](const fs::directory_entry& entry) {
    return is_made_here(entry, agent);
  };
  std::error_code failed;
  if (!agent) {
    DIBS_CHECK(remove_ours(folder + "/pki", "pki/", is_key, others));
    fs::remove(folder + "/pki", failed);
  }
  DIBS_CHECK(remove_ours(folder, "", is_ours, others));
  std::erase(others, "pki");  // named file by file
  // The last: until then it is a cluster that can be taken down.
  fs::remove(folder + kLock, failed);
  std::erase(others, kLock + 1);
  fs::remove(folder, failed);
  if (!others.empty()) {
    std::fprintf(stderr, "dibs down: what is not of the cluster stays in %s: %s\n", folder.c_str(),
                 join(others, ", ").c_str());
  }
  return success();
}

}  // namespace

std::string context_of(const std::string& name) {
  return name.empty() || name == kUnnamed ? kUnnamed : cat(kUnnamed, '-', name);
}

Result<std::string> cluster_folder(const std::string& name, const std::string& data_dir) {
  if (!name.empty()) {
    const auto problems = is_dns1123_label(name);
    if (!problems.empty() || name.size() > kLongestName) {
      return Error::bad_request(cat("the name of a cluster, ", quoted(name),
                                    ": must be lower case letters, digits and '-', at most ",
                                    kLongestName, " of them"));
    }
  }
  if (!data_dir.empty() || name.empty() || name == kUnnamed) return data_folder(data_dir);
  return named_folder(name);
}

Result<> check_data_folder(const std::string& folder) {
  if (is_cluster(folder)) return success();
  runtime::Files& files = runtime::system_files();
  for (const std::string_view name : kMadeByStart) {
    if (!files.exists(cat(folder, "/", name))) continue;
    return Error::bad_request(cat("--data-dir ", quoted(folder), ": has ", name,
                                  " that no cluster has made: choose a folder without it, or move "
                                  "it away"));
  }
  if (!files.exists(folder + kStore)) return success();
  const auto store = store::SqliteFile::open(folder + kStore, nullptr);
  return Error::bad_request(cat("--data-dir ", quoted(folder), ": ", store.error().message(),
                                ": choose another folder, or move it away"));
}

bool is_running(const std::string& folder) {
  if (!runtime::system_files().exists(folder + kLock)) return false;
  const auto lock = runtime::system_files().lock(folder + kLock);
  return !lock.ok() && lock.error().code() == Code::unavailable;
}

Result<RunningCluster> RunningCluster::take(const std::string& name, const std::string& folder,
                                            bool has_own_folder) {
  RunningCluster cluster;
  cluster.name_ = name.empty() ? kUnnamed : name;
  cluster.folder_ = canonical(folder);
  auto lock = runtime::system_files().lock(folder + kLock);
  if (!lock.ok()) {
    if (lock.error().code() != Code::unavailable) return lock.error();
    return Error::unavailable(
        cat(folder, " is in use by another process (", holder_of(folder),
            "): `dibs down` ends it, or choose another name or data directory"));
  }
  cluster.lock_ = std::move(lock).value();
  const Value before = record_of(folder);
  cluster.kubeconfigs_ = texts(before["kubeconfigs"]);
  cluster.merged_ = texts(before["merged"]);
  // A server must start on a full disk, too: what stands there is only what `dibs list` shows.
  (void)cluster.tell("", "").ok();
  if (!has_own_folder) return cluster;
  if (cluster.name_ == kUnnamed) {
    note_folder(cluster.folder_);
    return cluster;
  }
  DIBS_TRY(const std::string link, named_folder(name));
  DIBS_CHECK(runtime::system_files().make_dirs(fs::path(link).parent_path()));
  std::error_code failed;
  if (fs::is_symlink(link, failed)) fs::remove(link, failed);
  fs::create_directory_symlink(cluster.folder_, link, failed);
  if (failed) {
    return Error::conflict(cat("there is another cluster ", quoted(name), " in ", link,
                               ": choose another name, or `dibs down ", name, "` first"));
  }
  return cluster;
}

Result<> RunningCluster::tell(const std::string& url, const std::string& kubeconfig,
                              const std::string& merged) {
  const auto note = [](std::vector<std::string>& files, const std::string& file) {
    if (file.empty() || std::find(files.begin(), files.end(), file) != files.end()) return;
    files.push_back(file);
  };
  note(merged_, merged);
  if (!is_below(kubeconfig, folder_)) note(kubeconfigs_, kubeconfig);
  return runtime::system_files().write(
      folder_ + kRecord, json::write(Value::object({{"name", name_},
                                                    {"server", url},
                                                    {"kubeconfig", kubeconfig},
                                                    {"kubeconfigs", as_list(kubeconfigs_)},
                                                    {"merged", as_list(merged_)}})));
}

int list_clusters(const ListFlags& flags) {
  const auto known = known_clusters();
  if (!known.ok()) return exit_status("list", known.error());
  std::vector<std::vector<std::string>> rows = {{"NAME", "STATUS", "SERVER", "CONTEXT", "FOLDER"}};
  Value list = Value::array({});
  for (const Known& one : *known) {
    const bool is_up = is_running(one.folder);
    const Value record = record_of(one.folder);
    const std::string server = record["server"].str();
    const char* status = !is_up ? "stopped" : server.empty() ? "starting" : "running";
    rows.push_back(
        {one.name, status, server.empty() ? "-" : server, context_of(one.name), one.folder});
    Value shown = Value::object({{"name", one.name},
                                 {"status", status},
                                 {"server", server},
                                 {"context", context_of(one.name)},
                                 {"kubeconfig", record["kubeconfig"].str()},
                                 {"folder", one.folder}});
    if (is_up) shown.set("process", static_cast<std::int64_t>(holder_of(one.folder)));
    list.push(std::move(shown));
  }
  if (flags.output == "json") {
    std::cout << json::write(list) << '\n';
  } else if (flags.output == "name") {
    for (const Known& one : *known) {
      if (one.has_link) std::cout << one.name << '\n';
    }
  } else if (rows.size() == 1) {
    std::cerr << "no clusters; `dibs up` makes one\n";
  } else {
    std::cout << in_columns(rows);
  }
  return 0;
}

int take_down(const DownFlags& flags) {
  if (flags.keep && flags.keep_data) {
    std::fprintf(stderr, "dibs down: --keep and --keep-data: the first keeps containers, too\n");
    return 2;
  }
  const auto folder = cluster_folder(flags.name, flags.data_dir);
  if (!folder.ok()) return exit_status("down", folder.error());
  const std::string place = canonical(*folder);
  const Value record = record_of(place);
  const std::string known = record["name"].str();
  // DIBS_DATA_DIR names a folder as well, and whoever names a cluster means that one.
  if (!flags.name.empty() && !flags.data_dir.empty() && !known.empty() && known != flags.name) {
    std::fprintf(stderr,
                 "dibs down: the cluster in %s is %s, not %s: give the name or the folder, and see "
                 "whether DIBS_DATA_DIR is set\n",
                 place.c_str(), known.c_str(), flags.name.c_str());
    return 1;
  }
  const std::string name = !flags.name.empty() ? flags.name : !known.empty() ? known : kUnnamed;
  if (flags.keep) {
    if (!is_running(place)) {
      std::fprintf(stderr, "dibs down: cluster %s does not run\n", name.c_str());
      return 1;
    }
    const auto ended = end_process(place, name);
    if (ended.ok()) std::printf("cluster %s is stopped; its containers go on\n", name.c_str());
    return exit_status("down", ended);
  }
  const bool agent = is_agent(place);
  const bool is_known = is_cluster(place) || agent || node::has_network(place);
  bool has_traces = false;
  for (const node::Trace& trace : node::find_traces()) {
    has_traces = has_traces || is_below(trace.root, place);
  }
  if (!is_known && !has_traces) {
    std::fprintf(stderr,
                 "dibs down: there is no cluster %s (%s); `dibs list` shows those there are\n",
                 name.c_str(), place.c_str());
    return 1;
  }
  const std::string what = agent ? cat("the node in ", place) : cat("cluster ", name);
  if (flags.keep_data) {
    const auto ended = end_cluster(name, place);
    if (!ended.ok()) return exit_status("down", ended.error());
    std::printf("%s has ended; its data stays in %s\n", what.c_str(), place.c_str());
    return 0;
  }
  if (const auto gone = take_down_folder(name, place, record); !gone.ok()) {
    return exit_status("down", gone);
  }
  for (const auto& link : {named_folder(name), link_to(place)}) {
    std::error_code failed;
    if (!link.ok() || canonical(*link) != place) continue;
    if (fs::is_symlink(*link, failed)) fs::remove(*link, failed);
  }
  if (const auto left = leave_user_kubeconfig(context_of(name), place, texts(record["merged"]));
      !left.ok()) {
    return exit_status("down", left);
  }
  std::printf("%s is gone\n", what.c_str());
  return 0;
}

}  // namespace dibs::cli
