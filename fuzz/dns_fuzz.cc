// Any bytes as a message of DNS, a question to the cluster's names among them: what is read is
// written as something that reads the same, and an answer fits where it has to.
#include "dns/message.h"
#include "dns/zone.h"
#include "fuzz/targets.h"
#include "json/parse.h"

namespace dibs::fuzz {
namespace {

void fill(dns::Zone& zone) {
  zone.set_namespace("default");
  zone.set_service(*json::parse(R"({"metadata":{"name":"web","namespace":"default"},
      "spec":{"clusterIP":"10.0.0.7","ports":[{"name":"http","port":80}]}})"));
  zone.set_service(*json::parse(
      R"({"metadata":{"name":"db","namespace":"default"},"spec":{"clusterIP":"None"}})"));
  zone.set_slice(*json::parse(R"({"metadata":{"name":"db-1","namespace":"default",
      "labels":{"kubernetes.io/service-name":"db"}},"ports":[{"name":"sql","port":5432}],
      "endpoints":[{"addresses":["10.130.0.5"],"hostname":"db-0"},{"addresses":["fd00::6"]}]})"));
  zone.set_complete();
}

void answer(const dns::Zone& zone, const dns::Question& question) {
  const auto found = zone.answer(question);
  if (!found) return;
  dns::Message message;
  message.response = true;
  message.rcode = found->rcode;
  message.questions = {question};
  message.answers = found->answers;
  message.authority = found->authority;
  message.additional = found->additional;
  message.edns = dns::Edns{dns::kDatagram, 0, false};
  const std::string bytes = dns::write(message, dns::kPlainDatagram);
  require(bytes.size() <= dns::kPlainDatagram, "an answer fits");
  const auto again = dns::parse(bytes);
  require(again.ok() && again->questions == message.questions, "an answer has its question");
  for (const auto& record : again->answers) {
    require(record.name == question.name, "an answer is to the question");
  }
}

}  // namespace

int fuzz_dns(const std::uint8_t* data, std::size_t size) {
  const auto message = dns::parse({reinterpret_cast<const char*>(data), size});
  if (!message.ok()) {
    require(!message.error().message().empty(), "an error has a message");
    return 0;
  }
  const auto again = dns::parse(dns::write(*message));
  require(again.ok(), "what is written can be read");
  if (again->truncated == message->truncated) {
    require(*again == *message, "and is the same");
  }
  const std::string cut = dns::write(*message, dns::kPlainDatagram);
  if (message->questions.size() <= 1) {
    require(cut.size() <= dns::kPlainDatagram, "a message is as long as it may be");
  }
  dns::Zone zone({.domain = "cluster.local"});
  fill(zone);
  for (std::size_t i = 0; i < message->questions.size() && i < 4; ++i) {
    answer(zone, message->questions[i]);
  }
  (void)dns::negative_ttl(*message);
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_dns)
