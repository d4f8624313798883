// A container's own terminal, and the ports inside a sandbox.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/strings.h"
#include "net/fd_stream.h"
#include "node/runtime/oci_namespaces.h"
#include "node/runtime/oci_runtime_state.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

using net::FdStream;
using runtime::Fd;

// The monitor's buffer; it would cut a longer packet.
constexpr std::size_t kPacket = 8000;

// The monitor closes the socket shortly before or after it writes the exit file.
constexpr Duration kLookAgain = std::chrono::milliseconds(20);
constexpr int kLooks = 500;

class SocketInput : public ProcessInput {
 public:
  /// `control`: the monitor's pipe for sizes of the terminal, "" for none.
  explicit SocketInput(std::shared_ptr<FdStream> stream, std::string control = {})
      : stream_(std::move(stream)), control_(std::move(control)) {}
  ~SocketInput() override { stream_->close(); }
  void write(std::string_view bytes) override { stream_->write(bytes); }
  std::size_t queued() const override { return stream_->queued(); }
  void close() override { stream_->finish(); }
  void hold(bool held) override { stream_->hold(held); }
  void abandon() override { stream_->close(); }
  void resize(TerminalSize size) override {
    const Fd control(::open(control_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (!control.ok()) return;
    const std::string message = cat("1 ", size.height, " ", size.width, "\n");
    (void)!::write(control.get(), message.data(), message.size());
  }

 private:
  std::shared_ptr<FdStream> stream_;
  std::string control_;
};

std::string_view state_name(ContainerState state) {
  switch (state) {
    case ContainerState::created:
      return "CONTAINER_CREATED";
    case ContainerState::running:
      return "CONTAINER_RUNNING";
    case ContainerState::exited:
      return "CONTAINER_EXITED";
    case ContainerState::unknown:
      return "CONTAINER_UNKNOWN";
  }
  return "";
}

}  // namespace

std::uint64_t OciRuntime::begin_stream(std::function<void()> stop) {
  const MutexLock lock(mutex_);
  streams_.emplace(++last_stream_, std::move(stop));
  return last_stream_;
}

void OciRuntime::end_stream(std::uint64_t stream) {
  const MutexLock lock(mutex_);
  streams_.erase(stream);
  changed_.notify_all();
}

Result<OciRuntime::ContainerPtr> OciRuntime::find_running(const std::string& id,
                                                          std::string_view refusal) {
  ContainerPtr container = find_container(id);
  if (!container) {
    return Error::not_found(cat("failed to find container ", dibs::quoted(id), ": not found"));
  }
  const MutexLock lock(mutex_);
  const ContainerState state = container->record.status.state;
  if (state == ContainerState::running) return container;
  return Error::conflict(cat(refusal, "container is in ", state_name(state), " state"));
}

Result<std::unique_ptr<ProcessInput>> OciRuntime::attach(const std::string& id,
                                                         ProcessOutput output) {
  DIBS_TRY(const ContainerPtr container, find_running(id, ""));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = cat(options_.run, "/s/", id, "/attach");
  if (path.size() >= sizeof address.sun_path) {
    return Error::internal(cat("socket path too long: ", path));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.ok() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Error::unavailable(cat("failed to attach container: ", to_lower(std::strerror(errno))));
  }
  const auto tell = std::make_shared<ProcessOutput>(std::move(output));
  const auto stream = std::make_shared<std::weak_ptr<FdStream>>();
  const auto number = begin_stream([stream] {
    if (const auto open = stream->lock()) open->close();
  });
  net::FdStream::Handlers handlers;
  handlers.data = [tell](std::string_view packet) {
    // The first byte tells the stream.
    constexpr char kOut = 2, kErr = 3;
    if (packet.size() < 2) return;
    if (packet[0] == kOut && tell->out) tell->out(packet.substr(1));
    if (packet[0] == kErr && tell->err) tell->err(packet.substr(1));
  };
  handlers.ended = [this, tell, container, number](bool by_container) {
    if (by_container) return tell_exit(container, tell, number, kLooks);
    if (tell->ended) tell->ended(0);
    end_stream(number);
  };
  handlers.drained = tell->drained;
  const auto opened = FdStream::open(loop_.loop(), socket.release(), std::move(handlers), kPacket);
  *stream = opened;
  return std::unique_ptr<ProcessInput>(
      std::make_unique<SocketInput>(opened, container_folder(id) + "/ctl"));
}

void OciRuntime::tell_exit(const ContainerPtr& container,
                           const std::shared_ptr<ProcessOutput>& tell, std::uint64_t stream,
                           int looks) {
  MutexLock lock(mutex_);
  const bool ended = container->record.phase != ContainerPhase::running;
  const int code = container->record.status.exit_code;
  lock.unlock();
  if (!ended && looks > 0) {
    machine_.timers.after(kLookAgain, [this, container, tell, stream, looks] {
      tell_exit(container, tell, stream, looks - 1);
    });
    return;
  }
  if (tell->ended) {
    tell->ended(ended ? Result<int>(code)
                      : Error::internal("the connection to the container was lost"));
  }
  end_stream(stream);
}

Result<std::unique_ptr<StreamInput>> OciRuntime::connect_port(const std::string& sandbox_id,
                                                              int port, PortOutput output) {
  const SandboxPtr sandbox = find_sandbox(sandbox_id);
  if (!sandbox) {
    return Error::not_found(
        cat("failed to find sandbox ", dibs::quoted(sandbox_id), ": not found"));
  }
  if (sandbox->record.phase != SandboxPhase::ready) {
    return Error::conflict(cat("sandbox container ", dibs::quoted(sandbox_id), " is not running"));
  }
  const std::string space =
      sandbox->record.config.host_network ? "" : namespace_folder(sandbox_id) + "/net";
  auto socket = connect_inside(space, port);
  const auto failed = [port, space](const Error& why) {
    return why
        .within(
            cat("failed to connect to localhost:", port, " inside namespace ", dibs::quoted(space)))
        .within("failed to execute portforward in network namespace " + dibs::quoted(space));
  };
  if (!socket.ok()) return failed(socket.error());
  const auto stream = std::make_shared<std::weak_ptr<FdStream>>();
  const auto number = begin_stream([stream] {
    if (const auto open = stream->lock()) open->close();
  });
  FdStream::Handlers handlers;
  handlers.data = std::move(output.data);
  handlers.ended = [this, number, stream, failed, port, ended = std::move(output.ended)](bool) {
    const auto open = stream->lock();
    const int error = open ? open->error() : 0;
    // A connection that was refused late, or never answered.
    const bool lost = error != 0 && error != ECONNRESET && error != EPIPE;
    if (ended)
      ended(
          lost ? Result<>(failed(Error::unavailable(cat(
                     "dial tcp4 127.0.0.1:", port, ": connect: ", to_lower(std::strerror(error))))))
               : success());
    end_stream(number);
  };
  handlers.drained = std::move(output.drained);
  const auto opened = FdStream::open(loop_.loop(), socket->release(), std::move(handlers));
  *stream = opened;
  return std::unique_ptr<StreamInput>(std::make_unique<SocketInput>(opened));
}

}  // namespace dibs::node
