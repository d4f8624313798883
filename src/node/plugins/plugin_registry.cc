#include "node/plugins/plugin_registry.h"

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/work_queue.h"
#include "proto/plugin_registration.pb.h"

namespace dibs::node {
namespace {

using client::WorkOutcome;

constexpr auto kDialLimit = std::chrono::seconds(10);
constexpr auto kFirstDial = std::chrono::milliseconds(5);
constexpr auto kLongestDial = std::chrono::seconds(1);
constexpr auto kInfoDeadline = std::chrono::seconds(1);
constexpr auto kNotifyDeadline = std::chrono::seconds(5);

client::WorkQueueOptions queue_options() {
  client::WorkQueueOptions options;
  options.concurrency = 16;
  options.first_delay = std::chrono::milliseconds(500);
  options.longest_delay = std::chrono::seconds(122);
  options.retries_per_second = 0;
  return options;
}

}  // namespace

Result<PluginInfo> ask_plugin(rpc::Channel& channel, const std::string& path) {
  const rpc::Reply reply =
      channel.call("/pluginregistration.Registration/GetInfo", "", kInfoDeadline);
  if (!reply.status.ok()) {
    Code code = Code::internal;
    if (reply.status.code == rpc::Code::unavailable) code = Code::unavailable;
    if (reply.status.code == rpc::Code::deadline_exceeded) code = Code::timeout;
    return Error(code, cat("failed to get plugin info using RPC GetInfo at socket ", path,
                           ", err: ", reply.status.text()));
  }
  pluginregistration::PluginInfo message;
  if (!message.ParseFromString(reply.bytes)) {
    return Error::internal(cat("plugin info at socket ", path, " cannot be decoded"));
  }
  PluginInfo info{message.type(), message.name(), message.endpoint(), {}};
  info.versions.assign(message.supported_versions().begin(), message.supported_versions().end());
  if (info.endpoint.empty()) info.endpoint = path;
  return info;
}

Result<> tell_plugin(rpc::Channel& channel, bool registered, const std::string& error) {
  pluginregistration::RegistrationStatus status;
  status.set_plugin_registered(registered);
  status.set_error(error);
  const rpc::Reply reply = channel.call("/pluginregistration.Registration/NotifyRegistrationStatus",
                                        status.SerializeAsString(), kNotifyDeadline);
  if (reply.status.ok()) return success();
  return Error::internal(
      cat("RegisterPlugin error -- failed to send registration status: ", reply.status.text()));
}

struct PluginRegistry::State {
  struct Desired {
    std::string uuid;
    Duration first_dial{-1};
    Duration next_dial = kFirstDial;
    bool settled = false;  // was registered, or refused, at least once
  };
  struct Registered {
    std::string uuid;
    PluginInfo info;
  };

  State(runtime::Runtime& r, Connect c, std::map<std::string, PluginHandler*> h)
      : runtime(r),
        connect(std::move(c)),
        handlers(std::move(h)),
        queue(r, queue_options(), [this](const std::string& path) { return reconcile(path); }) {}

  WorkOutcome reconcile(const std::string& path) {
    std::optional<Registered> obsolete;
    std::string wanted;
    {
      const MutexLock lock(mutex);
      const auto is = registered.find(path);
      const auto should = desired.find(path);
      if (should != desired.end()) wanted = should->second.uuid;
      if (is != registered.end() && is->second.uuid != wanted) {
        obsolete = is->second;
        registered.erase(is);
      } else if (is != registered.end()) {
        return WorkOutcome::done();
      }
    }
    if (obsolete) {
      log::info("plugin deregistered", {{"name", obsolete->info.name}, {"socket", path}});
      handlers.at(obsolete->info.type)->remove(obsolete->info);
    }
    if (wanted.empty()) return WorkOutcome::done();
    const WorkOutcome outcome = add(path, wanted);
    if (outcome.kind != WorkOutcome::Kind::again_after) settle(path, wanted);
    return outcome;
  }

  void settle(const std::string& path, const std::string& uuid) {
    const MutexLock lock(mutex);
    const auto should = desired.find(path);
    if (should != desired.end() && should->second.uuid == uuid) should->second.settled = true;
  }

  WorkOutcome add(const std::string& path, const std::string& uuid) {
    const auto channel = connect(path);
    const auto info = ask_plugin(*channel, path);
    if (!info) {
      if (info.error().code() == Code::unavailable) return dial_later(path, uuid, info.error());
      return failed(path, info.error());
    }
    const auto handler = handlers.find(info->type);
    if (handler == handlers.end()) {
      return refuse(*channel, path,
                    cat("RegisterPlugin error -- no handler registered for plugin type: ",
                        info->type, " at socket ", path));
    }
    if (auto valid = handler->second->validate(*info); !valid) {
      return refuse(*channel, path,
                    cat("RegisterPlugin error -- plugin validation failed with err: ",
                        valid.error().message()));
    }
    {
      const MutexLock lock(mutex);
      registered[path] = {uuid, *info};
    }
    if (auto added = handler->second->add(*info); !added) {
      forget(path);
      return refuse(*channel, path,
                    cat("RegisterPlugin error -- plugin registration failed with err: ",
                        added.error().message()));
    }
    if (auto told = tell_plugin(*channel, true, ""); !told) {
      forget(path);
      handler->second->remove(*info);
      return failed(path, told.error());
    }
    log::info("plugin registered",
              {{"name", info->name}, {"endpoint", info->endpoint}, {"socket", path}});
    return WorkOutcome::done();
  }

  /// A socket's file is there a moment before anybody listens.
  WorkOutcome dial_later(const std::string& path, const std::string& uuid, const Error& error) {
    const MutexLock lock(mutex);
    const auto should = desired.find(path);
    if (should == desired.end() || should->second.uuid != uuid) return WorkOutcome::done();
    Desired& dial = should->second;
    const Duration now = runtime.clock.steady();
    if (dial.first_dial < Duration(0)) dial.first_dial = now;
    if (now - dial.first_dial >= kDialLimit) {
      dial.first_dial = Duration(-1);
      dial.next_dial = kFirstDial;
      return failed(path, error);
    }
    const Duration wait = dial.next_dial;
    dial.next_dial = std::min<Duration>(wait * 2, kLongestDial);
    return WorkOutcome::again_after(wait);
  }

  WorkOutcome refuse(rpc::Channel& channel, const std::string& path, const std::string& why) {
    if (auto told = tell_plugin(channel, false, why); !told) {
      log::debug("a plugin took its refusal badly", {{"socket", path}, {"error", told.error()}});
    }
    return failed(path, Error::internal(why));
  }

  static WorkOutcome failed(const std::string& path, const Error& error) {
    log::warn("plugin not registered", {{"socket", path}, {"error", error}});
    return WorkOutcome::retry();
  }

  void forget(const std::string& path) {
    const MutexLock lock(mutex);
    registered.erase(path);
  }

  runtime::Runtime& runtime;
  const Connect connect;
  const std::map<std::string, PluginHandler*> handlers;
  Mutex mutex;
  std::map<std::string, Desired> desired DIBS_GUARDED_BY(mutex);        // by path
  std::map<std::string, Registered> registered DIBS_GUARDED_BY(mutex);  // by path
  client::WorkQueue queue;
};

PluginRegistry::PluginRegistry(runtime::Runtime& runtime, Connect connect,
                               std::map<std::string, PluginHandler*> handlers)
    : state_(std::make_unique<State>(runtime, std::move(connect), std::move(handlers))) {}

PluginRegistry::~PluginRegistry() { stop(); }

void PluginRegistry::appeared(const std::string& path) {
  {
    const MutexLock lock(state_->mutex);
    state_->desired[path] = {runtime::make_uuid(state_->runtime.random)};
  }
  state_->queue.forget(path);
  state_->queue.add(path);
}

void PluginRegistry::gone(const std::string& path) {
  {
    const MutexLock lock(state_->mutex);
    state_->desired.erase(path);
  }
  state_->queue.add(path);
}

bool PluginRegistry::settling() const {
  const MutexLock lock(state_->mutex);
  return std::any_of(state_->desired.begin(), state_->desired.end(),
                     [](const auto& entry) { return !entry.second.settled; });
}

void PluginRegistry::stop() { state_->queue.stop(); }

}  // namespace dibs::node
