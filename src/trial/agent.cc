#include "trial/agent.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/names.h"
#include "base/strings.h"
#include "node/plugins/plugin_registry.h"
#include "trial/verdict.h"

namespace dibs::trial {
namespace {

using Clock = std::chrono::steady_clock;

/// How often it is looked whether the program is still there.
constexpr Duration kLook = std::chrono::milliseconds(50);

bool is_socket(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
}

Result<> check_info(const node::PluginInfo& info) {
  if (info.type != "DRAPlugin") return unmet("type DRAPlugin in GetInfo", info.type);
  if (!is_dns1123_subdomain(info.name).empty()) {
    return unmet("a driver name of the form gpu.example.com in GetInfo", quoted(info.name));
  }
  if (!info.endpoint.starts_with('/') || !is_socket(info.endpoint)) {
    return unmet("the absolute path of a socket as endpoint in GetInfo", quoted(info.endpoint));
  }
  return success();
}

}  // namespace

Agent::Agent(runtime::Runtime& runtime, const std::string& registry, Duration call_timeout)
    : runtime_(runtime),
      registry_(registry),
      call_timeout_(call_timeout),
      watcher_(node::watch_folder(registry, runtime)) {}

Agent::~Agent() { watcher_->stop(); }

Result<> Agent::watch() {
  return watcher_->start({[this](const std::string& path) {
                            const MutexLock lock(mutex_);
                            sockets_.insert(path);
                            appeared_.notify_all();
                          },
                          [this](const std::string& path) {
                            const MutexLock lock(mutex_);
                            sockets_.erase(path);
                          }});
}

void Agent::forget() {
  plugin_.reset();
  const MutexLock lock(mutex_);
  sockets_.clear();
}

Result<std::string> Agent::next_socket(Duration timeout, const std::function<bool()>& goes_on) {
  const auto end = Clock::now() + timeout;
  while (true) {
    {
      MutexLock lock(mutex_);
      appeared_.wait_for(lock, kLook, [this]() DIBS_REQUIRES(mutex_) { return !sockets_.empty(); });
      if (!sockets_.empty()) return std::string(sockets_.extract(sockets_.begin()).value());
    }
    if (!goes_on() || Clock::now() >= end) {
      return unmet(
          cat("a registration socket in ", registry_, " within ", format_duration(timeout)),
          "none");
    }
  }
}

Result<> Agent::find_driver(Duration timeout, const std::function<bool()>& goes_on) {
  DIBS_TRY(const std::string socket, next_socket(timeout, goes_on));
  return take(socket, timeout);
}

Result<> Agent::take(const std::string& socket, Duration timeout) {
  const auto channel = rpc::connect_unix(socket);
  auto info = node::ask_plugin(*channel, socket);
  // It may be bound before somebody listens, or be late on a busy machine; an agent asks again,
  // too.
  const auto again = [&] {
    return !info &&
           (info.error().code() == Code::unavailable || info.error().code() == Code::timeout);
  };
  for (const auto end = Clock::now() + timeout; again() && Clock::now() < end;
       info = node::ask_plugin(*channel, socket)) {
    std::this_thread::sleep_for(kLook);
  }
  if (!info) return unmet("an answer to GetInfo", info.error().message());
  DIBS_CHECK(check_info(*info));
  const auto spoken = node::negotiate(info->versions, {.exact = true});
  if (!spoken) {
    return unmet("v1.DRAPlugin or v1beta1.DRAPlugin among the supported versions",
                 info->versions.empty() ? "none" : join(info->versions, ", "));
  }
  const auto told = node::tell_plugin(*channel, true, "");
  if (!told) return unmet("success from NotifyRegistrationStatus", told.error().message());
  socket_ = socket;
  plugin_ = std::make_unique<node::DraPlugin>(*info, *spoken, rpc::connect_unix(info->endpoint),
                                              runtime_.clock, metrics_, call_timeout_);
  return success();
}

bool Agent::offers(std::string_view version) const {
  const auto& all = plugin_->info().versions;
  return std::find(all.begin(), all.end(), version) != all.end();
}

std::unique_ptr<node::DraPlugin> Agent::driver_in(node::DraApi api) {
  node::Negotiated spoken = plugin_->spoken();
  spoken.api = api;
  return std::make_unique<node::DraPlugin>(plugin_->info(), spoken,
                                           rpc::connect_unix(plugin_->info().endpoint),
                                           runtime_.clock, metrics_, call_timeout_);
}

}  // namespace dibs::trial
