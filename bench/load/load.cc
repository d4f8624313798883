#include "load/load.h"
#include "base/mutex.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/strings.h"
#include "load/process.h"

namespace dibs::bench {
namespace {

constexpr int kBatch = 256;
constexpr int kPatienceMs = 60000;

class Epoll {
 public:
  Epoll() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {}
  ~Epoll() { ::close(fd_); }
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;
  void add(int fd, std::size_t index) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    ::epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// What the threads of one run share.
struct Shared {
  const Work& work;
  double deadline;
  std::atomic<std::uint64_t> next{0};
  Mutex mutex;
  std::vector<float> latencies DIBS_GUARDED_BY(mutex);  // milliseconds

  /// False when there is nothing more to send.
  bool take(std::uint64_t& number, double now) {
    if (work.seconds > 0 && now >= deadline) return false;
    const std::uint64_t index = next.fetch_add(1, std::memory_order_relaxed);
    if (work.count == 0) {
      number = work.first + index;
      return true;
    }
    if (index >= work.count && !work.again) return false;
    // Gets hop about: neighbours in the store would come from the processor's cache.
    number = work.first + (work.again ? index * 7919 % work.count : index);
    return true;
  }
};

void run_share(std::vector<std::unique_ptr<Connection>>& connections, Shared& shared) {
  Epoll epoll;
  std::string request = shared.work.request;
  std::vector<double> sent(connections.size());
  std::vector<float> latencies;
  latencies.reserve(1 << 16);
  std::size_t open = 0;
  const auto send = [&](std::size_t i, double now) {
    std::uint64_t number = 0;
    if (!shared.take(number, now)) return false;
    if (shared.work.number_at != std::string::npos)
      write_number(request, shared.work.number_at, number);
    for (const std::size_t at : shared.work.also_at) write_number(request, at, number);
    sent[i] = now;
    connections[i]->send(request);
    return true;
  };
  for (std::size_t i = 0; i < connections.size(); ++i) {
    epoll.add(connections[i]->fd(), i);
    if (send(i, seconds_now())) ++open;
  }
  epoll_event events[kBatch];
  while (open > 0) {
    const int count = ::epoll_wait(epoll.fd(), events, kBatch, kPatienceMs);
    if (count == 0) die("no answer within a minute");
    for (int e = 0; e < count; ++e) {
      const auto i = static_cast<std::size_t>(events[e].data.u64);
      Connection& connection = *connections[i];
      if (connection.receive() != Read::complete) continue;
      if (connection.status() != shared.work.expected_status &&
          connection.status() != shared.work.other_status) {
        die(cat("the server answered ", connection.status(), " instead of ",
                shared.work.expected_status, ": ", shared.work.request.substr(0, 100)));
      }
      const double now = seconds_now();
      latencies.push_back(static_cast<float>((now - sent[i]) * 1000));
      if (!send(i, now)) --open;
    }
  }
  MutexLock lock(shared.mutex);
  shared.latencies.insert(shared.latencies.end(), latencies.begin(), latencies.end());
}

}  // namespace

void write_number(std::string& text, std::size_t at, std::uint64_t number) {
  for (std::size_t digit = 7; digit-- > 0; number /= 10)
    text[at + digit] = static_cast<char>('0' + number % 10);
}

Load::Load(const TlsSettings& settings, std::size_t connections, std::size_t threads)
    : shares_(std::min(connections, threads)) {
  for (std::size_t i = 0; i < connections; ++i) {
    shares_[i % shares_.size()].push_back(std::make_unique<Connection>(settings));
  }
}

Load::~Load() = default;

Outcome Load::run(const Work& work) {
  const double cpu = own_cpu_seconds();
  const double began = seconds_now();
  Shared shared{work, began + work.seconds, {}, {}, {}};
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < shares_.size(); ++i) {
    threads.emplace_back([&, i] { run_share(shares_[i], shared); });
  }
  run_share(shares_[0], shared);
  for (auto& thread : threads) thread.join();

  Outcome out;
  out.seconds = seconds_now() - began;
  out.own_cpu = own_cpu_seconds() - cpu;
  auto& all = shared.latencies;
  out.done = all.size();
  if (all.empty()) die("nothing was answered");
  std::sort(all.begin(), all.end());
  out.middle_ms = static_cast<double>(all[all.size() / 2]);
  out.late_ms = static_cast<double>(all[all.size() * 99 / 100]);
  return out;
}

Watchers::Watchers(const TlsSettings& settings, const std::vector<std::string>& targets)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  for (const std::string& target : targets) {
    requests_.push_back(make_request("GET", target));
    auto& connection = connections_.emplace_back(std::make_unique<Connection>(settings));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = connections_.size() - 1;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection->fd(), &event);
  }
}

Watchers::Watchers(const TlsSettings& settings, std::size_t count, const std::string& target)
    : Watchers(settings, std::vector<std::string>(count, target)) {
  open(0);
}

void Watchers::open(std::uint64_t events) {
  for (std::size_t i = 0; i < connections_.size(); ++i) connections_[i]->send(requests_[i]);
  wait_for(events, events == 0);
}

Watchers::~Watchers() { ::close(epoll_); }

double Watchers::fan_out(Connection& writer, const std::string& request) {
  const std::uint64_t wanted = connections_.front()->events() + 1;
  const double began = seconds_now();
  writer.send(request);
  wait_for(wanted, false);
  const double took = (seconds_now() - began) * 1000;
  while (writer.receive() != Read::complete) writer.wait();
  if (writer.status() != 200) die(cat("an update was answered with ", writer.status()));
  return took;
}

void Watchers::wait_for(std::uint64_t events, bool heads_only) {
  const auto done = [&](const Connection& connection) {
    return heads_only ? connection.status() == 200 : connection.events() >= events;
  };
  std::size_t left = 0;
  for (const auto& connection : connections_) left += done(*connection) ? 0 : 1;
  epoll_event ready[kBatch];
  while (left > 0) {
    const int count = ::epoll_wait(epoll_, ready, kBatch, kPatienceMs);
    if (count == 0) die("a watcher got nothing within a minute");
    for (int i = 0; i < count; ++i) {
      Connection& connection = *connections_[static_cast<std::size_t>(ready[i].data.u64)];
      const bool before = done(connection);
      if (connection.receive() == Read::complete)
        die(cat("a watch was answered with ", connection.status()));
      if (!before && done(connection)) --left;
    }
  }
}

}  // namespace dibs::bench
