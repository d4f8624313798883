#include "rpc/remote.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <limits>

#include "rpc/grpc_bytes.h"
#include "rpc/open_stream.h"

namespace dibs::rpc {
namespace {

using internal::OpenStream;

/// Servers of etcd end connections that ping more often than every five seconds.
constexpr int kPingMs = 6000;
constexpr int kPongMs = 4000;

class StreamHandle : public TwoWayStream {
 public:
  explicit StreamHandle(std::shared_ptr<OpenStream> stream) : stream_(std::move(stream)) {}
  ~StreamHandle() override { stream_->cancel(); }
  void write(std::string_view message) override { stream_->write(message, false); }

 private:
  const std::shared_ptr<OpenStream> stream_;
};

/// A call under way; gRPC has it until the answer.
struct Call {
  grpc::ClientContext context;
  grpc::ByteBuffer sent;
  grpc::ByteBuffer received;
  std::function<void(Reply)> done;
};

class TcpRemote : public Remote {
 public:
  explicit TcpRemote(const RemoteOptions& options) : channel_(make(options)), stub_(channel_) {}

  void call(const std::string& method, std::string_view request, Duration deadline,
            const Metadata& metadata, std::function<void(Reply)> done) override {
    auto call = std::make_shared<Call>();
    call->context.set_deadline(
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::system_clock::duration>(deadline));
    for (const auto& [name, value] : metadata) call->context.AddMetadata(name, value);
    call->sent = internal::to_buffer(request);
    call->done = std::move(done);
    stub_.UnaryCall(&call->context, method, {}, &call->sent, &call->received,
                    [call](const grpc::Status& status) {
                      Reply reply{internal::from_grpc(status), {}};
                      if (reply.status.ok()) reply.bytes = internal::to_bytes(call->received);
                      call->done(std::move(reply));
                    });
  }

  std::unique_ptr<TwoWayStream> open_stream(const std::string& method, const Metadata& metadata,
                                            StreamHandlers handlers) override {
    auto stream = std::make_shared<OpenStream>(method, metadata, std::move(handlers));
    stream->start(stub_, stream);
    return std::make_unique<StreamHandle>(stream);
  }

 private:
  static std::shared_ptr<grpc::Channel> make(const RemoteOptions& options) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPongMs);
    // A quiet stream is no reason to stop.
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 3000);  // the most that a dial takes
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
    // Who connects anew gets a new connection: certificates may have changed.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    if (!options.tls) {
      return grpc::CreateCustomChannel(options.address, grpc::InsecureChannelCredentials(),
                                       arguments);
    }
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = options.certificates.authorities;
    ssl.pem_cert_chain = options.certificates.certificate;
    ssl.pem_private_key = options.certificates.key;
    return grpc::CreateCustomChannel(options.address, grpc::SslCredentials(ssl), arguments);
  }

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
};

/// gRPC's threads for callbacks end with the last channel, and waiting for one's own end is fatal:
/// what a callback holds may be the last of a channel. So there is always one, to nowhere.
void keep_callback_threads() {
  // Nobody reads it: without being told, the compiler would not keep it.
  [[gnu::used]] static const TcpRemote* const nowhere = [] {
    RemoteOptions options;
    options.address = "unix:/dev/null/nowhere";
    options.tls = false;
    auto* remote = new TcpRemote(options);
    remote->call("/none", "", std::chrono::milliseconds(1), {}, [](const Reply&) {});
    return remote;
  }();
}

}  // namespace

std::unique_ptr<Remote> connect_remote(const RemoteOptions& options) {
  internal::quiet_grpc();
  keep_callback_threads();
  return std::make_unique<TcpRemote>(options);
}

}  // namespace dibs::rpc
