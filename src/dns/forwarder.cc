#include "dns/forwarder.h"

#include <unistd.h>

#include <algorithm>

#include "base/strings.h"
#include "dns/address.h"
#include "dns/socket_address.h"
#include "net/fd_stream.h"

namespace dibs::dns {
namespace {

constexpr std::uint16_t kPort = 53;
constexpr std::int64_t kServersFor = 5000;  // milliseconds

std::string key_of(const Forwarder::Asking& asking) {
  const Question& question = asking.question;
  return cat(question.name.lower().wire(), question.type, ':', question.klass, ':',
             asking.dnssec_ok, asking.checking_disabled);
}

Message failure(const Question& question) {
  Message out;
  out.response = true;
  out.recursion_available = true;
  out.rcode = Rcode::server_failure;
  out.questions = {question};
  return out;
}

/// A connected socket, on its way over TCP; -1 when there is none.
int open_socket(const std::string& server, bool tcp) {
  const auto address = SocketAddress::parse(server, kPort);
  if (!address) return -1;
  const int kind = tcp ? SOCK_STREAM : SOCK_DGRAM;
  const int fd = ::socket(address->family(), kind | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (::connect(fd, address->get(), address->size) == 0 || errno == EINPROGRESS) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

/// One question on its way.
struct Forwarder::Exchange {
  std::string key;
  Asking asking;
  std::vector<Done> waiting;
  int tries = 0;
  bool tcp = false;
  bool plain = false;  // without EDNS: the server does not know it
  std::uint16_t id = 0;
  std::vector<std::string> servers;  // as they were when it was asked
  std::size_t server = 0;
  std::int64_t until = 0;
  std::shared_ptr<net::FdStream> stream;
  std::string input;               // of TCP
  std::optional<Message> refusal;  // of a server that could not help
  bool over = false;

  void hang_up() {
    if (stream) stream->close();
    stream.reset();
    input.clear();
  }
};

Forwarder::Forwarder(std::shared_ptr<net::EventLoop> loop, runtime::Random& random,
                     ForwarderOptions options)
    : loop_(std::move(loop)), random_(random), options_(std::move(options)) {}

Forwarder::~Forwarder() = default;

void Forwarder::refresh_servers() {
  if (!options_.servers || loop_->now() < servers_until_) return;
  servers_until_ = loop_->now() + kServersFor;
  std::vector<std::string> found = options_.servers();
  std::erase_if(found, [&](const std::string& server) {
    const auto address = SocketAddress::parse(server, kPort);
    if (!address) return true;
    const std::string text = address_text(address->bytes());
    return std::find(options_.never.begin(), options_.never.end(), text) != options_.never.end();
  });
  if (found != servers_) preferred_ = 0;
  servers_ = std::move(found);
}

void Forwarder::ask(const Asking& asking, Done done) {
  const std::string key = key_of(asking);
  if (closed_) return done(failure(asking.question));
  if (const auto known = cache_.find(key, loop_->now())) return done(*known);
  if (const auto asked = pending_.find(key); asked != pending_.end()) {
    if (asked->second->waiting.size() >= kMostWaiting) return done(failure(asking.question));
    asked->second->waiting.push_back(std::move(done));
    return;
  }
  refresh_servers();
  if (pending_.size() >= kMostPending || servers_.empty()) return done(failure(asking.question));
  auto exchange = std::make_shared<Exchange>();
  exchange->key = key;
  exchange->asking = asking;
  exchange->waiting.push_back(std::move(done));
  exchange->servers = servers_;
  exchange->server = preferred_;
  pending_[key] = exchange;
  attempt(exchange);
}

void Forwarder::attempt(const std::shared_ptr<Exchange>& exchange) {
  exchange->hang_up();
  exchange->until = loop_->now() + kTryFor;
  exchange->id = static_cast<std::uint16_t>(random_.below(0x10000));
  const std::string& server = exchange->servers[exchange->server % exchange->servers.size()];
  const int fd = open_socket(server, exchange->tcp);
  if (fd < 0) return next_attempt(exchange);

  Message query;
  query.id = exchange->id;
  query.recursion_desired = true;
  query.checking_disabled = exchange->asking.checking_disabled;
  query.questions = {exchange->asking.question};
  if (!exchange->plain) query.edns = Edns{kDatagram, 0, exchange->asking.dnssec_ok};
  std::string bytes = write(query);
  if (exchange->tcp) {
    bytes.insert(0, {static_cast<char>(bytes.size() >> 8), static_cast<char>(bytes.size() & 0xff)});
  }
  // A late word of an earlier attempt finds another id.
  const auto current = [weak = std::weak_ptr(exchange), id = exchange->id] {
    auto self = weak.lock();
    return self && !self->over && self->id == id ? self : nullptr;
  };
  exchange->stream = net::FdStream::open(loop_, fd,
                                         {.data =
                                              [this, current](std::string_view data) {
                                                if (const auto self = current())
                                                  received(self, data);
                                              },
                                          .ended =
                                              [this, current](bool by_peer) {
                                                const auto self = current();
                                                if (self && by_peer) next_attempt(self);
                                              }});
  if (exchange->stream) exchange->stream->write(bytes);
}

void Forwarder::next_attempt(const std::shared_ptr<Exchange>& exchange) {
  ++exchange->tries;
  ++exchange->server;
  exchange->tcp = false;
  exchange->plain = false;
  if (exchange->tries < kTries) return attempt(exchange);
  finish(exchange, exchange->refusal ? *exchange->refusal : failure(exchange->asking.question));
}

void Forwarder::received(const std::shared_ptr<Exchange>& exchange, std::string_view bytes) {
  if (!exchange->tcp) return take(exchange, bytes);
  exchange->input += bytes;
  if (exchange->input.size() < 2) return;
  const std::size_t size = static_cast<std::uint8_t>(exchange->input[0]) * std::size_t{256} +
                           static_cast<std::uint8_t>(exchange->input[1]);
  if (exchange->input.size() < 2 + size) return;
  const std::string message = exchange->input.substr(2, size);
  take(exchange, message);
}

void Forwarder::take(const std::shared_ptr<Exchange>& exchange, std::string_view bytes) {
  auto answer = parse(bytes);
  const Question& asked = exchange->asking.question;
  const auto fits = [&] {
    if (!answer || !answer->response || answer->id != exchange->id) return false;
    if (answer->opcode != 0 || answer->questions.size() != 1) return false;
    const Question& question = answer->questions.front();
    return question.type == asked.type && question.klass == asked.klass &&
           question.name.lower() == asked.name.lower();
  };
  if (!fits()) {
    // Whoever else sends to this port: the server may still answer.
    if (exchange->tcp) next_attempt(exchange);
    return;
  }
  if (answer->truncated && !exchange->tcp) {
    exchange->tcp = true;
    return attempt(exchange);
  }
  if (answer->rcode == Rcode::format_error && !exchange->plain) {
    exchange->plain = true;
    return attempt(exchange);
  }
  if (answer->rcode == Rcode::server_failure || answer->rcode == Rcode::refused ||
      answer->rcode == Rcode::not_implemented) {
    exchange->refusal = std::move(*answer);
    return next_attempt(exchange);
  }
  if (exchange->servers == servers_) preferred_ = exchange->server % servers_.size();
  finish(exchange, std::move(*answer));
}

void Forwarder::finish(const std::shared_ptr<Exchange>& exchange, Message answer) {
  exchange->over = true;
  exchange->hang_up();
  pending_.erase(exchange->key);
  answer.edns.reset();
  cache_.put(exchange->key, answer, loop_->now());
  for (const auto& done : std::exchange(exchange->waiting, {})) done(answer);
}

void Forwarder::tick() {
  std::vector<std::shared_ptr<Exchange>> late;
  for (const auto& [key, exchange] : pending_) {
    if (loop_->now() >= exchange->until) late.push_back(exchange);
  }
  for (const auto& exchange : late) {
    if (!exchange->over) next_attempt(exchange);
  }
}

void Forwarder::close() {
  closed_ = true;
  while (!pending_.empty()) {
    const auto exchange = pending_.begin()->second;
    finish(exchange, failure(exchange->asking.question));
  }
}

}  // namespace dibs::dns
