#pragma once
// Certificates for podCertificate sources of projected volumes: a key for each, a
// PodCertificateRequest that a signer answers, and a new one of both before the certificate ends.
//
// Kept in memory only: an agent that starts anew asks anew, and what is in the volume stays until
// there is something newer. One watch follows the requests of this node, from the first pod with
// such a source to the last.
//
// Thread-safe; for one pod, one call at a time. get() blocks.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "client/informer.h"
#include "json/value.h"
#include "node/pods/certificate_state.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct PodCertificatesOptions {
  std::string node_name = {};
  /// A Warning event about a pod.
  std::function<void(const json::Value& pod, std::string reason, std::string note)> warn = {};
};

class PodCertificates {
 public:
  /// Client and runtime must outlive it.
  PodCertificates(client::Client& client, runtime::Runtime& runtime,
                  PodCertificatesOptions options);
  ~PodCertificates();
  PodCertificates(const PodCertificates&) = delete;
  PodCertificates& operator=(const PodCertificates&) = delete;

  /// For the source at `index` of the pod's volume. Does what is due: asks for a certificate, looks
  /// for the answer. One that could not be renewed is given out even when it has ended.
  Result<PodCredential> get(const json::Value& pod, const std::string& volume, std::size_t index,
                            const json::Value& source);
  /// When the pod should be looked at again, though nothing happened.
  std::optional<Time> next_look(const std::string& pod_uid) const;
  void forget(const std::string& pod_uid);
  /// How many there are in each state, in the text form of metrics, by the kubelet's name.
  std::string metrics() const;
  /// Called on the executor with the uid of a pod whose request was answered, or is gone. Set it
  /// before the first get().
  void on_change(std::function<void(const std::string& pod_uid)> changed);

 private:
  using Place = std::pair<std::string, std::size_t>;  // volume, index of its source
  struct Entry {
    CertificateState state = {};
    std::string signer = {};
  };
  using Places = std::map<Place, Entry>;

  void follow();
  void on_seen(const json::Value& request, bool removed);
  /// Makes a request; its name, and the key that it is for.
  Result<std::pair<std::string, std::string>> request(const json::Value& pod,
                                                      const json::Value& source);
  /// What became of a request; null where that is not known. Errors: not_found when it is gone.
  Result<json::Value> look(const std::string& name_space, const std::string& name);
  void take_answer(const json::Value& pod, CertificateState& state);

  client::Client& client_;
  runtime::Runtime& runtime_;
  const PodCertificatesOptions options_;
  mutable Mutex mutex_;
  std::map<std::string, Places> pods_ DIBS_GUARDED_BY(mutex_);  // by uid
  std::shared_ptr<client::Informer> informer_ DIBS_GUARDED_BY(mutex_);
  std::function<void(const std::string&)> changed_ DIBS_GUARDED_BY(mutex_);
};

/// The PodCertificateRequest for a source. `account` and `node` are those objects.
json::Value certificate_request(const json::Value& pod, const json::Value& source,
                                const json::Value& account, const json::Value& node,
                                const std::string& request_der);

}  // namespace dibs::node
