#include "load/crowd.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "load/connection.h"
#include "load/load.h"
#include "load/objects.h"
#include "load/process.h"

namespace dibs::bench {
namespace {

constexpr std::string_view kSpace = "shared";
constexpr std::string_view kBindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";
constexpr std::uint64_t kObjects = 1000;
constexpr int kPatience = 120;  // seconds

/// Calls until it is true.
template <typename Condition>
void wait_until(const char* what, Condition condition) {
  const double end = seconds_now() + kPatience;
  while (!condition()) {
    if (seconds_now() > end) die(cat("not within ", kPatience, " s: ", what));
    ::usleep(50'000);
  }
}

/// The user jane with her objects. What she waits for first is what she waits for alone.
class Patient {
 public:
  Patient(const TlsSettings& tls, const CrowdSettings& settings, Report& report)
      : tls_(tls), settings_(settings), report_(report) {
    Connection admin(tls);
    make_namespace(admin, kSpace);
    must_create(
        admin, kBindings,
        R"({"metadata":{"name":"users"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
        R"("kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"greedy",)"
        R"("apiGroup":"rbac.authorization.k8s.io"},{"kind":"User","name":"jane",)"
        R"("apiGroup":"rbac.authorization.k8s.io"}]})");
    Work fill = creates(kSpace);
    fill.count = kObjects;
    Load(tls, 64, settings.threads).run(fill);
    made_ = kObjects;
  }

  void waits(const std::string& beside) {
    create("a create of one user" + beside, 201);
    get("a get of one user" + beside);
  }
  void get(const std::string& name) { measure("get", gets(kSpace, kObjects), name); }
  void create(const std::string& name, int status) {
    Work work = creates(kSpace);
    work.first = made_;
    work.expected_status = status;
    if (status != 201) work.other_status = 201;  // there may be room again
    made_ += measure("create", work, name);
  }
  /// Of what create() made.
  void remove(const std::string& name, std::uint64_t count) {
    if (removed_ + count > made_) die("there is not enough to delete");
    measure("delete", deletes(kSpace, removed_, count), name);
    removed_ += count;
  }

 private:
  std::uint64_t measure(const std::string& what, const Work& base, const std::string& name) {
    Work work = as_user("jane", base);
    if (work.count == 0 || work.again) work.seconds = settings_.seconds;
    const Outcome outcome = Load(tls_, 1, 1).run(work);
    const auto [alone, first] = alone_.try_emplace(what, outcome.late_ms);
    report_.add(
        {name, outcome.late_ms, "ms", first ? 0 : outcome.late_ms / alone->second,
         first ? "" : "alone",
         cat("p99; p50 ", round_text(outcome.middle_ms, 2), " ms, ", outcome.done, " requests")});
    return outcome.done;
  }

  const TlsSettings& tls_;
  const CrowdSettings& settings_;
  Report& report_;
  std::uint64_t made_ = 0;
  std::uint64_t removed_ = kObjects;  // those that are read stay
  std::map<std::string, double> alone_;
};

std::string body_of(Connection& connection, std::string_view target) {
  connection.keep_body();
  connection.exchange(make_request("GET", target));
  return connection.body();
}

std::size_t count(std::string_view text, std::string_view word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

std::string upgrade(std::string_view target) {
  std::string out = make_request("GET", target);
  out.insert(out.find("\r\n") + 2,
             "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
             "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n");
  return out;
}

/// Streams of one pod, half of them logs, of the rest one in five a command.
std::vector<std::unique_ptr<Connection>> open_streams(const TlsSettings& tls, std::size_t wanted,
                                                      bool ports) {
  const std::string pod = cat(kPods, "/listener");
  const std::string log = make_request("GET", pod + "/log?follow=true");
  const std::string port = upgrade(pod + "/portforward?ports=8080");
  const std::string command =
      upgrade(pod + "/exec?stdout=true&stdin=true&command=sleep&command=9999");
  std::vector<std::unique_ptr<Connection>> out;
  for (std::size_t i = 0; i < wanted; ++i) {
    auto& one = *out.emplace_back(std::make_unique<Connection>(tls));
    const bool is_log = i % 2 == 0;
    one.send(is_log ? log : i % 10 == 1 || !ports ? command : port);
    while (one.status() == 0) {
      one.wait();
      one.receive();
    }
    if (one.status() != (is_log ? 200 : 101)) die(cat("a stream was answered with ", one.status()));
  }
  return out;
}

/// What ends in front of `target` with the version of the collection at this moment.
std::string from_now(Connection& connection, std::string_view target) {
  const std::string list = body_of(connection, cat(target, "?limit=1"));
  constexpr std::string_view kVersion = "\"resourceVersion\":\"";
  const auto at = list.find(kVersion);
  if (at == std::string::npos) die("a list has no resourceVersion");
  const auto begin = at + kVersion.size();
  return cat(target, "?watch=1&resourceVersion=",
             std::string_view(list).substr(begin, list.find('"', begin) - begin));
}

/// Opens all of them at once; meanwhile one object is updated again and again under another watch.
void open_beside(const TlsSettings& tls, const std::vector<std::string>& targets,
                 std::uint64_t events, const std::string& name, const Baseline& baseline,
                 Report& report) {
  Connection writer(tls);
  Watchers begun(tls, 1, from_now(writer, path_of(kSpace)));
  const std::string object = "map-0000000";
  std::string request =
      make_request("PUT", path_of(kSpace, object), config_map(object, cat("mark-", kNumber)));
  const auto mark = request.find(cat("mark-", kNumber)) + 5;
  std::uint64_t number = static_cast<std::uint64_t>(seconds_now()) % 1'000'000;
  std::vector<double> times;
  const auto update = [&] {
    write_number(request, mark, ++number);
    times.push_back(begun.fan_out(writer, request));
  };
  for (int i = 0; i < 50; ++i) update();
  times.clear();
  Watchers many(tls, targets);
  std::atomic<bool> open = false;
  double took = 0;
  std::thread opener([&] {
    const double began = seconds_now();
    many.open(events);
    took = (seconds_now() - began) * 1000;
    open = true;
  });
  while (!open) update();
  opener.join();
  std::sort(times.begin(), times.end());
  report.add({name, took, "ms", took * baseline.echoes / 1000, "TLS echo",
              cat("until all have begun; an event to another watch: p50 ",
                  round_text(times[times.size() / 2], 2), " ms, slowest of ", times.size(), " ",
                  round_text(times.back(), 1), " ms")});
}

/// A tmpfs that only this process and its children see.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& folder) : filler_(folder + "/filler") {
    ready_ = ::unshare(CLONE_NEWNS) == 0 &&
             ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
             ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=200m") == 0;
    if (ready_) folder_ = folder;
  }
  ~SmallDisk() {
    if (ready_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool ready() const { return ready_; }
  void fill() const {
    const int fd = ::open(filler_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const std::string zeros(1 << 20, '\0');
    for (std::size_t piece = zeros.size(); piece >= 4096; piece /= 2) {
      while (::write(fd, zeros.data(), piece) == static_cast<ssize_t>(piece)) {
      }
    }
    ::close(fd);
  }

 private:
  std::string folder_;
  std::string filler_;
  bool ready_ = false;
};

}  // namespace

void measure_watch_openings(const CrowdSettings& settings, const Baseline& baseline,
                            Report& report) {
  constexpr std::uint64_t kStored = 60'000;
  constexpr std::size_t kWatches = 1000;
  Folder folder;
  ServerProcess server(settings.binary, folder.path(), "sqlite");
  const TlsSettings tls(read_kubeconfig(server.kubeconfig()));
  Connection admin(tls);
  make_namespace(admin, kSpace);
  Work fill = creates(kSpace);
  fill.count = kStored;
  Load(tls, 256, settings.threads).run(fill);
  // A bookmark says where the state ends.
  const std::string all = cat(path_of(kSpace),
                              "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&"
                              "resourceVersionMatch=NotOlderThan");
  std::vector<std::string> targets;
  for (std::size_t i = 1; i <= kWatches; ++i) {
    std::string number(kNumber);
    write_number(number, 0, i);
    targets.push_back(cat(all, "&fieldSelector=metadata.name%3Dmap-", number));
  }
  const std::string among = cat(" at once among ", kStored, " objects");
  open_beside(tls, targets, 2, cat(kWatches, " watches of an object each", among), baseline,
              report);
  targets.assign(kWatches, cat(all, "&labelSelector=app%3Dnobody"));
  open_beside(tls, targets, 1, cat(kWatches, " watches by label", among), baseline, report);
  const double before = server.memory().anonymous_mb;
  targets.assign(20, all);
  open_beside(tls, targets, kStored + 1, cat(20, " watches of everything", among), baseline,
              report);
  report.add({"memory beyond that of before", server.memory().anonymous_mb - before, "MB", 0, "",
              "right after these 20"});
}

void measure_greedy(const CrowdSettings& settings, Report& report) {
  constexpr std::size_t kGreedy = 500;
  Folder folder;
  ServerProcess server(settings.binary, folder.path(), "sqlite");
  const TlsSettings tls(read_kubeconfig(server.kubeconfig()));
  Patient jane(tls, settings, report);
  jane.waits("");

  // Lists of a thousand objects: the most that a client can ask for.
  Connection admin(tls);
  make_namespace(admin, "listed");
  Work fill = creates("listed");
  fill.count = kObjects;
  Load(tls, 64, settings.threads).run(fill);
  Work list;
  list.request = make_request("GET", path_of("listed"));
  list = as_user("greedy", list);
  list.other_status = 429;
  list.seconds = 2 * settings.seconds + 0.5;
  Load load(tls, kGreedy, 1);
  std::thread beside([&] { load.run(list); });
  ::usleep(200'000);
  jane.waits(cat(", ", kGreedy, " greedy conn. beside"));
  beside.join();
}

void measure_streams(const CrowdSettings& settings, Report& report) {
  Folder folder;
  ServerProcess server(settings.binary, folder.path(), "sqlite", {"--image-alias", "busybox"},
                       "up");
  const TlsSettings tls(read_kubeconfig(server.kubeconfig()));
  Connection admin(tls);
  must_create(
      admin, kPods,
      R"({"metadata":{"name":"listener"},"spec":{"terminationGracePeriodSeconds":1,"containers":[)"
      R"({"name":"c","image":"busybox:1.36","command":["sh","-c",)"
      R"("echo begun; exec nc -ll -p 8080 -e sleep 9999"]}]}})");
  wait_until("a pod that listens", [&] {
    return body_of(admin, cat(kPods, "/listener")).find("\"ready\":true") != std::string::npos;
  });
  const bool real = body_of(admin, "/api/v1/nodes").find("dibs-sim") == std::string::npos;
  Patient jane(tls, settings, report);
  jane.waits(", a cluster of one node");
  {
    const auto streams = open_streams(tls, settings.crowd, real);
    jane.waits(cat(", ", streams.size(), " open streams",
                   real ? "" : " (simulated containers: no forwarded ports)"));
  }
  // Containers outlive the server.
  admin.exchange(make_request("DELETE", cat(kPods, "/listener")));
  wait_until("the end of the pod", [&] {
    body_of(admin, cat(kPods, "/listener"));
    return admin.status() == 404;
  });
}

void measure_terminating(const CrowdSettings& settings, Report& report) {
  constexpr std::size_t kPodsOfNode = 100;
  Folder folder;
  ServerProcess server(
      settings.binary, folder.path(), "sqlite",
      {"--runtime", "sim", "--nodes", cat((settings.crowd + kPodsOfNode - 1) / kPodsOfNode)}, "up");
  const TlsSettings tls(read_kubeconfig(server.kubeconfig()));
  Patient jane(tls, settings, report);
  const std::string nodes = ", a cluster of simulated nodes";
  jane.waits(nodes);

  Work pods;
  pods.request = make_request(
      "POST", kPods,
      cat(R"({"metadata":{"name":"pod-)", kNumber,
          R"("},"spec":{"terminationGracePeriodSeconds":3600,"containers":[{"name":"c",)"
          R"("image":"busybox:1.36","command":["sh","-c","trap '' TERM; sleep 9999 & wait"]}]}})"));
  pods.number_at = pods.request.find(kNumber);
  pods.count = settings.crowd;
  pods.expected_status = 201;
  Load load(tls, 16, settings.threads);
  load.run(pods);
  Connection admin(tls);
  const auto are = [&](std::string_view word) {
    return [&admin, word, wanted = settings.crowd] {
      return count(body_of(admin, kPods), word) == wanted;
    };
  };
  wait_until("all pods running", are("\"phase\":\"Running\""));
  Work ends = pods;
  ends.request = make_request("DELETE", cat(kPods, "/pod-", kNumber));
  ends.number_at = ends.request.find(kNumber);
  ends.expected_status = 200;
  load.run(ends);
  ::sleep(1);
  jane.waits(cat(nodes, ", ", settings.crowd, " terminating pods"));
  if (!are("\"deletionTimestamp\"")()) die("pods ended that should not hear it");
}

void measure_full_disk(const CrowdSettings& settings, Report& report) {
  constexpr std::uint64_t kDeletes = 1000;
  Folder folder;
  const SmallDisk disk(folder.path());
  if (!disk.ready()) {
    report.add({"a full disk", 0, "", 0, "", "skipped: only root can mount one"});
    return;
  }
  ServerProcess server(settings.binary, folder.path(), "sqlite");
  const TlsSettings tls(read_kubeconfig(server.kubeconfig()));
  Patient jane(tls, settings, report);
  jane.waits(", tmpfs");
  jane.remove("a delete of one user, tmpfs", kDeletes);
  disk.fill();
  // Until nothing is left but what the server keeps for deletions: what its log gives back when it
  // is cut short is written full as well.
  Connection writer(tls);
  make_namespace(writer, "more");
  std::uint64_t number = 0;
  double refused_since = 0;
  wait_until("a disk that is full for good", [&] {
    do {
      writer.exchange(
          make_request("POST", path_of("more"), config_map(cat("more-", ++number), "x")));
      if (writer.status() == 201) refused_since = seconds_now();
    } while (writer.status() == 201);
    return seconds_now() > refused_since + 4;
  });
  jane.get("a get of one user, full disk");
  jane.create("a refused create of one user, full disk", 503);
  jane.remove("a delete of one user, full disk", kDeletes);
}

}  // namespace dibs::bench
