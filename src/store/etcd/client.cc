#include "store/etcd/client.h"

#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "proto/etcd.pb.h"
#include "runtime/blocking.h"
#include "runtime/files.h"

namespace dibs::store::etcd {
namespace {

using namespace std::chrono_literals;

constexpr auto kMeet = 3s;
constexpr auto kAuthenticate = 10s;  // a password costs its etcd a lot of work, on purpose
constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";
constexpr const char* kSystemAuthorities = "/etc/ssl/certs/ca-certificates.crt";

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// A call whose answer somebody waits for.
class Waiting {
 public:
  void finish(rpc::Reply reply) {
    const MutexLock lock(mutex_);
    reply_ = std::move(reply);
    done_ = true;
    changed_.notify_one();
  }
  rpc::Reply wait() {
    const runtime::Blocking blocking;
    MutexLock lock(mutex_);
    changed_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return done_; });
    return std::move(reply_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool done_ DIBS_GUARDED_BY(mutex_) = false;
  rpc::Reply reply_ DIBS_GUARDED_BY(mutex_);
};

rpc::Reply call_and_wait(rpc::Remote& remote, const std::string& method, std::string_view request,
                         std::chrono::milliseconds deadline, const rpc::Metadata& metadata) {
  auto waiting = std::make_shared<Waiting>();
  remote.call(method, request, deadline, metadata,
              [waiting](rpc::Reply reply) { waiting->finish(std::move(reply)); });
  return waiting->wait();
}

/// Who is not known now will not be known in a second.
bool is_refusal(const Error& error) {
  return has(error.message(), "invalid user ID or password") ||
         has(error.message(), "user name is empty") || has(error.message(), "permission denied");
}

Result<std::string> read_pem(const std::string& path, const char* flag) {
  auto bytes = runtime::system_files().read(path);
  if (!bytes.ok()) return Error::bad_request(cat(flag, ": ", bytes.error().message()));
  if (!has(*bytes, "-----BEGIN ")) {
    return Error::bad_request(cat(flag, ": ", path, ": no PEM block in it"));
  }
  return bytes;
}

bool progress_can_be_trusted(const std::string& version) {
  std::vector<int> numbers;
  for (const auto part : split(version, '.')) {
    int number = 0;
    for (const char c : part) {
      if (c < '0' || c > '9') break;
      number = number * 10 + (c - '0');
    }
    numbers.push_back(number);
  }
  numbers.resize(3);
  if (numbers[0] != 3) return numbers[0] > 3;
  if (numbers[1] == 4) return numbers[2] >= 31;
  if (numbers[1] == 5) return numbers[2] >= 13;
  return numbers[1] > 5;
}

}  // namespace

Fault fault_of(const rpc::Status& status) {
  using rpc::Code;
  const std::string& text = status.message;
  if (has(text, "failed to connect") || has(text, "no leader")) return Fault::not_sent;
  if (has(text, "database space exceeded")) return Fault::no_space;
  if (has(text, "request is too large") || has(text, "larger than max") ||
      has(text, "too many operations")) {
    return Fault::too_large;
  }
  if (has(text, "too many requests")) return Fault::busy;
  if (has(text, "lease not found")) return Fault::no_lease;
  if (has(text, "permission denied")) return Fault::denied;
  if (has(text, "has been compacted")) return Fault::compacted;
  if (status.code == Code::unauthenticated || has(text, "revision of auth store is old") ||
      has(text, "user name is empty")) {
    return Fault::stale_auth;
  }
  switch (status.code) {
    case Code::unavailable:
    case Code::deadline_exceeded:
    case Code::cancelled:
    case Code::aborted:
    case Code::internal:
    case Code::unknown:
      return Fault::away;
    default:
      return Fault::refused;
  }
}

Error error_of(Fault fault, const rpc::Status& status) {
  switch (fault) {
    case Fault::no_space:
      return Error::unavailable(
          cat("etcd: ", status.message,
              ": only deletions are taken until its quota has room and its alarm is disarmed"));
    case Fault::too_large:
      return Error::too_large(cat("etcd: ", status.message,
                                  " (its --max-request-bytes and --max-txn-ops are the limits)"));
    case Fault::compacted:
      return Error::expired(cat("etcd: ", status.message));
    case Fault::away:
    case Fault::not_sent:
      // Where it is, is nobody's business who only asked for an object; the log tells.
      if (!status.message.starts_with("etcdserver: ")) {
        return Error::unavailable("etcd does not answer");
      }
      [[fallthrough]];
    default:
      return Error::unavailable(cat("etcd: ", status.message));
  }
}

Connection::Connection(std::string endpoint, std::unique_ptr<rpc::Remote> remote, std::string token)
    : endpoint_(std::move(endpoint)), remote_(std::move(remote)) {
  if (!token.empty()) metadata_.emplace_back("token", std::move(token));
}

void Connection::call(const std::string& method, std::string_view request,
                      std::chrono::milliseconds deadline,
                      std::function<void(rpc::Reply)> done) const {
  remote_->call(method, request, deadline, metadata_, std::move(done));
}

rpc::Reply Connection::call_and_wait(const std::string& method, std::string_view request,
                                     std::chrono::milliseconds deadline) const {
  return etcd::call_and_wait(*remote_, method, request, deadline, metadata_);
}

std::unique_ptr<rpc::TwoWayStream> Connection::open_watch(rpc::StreamHandlers handlers) const {
  rpc::Metadata metadata = metadata_;
  metadata.emplace_back("hasleader", "true");
  return remote_->open_stream("/etcdserverpb.Watch/Watch", metadata, std::move(handlers));
}

Result<> Client::check(const EtcdOptions& options) {
  if (options.endpoints.empty()) {
    return Error::bad_request("--store etcd needs --etcd-endpoints, as in https://127.0.0.1:2379");
  }
  bool tls = false;
  for (const std::string& endpoint : options.endpoints) {
    const bool https = endpoint.starts_with(kHttps);
    const std::string address =
        endpoint.substr(https ? kHttps.size() : std::min(kHttp.size(), endpoint.size()));
    if ((!https && !endpoint.starts_with(kHttp)) || address.rfind(':') == std::string::npos ||
        has(address, "/")) {
      return Error::bad_request(cat("--etcd-endpoints: ", quoted(endpoint),
                                    ": must be https://HOST:PORT or http://HOST:PORT"));
    }
    tls = tls || https;
  }
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return Error::bad_request("--etcd-certfile and --etcd-keyfile need each other");
  }
  if (!tls && !(options.ca_file + options.certificate_file).empty()) {
    return Error::bad_request(
        "--etcd-cafile and --etcd-certfile need endpoints that begin with https://");
  }
  if (options.user.empty() != options.password.empty()) {
    return Error::bad_request("--etcd-user and --etcd-password-file need each other");
  }
  return success();
}

Result<rpc::RemoteOptions> Client::read_files(const std::string& endpoint) const {
  rpc::RemoteOptions remote;
  remote.tls = endpoint.starts_with(kHttps);
  remote.address = endpoint.substr(remote.tls ? kHttps.size() : kHttp.size());
  if (remote.tls) {
    const std::string authorities =
        options_.ca_file.empty() ? kSystemAuthorities : options_.ca_file;
    DIBS_TRY(remote.certificates.authorities, read_pem(authorities, "--etcd-cafile"));
    if (!options_.certificate_file.empty()) {
      DIBS_TRY(remote.certificates.certificate,
               read_pem(options_.certificate_file, "--etcd-certfile"));
      DIBS_TRY(remote.certificates.key, read_pem(options_.key_file, "--etcd-keyfile"));
    }
  }
  return remote;
}

Result<std::string> Client::authenticate(rpc::Remote& remote) const {
  if (options_.user.empty()) return std::string();
  etcdserverpb::AuthenticateRequest request;
  request.set_name(options_.user);
  request.set_password(options_.password);
  const rpc::Reply reply = etcd::call_and_wait(remote, "/etcdserverpb.Auth/Authenticate",
                                               request.SerializeAsString(), kAuthenticate, {});
  // Without users anybody may do anything.
  if (has(reply.status.message, "authentication is not enabled")) return std::string();
  if (!reply.status.ok()) return Error::unavailable(reply.status.message);
  etcdserverpb::AuthenticateResponse answer;
  if (!answer.ParseFromString(reply.bytes)) return Error::unavailable("not an etcd");
  return answer.token();
}

Result<> Client::check(std::uint64_t cluster, Revision revision, Revision known) const {
  if (const std::uint64_t first = cluster_; first != 0 && cluster != first) {
    return Error::unavailable(cat("it belongs to another cluster (id ", cluster,
                                  ") than the one that was met first (id ", first,
                                  "): the two are never mixed"));
  }
  if (revision < known) {
    return Error::unavailable(cat("its revision is ", revision, ", and ", known,
                                  " was there already: it has lost writes"));
  }
  return success();
}

Result<> Client::meet(Connection& connection, Revision known) {
  etcdserverpb::RangeRequest request;
  request.set_key(keys_.probe());
  request.set_limit(1);
  request.set_keys_only(true);
  const rpc::Reply reply =
      connection.call_and_wait("/etcdserverpb.KV/Range", request.SerializeAsString(), kMeet);
  if (!reply.status.ok()) return Error::unavailable(reply.status.message);
  etcdserverpb::RangeResponse answer;
  if (!answer.ParseFromString(reply.bytes) || answer.header().cluster_id() == 0) {
    return Error::unavailable("not an etcd");
  }
  DIBS_CHECK(check(answer.header().cluster_id(), answer.header().revision(), known));
  if (cluster_ == 0) cluster_ = answer.header().cluster_id();

  // Who may not ask, does without.
  const rpc::Reply status = connection.call_and_wait("/etcdserverpb.Maintenance/Status", "", kMeet);
  etcdserverpb::StatusResponse is;
  if (status.status.ok() && is.ParseFromString(status.bytes)) {
    connection.tells_progress_ = progress_can_be_trusted(is.version());
  }
  log::info("connected to etcd", {{"endpoint", connection.endpoint()}, {"version", is.version()}});
  return success();
}

Result<ConnectionPtr> Client::connect(Revision known) {
  const std::string& endpoint = options_.endpoints[next_++ % options_.endpoints.size()];
  const auto failed = [&](const std::string& why) {
    return Error::unavailable(cat("etcd ", endpoint, ": ", why));
  };
  auto options = read_files(endpoint);
  if (!options.ok()) {
    ++refusals_;
    return failed(options.error().message());
  }
  auto remote = rpc::connect_remote(*options);
  auto token = authenticate(*remote);
  auto connection = std::make_shared<Connection>(endpoint, std::move(remote),
                                                 token.ok() ? *token : std::string());
  const Result<> met = token.ok() ? meet(*connection, known) : Result<>(token.error());
  if (met.ok()) {
    refusals_ = 0;
    return ConnectionPtr(std::move(connection));
  }
  const std::string reason = rpc::tls_reason(*options);
  const bool refused = !reason.empty() || is_refusal(met.error());
  refusals_ = refused ? refusals_ + 1 : 0;
  return failed(reason.empty() ? met.error().message() : reason);
}

}  // namespace dibs::store::etcd
