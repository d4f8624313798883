#include "dns/responder.h"

#include <algorithm>

namespace dibs::dns {
namespace {

constexpr int kMostAliases = 8;
// Enough to overflow a datagram, so that the rest is asked for over TCP.
constexpr std::size_t kMostInDatagram = 128;
constexpr std::size_t kMostInStream = 4096;

enum Counted : std::size_t { kCluster, kForwarded, kRefused, kMalformed };
constexpr const char* kCounted[] = {"cluster", "forwarded", "refused", "malformed"};

}  // namespace

struct Responder::Asked {
  Message query;
  Message answer;
  std::string address;
  Reply reply;
  bool stream = false;
  int aliases = 0;

  std::size_t limit() const {
    if (stream) return kLongestMessage;
    if (!query.edns) return kPlainDatagram;
    return std::clamp<std::size_t>(query.edns->size, kPlainDatagram, kDatagram);
  }
  void add(std::vector<Record> answers, std::vector<Record> authority,
           std::vector<Record> additional) {
    std::move(answers.begin(), answers.end(), std::back_inserter(answer.answers));
    answer.authority = std::move(authority);
    answer.additional = std::move(additional);
  }
};

Responder::Responder(const Zone& zone, Forwarder& forwarder, Clients& clients,
                     runtime::Random& random, metrics::Registry* metrics)
    : zone_(zone), forwarder_(forwarder), clients_(clients), random_(random) {
  if (metrics == nullptr) return;
  auto family =
      metrics->counter("dibs_dns_requests_total",
                       "Questions to the cluster's name server on this machine.", {"result"});
  for (const char* what : kCounted) counters_.push_back(&family.with({what}));
}

void Responder::count(std::size_t what) {
  if (!counters_.empty()) counters_[what]->add();
}

bool Responder::handle(std::string_view bytes, const std::string& address, std::int64_t now,
                       bool stream, Reply reply) {
  if (clients_.admit(address, now) == nullptr) {
    count(kRefused);
    return false;
  }
  auto asked = std::make_shared<Asked>();
  asked->reply = std::move(reply);
  asked->address = address;
  asked->stream = stream;
  auto query = bytes.size() <= kLongestQuestion ? parse(bytes) : Error::invalid("too long");
  const bool is_answer = bytes.size() < kHeader || (bytes[2] & 0x80) != 0;
  // An answer to an answer could go on for ever.
  if (is_answer) {
    count(kMalformed);
    return false;
  }
  Message& answer = asked->answer;
  if (query) {
    asked->query = std::move(*query);
    answer.id = asked->query.id;
    answer.opcode = asked->query.opcode;
  } else {
    answer.id = static_cast<std::uint16_t>(static_cast<std::uint8_t>(bytes[0]) << 8 |
                                           static_cast<std::uint8_t>(bytes[1]));
  }
  answer.response = true;
  answer.recursion_available = true;
  answer.recursion_desired = asked->query.recursion_desired;
  answer.checking_disabled = asked->query.checking_disabled;
  answer.questions = asked->query.questions;
  if (asked->query.edns) answer.edns = Edns{kDatagram, 0, asked->query.edns->dnssec_ok};

  const auto refuse = [&](Rcode rcode) {
    count(kMalformed);
    answer.rcode = rcode;
    send(*asked);
    return true;
  };
  if (!query) return refuse(Rcode::format_error);
  if (asked->query.opcode != 0) return refuse(Rcode::not_implemented);
  if (asked->query.questions.size() != 1) {
    answer.questions.clear();
    return refuse(Rcode::format_error);
  }
  if (asked->query.edns && asked->query.edns->version > 0) return refuse(Rcode::bad_version);
  const Question question = asked->query.questions.front();
  if (question.klass != kInternet || question.type == type::axfr || question.type == type::ixfr ||
      question.type == type::opt) {
    return refuse(Rcode::refused);
  }
  proceed(asked, question);
  return true;
}

void Responder::proceed(const std::shared_ptr<Asked>& asked, const Question& question) {
  auto found = zone_.answer(question, asked->stream ? kMostInStream : kMostInDatagram);
  if (!found) return forward(asked, question);
  count(kCluster);
  shuffle(found->answers);
  Message& answer = asked->answer;
  answer.rcode = found->rcode;
  // Of the first name, as RFC 1034 has it.
  if (asked->aliases == 0) answer.authoritative = found->rcode != Rcode::server_failure;
  asked->add(std::move(found->answers), std::move(found->authority), std::move(found->additional));
  if (!found->alias || ++asked->aliases > kMostAliases) return send(*asked);
  proceed(asked, {*found->alias, question.type, question.klass});
}

void Responder::forward(const std::shared_ptr<Asked>& asked, const Question& question) {
  count(kForwarded);
  Client* client = clients_.known(asked->address);
  Message& answer = asked->answer;
  // Who wants no recursion wants to know what others have asked.
  if (!asked->query.recursion_desired) {
    answer.rcode = Rcode::refused;
    return send(*asked);
  }
  if (client == nullptr || client->waiting >= Clients::kMostWaiting) {
    answer.rcode = Rcode::server_failure;
    return send(*asked);
  }
  ++client->waiting;
  const Forwarder::Asking asking{question, asked->query.edns && asked->query.edns->dnssec_ok,
                                 asked->query.checking_disabled};
  forwarder_.ask(asking, [this, asked](const Message& found) {
    if (Client* waiter = clients_.known(asked->address)) --waiter->waiting;
    Message& out = asked->answer;
    out.rcode = found.rcode;
    out.authentic_data = asked->aliases == 0 && found.authentic_data;
    out.truncated = found.truncated;
    asked->add(found.answers, found.authority, found.additional);
    send(*asked);
  });
}

void Responder::shuffle(std::vector<Record>& records) {
  for (std::size_t left = records.size(); left > 1; --left) {
    std::swap(records[left - 1], records[random_.below(left)]);
  }
}

void Responder::send(const Asked& asked) {
  if (asked.reply) asked.reply(write(asked.answer, asked.limit()));
}

}  // namespace dibs::dns
