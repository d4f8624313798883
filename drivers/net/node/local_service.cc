#include "drivers/net/node/local_service.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/strings.h"
#include "json/parse.h"
#include "rpc/server.h"

namespace dibs::drivers::net {
namespace {

namespace fs = std::filesystem;

// sun_path less its end.
constexpr std::size_t kMaxSocketPath = 107;

rpc::Code rpc_code(Code code) {
  switch (code) {
    case Code::invalid:
    case Code::bad_request:
    case Code::too_large:
      return rpc::Code::invalid_argument;
    case Code::not_found:
      return rpc::Code::not_found;
    default:
      // Not "unavailable": that says that nobody listens.
      return rpc::Code::internal;
  }
}

rpc::Reply refusal(const Error& error) { return {{rpc_code(error.code()), error.message()}, ""}; }

rpc::Reply answer(const Result<>& done) {
  if (!done.ok()) return refusal(done.error());
  return {{}, "{}"};
}

rpc::Methods methods_of(LocalHandler& handler) {
  rpc::Methods methods;
  methods.unary[kLocalHealth] = [](std::string_view) { return answer(success()); };
  methods.unary[kLocalAdd] = [&handler](std::string_view text) -> rpc::Reply {
    const auto request = read_nic_request(text);
    if (!request.ok()) return refusal(request.error());
    const auto addresses = handler.add(*request);
    if (!addresses.ok()) return refusal(addresses.error());
    return {{}, json::write(to_value(*addresses))};
  };
  methods.unary[kLocalCoordinator] = [&handler](std::string_view text) -> rpc::Reply {
    const auto request = read_nic_request(text);
    if (!request.ok()) return refusal(request.error());
    const auto facts = handler.coordinator(*request);
    if (!facts.ok()) return refusal(facts.error());
    return {{}, json::write(to_value(*facts))};
  };
  methods.unary[kLocalDel] = [&handler](std::string_view text) {
    const auto request = read_nic_request(text);
    return request.ok() ? answer(handler.del(*request)) : refusal(request.error());
  };
  methods.unary[kLocalAttached] = [&handler](std::string_view text) {
    const auto nic = read_attached_nic(text);
    return nic.ok() ? answer(handler.attached(*nic)) : refusal(nic.error());
  };
  return methods;
}

Error failed(std::string_view what, const std::string& path) {
  return Error::internal(cat("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

}  // namespace

struct LocalService::State {
  std::string socket;
  ino_t made = 0;
  std::unique_ptr<rpc::Server> server;
};

LocalService::LocalService() : state_(std::make_unique<State>()) {}
LocalService::~LocalService() { stop(); }

Result<std::unique_ptr<LocalService>> LocalService::start(const std::string& socket,
                                                          LocalHandler& handler) {
  const fs::path path(socket);
  if (!path.is_absolute()) return Error::invalid(cat("socket ", socket, ": must be absolute"));
  const std::string folder = path.parent_path().string();
  // Made where nobody else looks, and put in its place once only root may use it.
  std::string aside = folder + "/.new-XXXXXX";
  if (socket.size() > kMaxSocketPath || aside.size() + 2 > kMaxSocketPath) {
    return Error::invalid(cat("socket ", socket, ": longer than ", kMaxSocketPath, " bytes"));
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error::internal(cat("cannot make ", folder, ": ", error.message()));
  if (::mkdtemp(aside.data()) == nullptr) return failed("make", aside);
  const std::string hidden = aside + "/s";
  const auto clean = [&] {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
  };
  auto server = rpc::serve_unix(hidden, methods_of(handler));
  if (!server.ok()) {
    clean();
    return server.error().within(cat("socket ", socket));
  }
  std::unique_ptr<LocalService> service(new LocalService);
  State& state = *service->state_;
  state.server = std::move(server).value();
  struct stat made = {};
  if (::chmod(hidden.c_str(), 0600) != 0 || ::stat(hidden.c_str(), &made) != 0 ||
      std::rename(hidden.c_str(), socket.c_str()) != 0) {
    const Error why = failed("make", socket);
    clean();
    return why;
  }
  clean();
  state.socket = socket;
  state.made = made.st_ino;
  return service;
}

void LocalService::stop() {
  if (!state_->server) return;
  // A later one may lie there already.
  struct stat there = {};
  if (!state_->socket.empty() && ::stat(state_->socket.c_str(), &there) == 0 &&
      there.st_ino == state_->made) {
    ::unlink(state_->socket.c_str());
  }
  state_->server->stop();
  state_->server.reset();
}

}  // namespace dibs::drivers::net
