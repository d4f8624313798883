#include "rpc/memory_network.h"

#include <cstdint>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::rpc {

struct MemoryNetwork::State {
  using Listener = std::function<void(const std::string&, bool)>;
  using Watch = std::function<void(bool)>;

  mutable Mutex mutex;
  std::uint64_t next DIBS_GUARDED_BY(mutex) = 1;
  std::map<std::string, std::pair<std::uint64_t, std::shared_ptr<const Methods>>> servers
      DIBS_GUARDED_BY(mutex);
  // By folder and by path: thousands of nodes share a network, and each cares about its own.
  std::map<std::string, std::map<std::uint64_t, Listener>> listeners DIBS_GUARDED_BY(mutex);
  std::map<std::string, std::map<std::uint64_t, Watch>> watches DIBS_GUARDED_BY(mutex);

  std::shared_ptr<const Methods> find(const std::string& path) const {
    const MutexLock lock(mutex);
    const auto found = servers.find(path);
    return found == servers.end() ? nullptr : found->second.second;
  }

  void tell(const std::string& path, bool there) {
    std::vector<Listener> listening;
    std::vector<Watch> watching;
    {
      const MutexLock lock(mutex);
      for (auto slash = path.find('/'); slash != std::string::npos;
           slash = path.find('/', slash + 1)) {
        const auto found = listeners.find(path.substr(0, slash));
        if (found == listeners.end()) continue;
        for (const auto& [id, listener] : found->second) listening.push_back(listener);
      }
      if (const auto found = watches.find(path); found != watches.end()) {
        for (const auto& [id, watch] : found->second) watching.push_back(watch);
      }
    }
    for (const auto& listener : listening) listener(path, there);
    for (const auto& changed : watching) changed(there);
  }

  void remove(const std::string& path, std::uint64_t id) {
    {
      const MutexLock lock(mutex);
      const auto found = servers.find(path);
      if (found == servers.end() || found->second.first != id) return;
      servers.erase(found);
    }
    tell(path, false);
  }
};

namespace {

template <typename State>
class MemoryServer : public Server {
 public:
  MemoryServer(std::shared_ptr<State> state, std::string path, std::uint64_t id)
      : state_(std::move(state)), path_(std::move(path)), id_(id) {}
  ~MemoryServer() override { stop(); }
  void stop() override { state_->remove(path_, id_); }

 private:
  std::shared_ptr<State> state_;
  const std::string path_;
  const std::uint64_t id_;
};

class EndedStream : public Stream {};

template <typename State>
class MemoryChannel : public Channel {
 public:
  MemoryChannel(std::shared_ptr<State> state, std::string path)
      : state_(std::move(state)), path_(std::move(path)) {}
  ~MemoryChannel() override {
    const MutexLock lock(state_->mutex);
    const auto found = state_->watches.find(path_);
    if (found == state_->watches.end()) return;
    found->second.erase(watch_);
    if (found->second.empty()) state_->watches.erase(found);
  }

  Reply call(const std::string& method, std::string_view request, Duration) override {
    const auto methods = state_->find(path_);
    if (!methods) {
      return {{Code::unavailable, cat("connection error: desc = \"transport: Error while dialing: "
                                      "dial unix ",
                                      path_, ": connect: no such file or directory\"")},
              {}};
    }
    const auto found = methods->unary.find(method);
    if (found == methods->unary.end()) return {{Code::unimplemented, cat("unknown ", method)}, {}};
    return found->second(request);
  }

  std::unique_ptr<Stream> open_stream(const std::string& method, std::string_view,
                                      StreamHandlers handlers) override {
    if (handlers.ended) handlers.ended({Code::unimplemented, cat("unknown ", method)});
    return std::make_unique<EndedStream>();
  }

  void watch_connection(std::function<void(bool connected)> changed) override {
    {
      const MutexLock lock(state_->mutex);
      watch_ = state_->next++;
      state_->watches[path_][watch_] = changed;
    }
    if (state_->find(path_)) changed(true);
  }

 private:
  std::shared_ptr<State> state_;
  const std::string path_;
  std::uint64_t watch_ = 0;
};

}  // namespace

MemoryNetwork::MemoryNetwork() : state_(std::make_shared<State>()) {}
MemoryNetwork::~MemoryNetwork() = default;

std::unique_ptr<Server> MemoryNetwork::serve(const std::string& path, Methods methods) {
  std::uint64_t id = 0;
  bool replaced = false;
  {
    const MutexLock lock(state_->mutex);
    id = state_->next++;
    replaced = state_->servers.count(path) != 0;
    state_->servers[path] = {id, std::make_shared<const Methods>(std::move(methods))};
  }
  if (replaced) state_->tell(path, false);
  state_->tell(path, true);
  return std::make_unique<MemoryServer<State>>(state_, path, id);
}

std::unique_ptr<Channel> MemoryNetwork::connect(const std::string& path) {
  return std::make_unique<MemoryChannel<State>>(state_, path);
}

std::vector<std::string> MemoryNetwork::paths(const std::string& folder) const {
  const std::string prefix = cat(folder, "/");
  const MutexLock lock(state_->mutex);
  std::vector<std::string> out;
  for (auto at = state_->servers.lower_bound(prefix);
       at != state_->servers.end() && at->first.compare(0, prefix.size(), prefix) == 0; ++at) {
    out.push_back(at->first);
  }
  return out;
}

std::function<void()> MemoryNetwork::listen(
    const std::string& folder, std::function<void(const std::string& path, bool there)> changed) {
  const MutexLock lock(state_->mutex);
  const std::uint64_t id = state_->next++;
  state_->listeners[folder][id] = std::move(changed);
  return [state = state_, folder, id] {
    const MutexLock lock(state->mutex);
    const auto found = state->listeners.find(folder);
    found->second.erase(id);
    if (found->second.empty()) state->listeners.erase(found);
  };
}

}  // namespace dibs::rpc
