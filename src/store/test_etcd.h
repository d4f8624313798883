#pragma once
// Real etcd processes for tests: members on ports of the loopback that the system picked, their
// data in a temporary folder, gone at the end.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "store/test_support.h"

namespace dibs::store::testing {

/// The program, or "" where there is none: DIBS_ETCD, or `etcd` of the PATH.
inline std::string etcd_program() {
  if (const char* named = std::getenv("DIBS_ETCD"); named != nullptr && *named != '\0') {
    return ::access(named, X_OK) == 0 ? named : "";
  }
  const char* path = std::getenv("PATH");
  for (const auto folder : split(path == nullptr ? "" : path, ':')) {
    std::string program = cat(folder, "/etcd");
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

inline constexpr const char* kNoEtcd =
    "skipped: there is no etcd (the package etcd-server, or DIBS_ETCD names the program)";

/// Free, and not of those that the system gives to whoever asks for any: a member that is started
/// again must find its own free still.
inline int free_port(std::minstd_rand& chance) {
  while (true) {
    const int port = std::uniform_int_distribution(12000, 29999)(chance);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool is_free = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(fd);
    if (is_free) return port;
  }
}

inline bool answers(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const int rc = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::close(fd);
  return rc == 0;
}

/// A program that runs until it is ended. Its output is in `log`.
class Process {
 public:
  Process(const std::vector<std::string>& command, const std::string& log) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  ~Process() { kill(SIGKILL); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void kill(int number) {
    if (pid_ <= 0) return;
    ::kill(pid_, number);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
};

/// What `command` ended with; 0: success.
inline int run(const std::vector<std::string>& command, const std::string& log) {
  return Process(command, log).wait();
}

class EtcdCluster {
 public:
  struct Options {
    int members = 1;
    std::vector<std::string> flags = {};
    std::string scheme = "http";  // for clients
    bool wait = true;
  };
  EtcdCluster() : EtcdCluster(Options()) {}
  explicit EtcdCluster(const Options& options) : options_(options) {
    std::minstd_rand chance{std::random_device()()};
    for (int i = 0; i < options.members; ++i) {
      members_.push_back({free_port(chance), free_port(chance), nullptr});
      cluster_ += cat(i == 0 ? "" : ",", "m", i, "=http://127.0.0.1:", members_.back().peer_port);
    }
    token_ = cat("t", members_[0].peer_port);
    for (int i = 0; i < options.members; ++i) start(i);
    for (int i = 0; options.wait && i < options.members; ++i) wait_for(i);
  }

  std::string endpoint(int i = 0) const { return cat(options_.scheme, "://127.0.0.1:", port(i)); }
  std::vector<std::string> endpoints() const {
    std::vector<std::string> out;
    for (int i = 0; i < options_.members; ++i) out.push_back(endpoint(i));
    return out;
  }
  int port(int i = 0) const { return member(i).client_port; }

  void start(int i, const std::string& state = "new") {
    Member& is = members_[static_cast<std::size_t>(i)];
    const std::string clients = endpoint(i);
    const std::string peers = cat("http://127.0.0.1:", is.peer_port);
    std::vector<std::string> command = {etcd_program(), "--name",
                                        cat("m", i),    "--data-dir",
                                        data(i),        "--listen-client-urls",
                                        clients,        "--advertise-client-urls",
                                        clients,        "--listen-peer-urls",
                                        peers,          "--initial-advertise-peer-urls",
                                        peers,          "--initial-cluster",
                                        cluster_,       "--initial-cluster-state",
                                        state,          "--initial-cluster-token",
                                        token_};
    command.insert(command.end(), options_.flags.begin(), options_.flags.end());
    is.process = std::make_unique<Process>(command, folder_.file(cat("m", i, ".log")));
  }
  void wait_for(int i) const {
    for (int n = 0; n < 1000 && !answers(port(i)); ++n) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  void kill(int i) { members_[static_cast<std::size_t>(i)].process.reset(); }
  /// Ended, and all that it knew with it. Where it was the only one, the next is another cluster.
  void wipe(int i) {
    kill(i);
    if (options_.members == 1) token_ += "'";
    std::error_code ignored;
    std::filesystem::remove_all(data(i), ignored);
  }
  std::string data(int i) const { return folder_.file(cat("m", i)); }
  int peer_port(int i) const { return member(i).peer_port; }

 private:
  struct Member {
    int client_port = 0;
    int peer_port = 0;
    std::unique_ptr<Process> process;
  };
  const Member& member(int i) const { return members_[static_cast<std::size_t>(i)]; }

  const Options options_;
  testing::TemporaryDirectory folder_;
  std::vector<Member> members_;
  std::string cluster_;
  std::string token_;
};

/// One for the tests of a process; each takes a prefix of its own. DIBS_ETCD_MEMBERS is how many
/// members it has.
inline const EtcdCluster& shared_etcd() {
  const char* members = std::getenv("DIBS_ETCD_MEMBERS");
  static const EtcdCluster cluster({.members = members == nullptr ? 1 : std::atoi(members)});
  return cluster;
}

}  // namespace dibs::store::testing
