#include "node/pods/pod_status_writer.h"

#include <algorithm>
#include <map>

#include "base/log.h"
#include "base/mutex.h"
#include "client/gate.h"
#include "node/pods/pod_spec.h"
#include "node/pods/pod_status.h"

namespace dibs::node {
namespace {

const client::Gvr kPods{"", "v1", "pods"};
constexpr Duration kFirstRetry = std::chrono::milliseconds(100);
constexpr Duration kLongestRetry = std::chrono::seconds(10);

}  // namespace

struct PodStatusWriter::State : std::enable_shared_from_this<PodStatusWriter::State> {
  State(client::Client& api, runtime::Runtime& world, Callbacks tell)
      : client(api), runtime(world), callbacks(std::move(tell)) {}

  /// Guarded by `mutex`, which cannot be named here.
  struct Entry {
    json::Value pod;
    json::Value known;   // what the server has, in our form
    json::Value wanted;  // null: nothing to say
    json::Value sending;
    bool busy = false;  // a request or a retry is under way
    Duration retry = kFirstRetry;
  };

  client::Client& client;
  runtime::Runtime& runtime;
  const Callbacks callbacks;
  client::Gate gate;
  mutable Mutex mutex;
  std::map<std::string, std::shared_ptr<Entry>> entries DIBS_GUARDED_BY(mutex);

  void set(const json::Value& pod, json::Value status) {
    const std::string uid(uid_of(pod));
    {
      const MutexLock lock(mutex);
      auto& entry = entries[uid];
      if (entry == nullptr) {
        entry = std::make_shared<Entry>();
        entry->known = pod["status"];
      }
      entry->pod = pod;
      entry->wanted = std::move(status);
      if (entry->busy) return;
      entry->busy = true;
    }
    send(uid);
  }

  void send(const std::string& uid) {
    client::GateEntry inside(gate);
    if (!inside) return;
    client::Request request;
    std::shared_ptr<Entry> entry;
    {
      MutexLock lock(mutex);
      const auto found = entries.find(uid);
      if (found == entries.end()) return;
      entry = found->second;
      const json::Value patch = entry->wanted.is_null()
                                    ? json::Value()
                                    : status_patch(entry->pod, entry->known, entry->wanted);
      if (patch.is_null()) {
        entry->busy = false;
        if (!entry->wanted.is_null()) entry->known = std::move(entry->wanted);
        entry->wanted = json::Value();
        lock.unlock();
        if (callbacks.written) callbacks.written(uid);
        return;
      }
      entry->sending = std::move(entry->wanted);
      entry->wanted = json::Value();
      client::WriteOptions options;
      options.field_manager = "kubelet";
      options.subresource = "status";
      request = client::patch_request(kPods, namespace_of(entry->pod), name_of(entry->pod),
                                      client::PatchType::strategic, patch, options);
    }
    client.call(std::move(request),
                [self = shared_from_this(), uid, entry](Result<json::Value> answer) {
                  self->on_answer(uid, entry, answer);
                });
  }

  void on_answer(const std::string& uid, const std::shared_ptr<Entry>& entry,
                 const Result<json::Value>& answer) {
    client::GateEntry inside(gate);
    if (!inside) return;
    if (answer) {
      {
        const MutexLock lock(mutex);
        entry->known = std::move(entry->sending);
        entry->sending = json::Value();
        entry->retry = kFirstRetry;
      }
      return send(uid);
    }
    const Code code = answer.error().code();
    if (code == Code::not_found || code == Code::conflict) {
      {
        const MutexLock lock(mutex);
        entry->busy = false;
        entry->sending = json::Value();
        entry->wanted = json::Value();
      }
      if (callbacks.gone) callbacks.gone(uid);
      return;
    }
    Duration delay;
    json::Value pod;
    {
      const MutexLock lock(mutex);
      if (entry->wanted.is_null()) entry->wanted = std::move(entry->sending);
      entry->sending = json::Value();
      delay = entry->retry;
      entry->retry = std::min(entry->retry * 2, kLongestRetry);
      pod = entry->pod;
    }
    log::warn("status of a pod cannot be written",
              {{"pod", std::string(name_of(pod))}, {"error", answer.error().message()}});
    const std::weak_ptr<State> weak = weak_from_this();
    runtime.timers.after(delay, [weak, uid, refused = code == Code::invalid] {
      if (const auto self = weak.lock()) refused ? self->look(uid) : self->send(uid);
    });
  }

  /// A write that the server refuses was made against a state that is not its own: one of an agent
  /// before this one may have come through late.
  void look(const std::string& uid) {
    client::GateEntry inside(gate);
    if (!inside) return;
    std::shared_ptr<Entry> entry;
    json::Value pod;
    {
      const MutexLock lock(mutex);
      const auto found = entries.find(uid);
      if (found == entries.end()) return;
      entry = found->second;
      pod = entry->pod;
    }
    client.call(
        client::make_request("GET", client::path_of(kPods, namespace_of(pod), name_of(pod))),
        [self = shared_from_this(), uid, entry](const Result<json::Value>& answer) {
          if (answer && uid_of(*answer) == uid) {
            const MutexLock lock(self->mutex);
            entry->known = (*answer)["status"];
          }
          self->send(uid);
        });
  }
};

PodStatusWriter::PodStatusWriter(client::Client& client, runtime::Runtime& runtime,
                                 Callbacks callbacks)
    : state_(std::make_shared<State>(client, runtime, std::move(callbacks))) {}
PodStatusWriter::~PodStatusWriter() { stop(); }

void PodStatusWriter::set(const json::Value& pod, json::Value status) {
  state_->set(pod, std::move(status));
}

bool PodStatusWriter::is_written(const std::string& uid) const {
  const MutexLock lock(state_->mutex);
  const auto found = state_->entries.find(uid);
  return found == state_->entries.end() || !found->second->busy;
}

void PodStatusWriter::forget(const std::string& uid) {
  const MutexLock lock(state_->mutex);
  state_->entries.erase(uid);
}

void PodStatusWriter::stop() { state_->gate.close(); }

}  // namespace dibs::node
