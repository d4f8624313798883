#include "rpc/tcp_call.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <chrono>

#include "base/mutex.h"
#include "rpc/grpc_bytes.h"

namespace dibs::rpc {

Reply call_tcp(const std::string& address, const std::string& method, std::string_view request,
               Duration deadline, const std::string& user_agent) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  if (!user_agent.empty()) arguments.SetUserAgentPrefix(user_agent);
  const auto channel =
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(deadline));
  context.set_wait_for_ready(true);
  const grpc::ByteBuffer sent = internal::to_buffer(request);
  grpc::ByteBuffer received;
  grpc::GenericStub stub(channel);
  Mutex mutex;
  CondVar answered;
  bool done = false;
  grpc::Status status;
  stub.UnaryCall(&context, method, {}, &sent, &received, [&](grpc::Status outcome) {
    const MutexLock lock(mutex);
    status = std::move(outcome);
    done = true;
    answered.notify_one();
  });
  MutexLock lock(mutex);
  answered.wait(lock, [&] { return done; });
  Reply reply{internal::from_grpc(status), {}};
  if (reply.status.ok()) reply.bytes = internal::to_bytes(received);
  return reply;
}

}  // namespace dibs::rpc
