#include "dns/zone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::dns {
namespace {

using json::Value;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Value object(std::string_view text) { return *json::parse(text); }

Value service(const std::string& name, const std::string& spec,
              const std::string& space = "default") {
  return object(cat(R"({"metadata":{"name":")", name, R"(","namespace":")", space, R"("},"spec":)",
                    spec, "}"));
}

Value slice(const std::string& name, const std::string& of, const std::string& endpoints,
            const std::string& ports = R"([{"name":"http","port":8080,"protocol":"TCP"}])") {
  return object(cat(R"({"metadata":{"name":")", name, R"(","namespace":"default","labels":{)",
                    R"("kubernetes.io/service-name":")", of, R"("}},"ports":)", ports,
                    R"(,"endpoints":)", endpoints, "}"));
}

struct ZoneTest : testing::Test {
  Zone zone{{.domain = "cluster.local",
             .server_addresses = {"10.0.0.10"},
             .ranges = {*Range::parse("10.0.0.0/24"), *Range::parse("10.130.0.0/16")}}};

  ZoneTest() {
    zone.set_namespace("default");
    zone.set_complete();
  }

  std::optional<Answer> ask(std::string_view name, std::uint16_t type) const {
    return zone.answer({*Name::from_text(name), type});
  }
  /// Data of the answers as text; or what there is instead.
  std::vector<std::string> look(std::string_view name, std::uint16_t type) const {
    const auto answer = ask(name, type);
    if (!answer) return {"elsewhere"};
    if (answer->rcode == Rcode::name_error) return {"NXDOMAIN"};
    if (answer->rcode != Rcode::no_error) return {"failure"};
    std::vector<std::string> out;
    for (const auto& record : answer->answers) {
      EXPECT_EQ(record.ttl, Zone::kTtl);
      out.push_back(text_of(record));
    }
    return out;
  }
  static std::string text_of(const Record& record) {
    const std::string& data = record.data;
    switch (record.type) {
      case type::a:
      case type::aaaa:
        return address_text(data);
      case type::srv:
        return cat(static_cast<std::uint8_t>(data[4]) * 256 + static_cast<std::uint8_t>(data[5]),
                   ' ', name_in(std::string_view(data).substr(6))->text());
      case type::txt:
        return data.substr(1);
      case type::soa:
        return "SOA";
      default:
        return name_in(data)->text();
    }
  }
};

TEST_F(ZoneTest, has_a_version) {
  EXPECT_THAT(look("dns-version.cluster.local", type::txt), ElementsAre("1.1.0"));
}

TEST_F(ZoneTest, has_cluster_addresses_of_services) {
  zone.set_service(service("web", R"({"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7","fd00::7"],
      "ports":[{"name":"http","port":80},{"name":"dns","port":53,"protocol":"UDP"},{"port":9}]})"));

  EXPECT_THAT(look("web.default.svc.cluster.local", type::a), ElementsAre("10.0.0.7"));
  EXPECT_THAT(look("WEB.default.SVC.cluster.Local", type::aaaa), ElementsAre("fd00::7"));
  EXPECT_THAT(look("web.default.svc.cluster.local", type::mx), IsEmpty());
  EXPECT_THAT(look("_http._tcp.web.default.svc.cluster.local", type::srv),
              ElementsAre("80 web.default.svc.cluster.local."));
  EXPECT_THAT(look("_dns._udp.web.default.svc.cluster.local", type::srv),
              ElementsAre("53 web.default.svc.cluster.local."));
  EXPECT_THAT(look("_dns._tcp.web.default.svc.cluster.local", type::srv), ElementsAre("NXDOMAIN"));
  EXPECT_THAT(look("_tcp.web.default.svc.cluster.local", type::a), IsEmpty());
  EXPECT_THAT(look("_sctp.web.default.svc.cluster.local", type::a), ElementsAre("NXDOMAIN"));
  EXPECT_THAT(look("x._tcp.web.default.svc.cluster.local", type::a), ElementsAre("NXDOMAIN"));
  EXPECT_THAT(look("7.0.0.10.in-addr.arpa", type::ptr),
              ElementsAre("web.default.svc.cluster.local."));
  EXPECT_THAT(
      look("7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa", type::ptr),
      ElementsAre("web.default.svc.cluster.local."));
}

TEST_F(ZoneTest, answers_with_the_name_as_it_was_asked) {
  zone.set_service(service("web", R"({"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"]})"));
  const auto answer = ask("wEb.default.svc.cluster.local", type::a);
  EXPECT_EQ(answer->answers.at(0).name.text(), "wEb.default.svc.cluster.local.");
}

TEST_F(ZoneTest, gives_the_address_with_a_server_record) {
  zone.set_service(service("web", R"({"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],
      "ports":[{"name":"http","port":80}]})"));
  const auto answer = ask("_http._tcp.web.default.svc.cluster.local", type::srv);
  ASSERT_EQ(answer->additional.size(), 1U);
  EXPECT_EQ(answer->additional[0].name.text(), "web.default.svc.cluster.local.");
}

TEST_F(ZoneTest, has_ready_endpoints_of_headless_services) {
  zone.set_service(service("db", R"({"clusterIP":"None","clusterIPs":["None"]})"));
  EXPECT_THAT(look("db.default.svc.cluster.local", type::a), ElementsAre("NXDOMAIN"));

  zone.set_slice(slice("db-1", "db", R"([
      {"addresses":["10.130.0.5"],"hostname":"db-0","conditions":{"ready":true}},
      {"addresses":["10.130.0.6"],"hostname":"db-1","conditions":{"ready":false}},
      {"addresses":["10.130.0.7"],"conditions":{}}])"));
  EXPECT_THAT(look("db.default.svc.cluster.local", type::a),
              UnorderedElementsAre("10.130.0.5", "10.130.0.7"));
  EXPECT_THAT(look("db.default.svc.cluster.local", type::aaaa), IsEmpty());
  EXPECT_THAT(look("db-0.db.default.svc.cluster.local", type::a), ElementsAre("10.130.0.5"));
  EXPECT_THAT(look("db-1.db.default.svc.cluster.local", type::a), ElementsAre("NXDOMAIN"));
  EXPECT_THAT(look("10-130-0-7.db.default.svc.cluster.local", type::a), ElementsAre("10.130.0.7"));
  EXPECT_THAT(look("10-130-0-5.db.default.svc.cluster.local", type::a), ElementsAre("NXDOMAIN"));
  EXPECT_THAT(look("_http._tcp.db.default.svc.cluster.local", type::srv),
              UnorderedElementsAre("8080 db-0.db.default.svc.cluster.local.",
                                   "8080 10-130-0-7.db.default.svc.cluster.local."));
  EXPECT_THAT(look("_tcp.db.default.svc.cluster.local", type::srv), IsEmpty());
  EXPECT_THAT(look("5.0.130.10.in-addr.arpa", type::ptr),
              ElementsAre("db-0.db.default.svc.cluster.local."));
  EXPECT_THAT(look("6.0.130.10.in-addr.arpa", type::ptr), ElementsAre("NXDOMAIN"));
  EXPECT_THAT(look("7.0.130.10.in-addr.arpa", type::ptr),
              ElementsAre("10-130-0-7.db.default.svc.cluster.local."));
}

TEST_F(ZoneTest, publishes_endpoints_that_are_not_ready_where_the_service_wants_it) {
  zone.set_service(service("db", R"({"clusterIP":"None","publishNotReadyAddresses":true})"));
  zone.set_slice(slice("db-1", "db", R"([
      {"addresses":["10.130.0.6"],"hostname":"db-1","conditions":{"ready":false}}])"));
  EXPECT_THAT(look("db-1.db.default.svc.cluster.local", type::a), ElementsAre("10.130.0.6"));
}

TEST_F(ZoneTest, finds_endpoints_of_services_with_an_address_by_name) {
  zone.set_service(service("web", R"({"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"]})"));
  zone.set_slice(slice("web-1", "web", R"([{"addresses":["10.130.0.9"],"hostname":"one"}])"));
  EXPECT_THAT(look("web.default.svc.cluster.local", type::a), ElementsAre("10.0.0.7"));
  EXPECT_THAT(look("one.web.default.svc.cluster.local", type::a), ElementsAre("10.130.0.9"));
}

TEST_F(ZoneTest, has_aliases_of_external_names) {
  zone.set_service(service("out", R"({"type":"ExternalName","externalName":"www.example.com"})"));
  const auto answer = ask("out.default.svc.cluster.local", type::a);
  ASSERT_EQ(answer->answers.size(), 1U);
  EXPECT_EQ(answer->answers[0].type, type::cname);
  EXPECT_EQ(answer->alias->text(), "www.example.com.");
  EXPECT_FALSE(ask("out.default.svc.cluster.local", type::cname)->alias);
}

TEST_F(ZoneTest, has_pods_by_address_in_namespaces_there_are) {
  EXPECT_THAT(look("10-130-0-9.default.pod.cluster.local", type::a), ElementsAre("10.130.0.9"));
  EXPECT_THAT(look("fd00--9.default.pod.cluster.local", type::aaaa), ElementsAre("fd00::9"));
  EXPECT_THAT(look("10-130-0-9.default.pod.cluster.local", type::aaaa), IsEmpty());
  EXPECT_THAT(look("10-130-0-9.other.pod.cluster.local", type::a), ElementsAre("NXDOMAIN"));
  EXPECT_THAT(look("10-130-0-999.default.pod.cluster.local", type::a), ElementsAre("NXDOMAIN"));
  EXPECT_THAT(look("nobody.default.pod.cluster.local", type::a), ElementsAre("NXDOMAIN"));
}

TEST_F(ZoneTest, tells_an_empty_name_from_none) {
  for (const char* name : {"cluster.local", "svc.cluster.local", "default.svc.cluster.local",
                           "pod.cluster.local", "dns.cluster.local"}) {
    const auto answer = ask(name, type::a);
    EXPECT_EQ(answer->rcode, Rcode::no_error) << name;
    ASSERT_EQ(answer->authority.size(), 1U) << name;
    EXPECT_EQ(answer->authority[0].type, type::soa);
  }
  for (const char* name : {"x.cluster.local", "other.svc.cluster.local",
                           "none.default.svc.cluster.local", "a.b.c.d.e.svc.cluster.local"}) {
    const auto answer = ask(name, type::a);
    EXPECT_EQ(answer->rcode, Rcode::name_error) << name;
    EXPECT_EQ(answer->authority.size(), 1U) << name;
  }
  EXPECT_THAT(look("cluster.local", type::soa), ElementsAre("SOA"));
  EXPECT_THAT(look("cluster.local", type::ns), ElementsAre("ns.dns.cluster.local."));
  EXPECT_THAT(look("ns.dns.cluster.local", type::a), ElementsAre("10.0.0.10"));
}

TEST_F(ZoneTest, leaves_other_names_to_others) {
  EXPECT_THAT(look("example.com", type::a), ElementsAre("elsewhere"));
  EXPECT_THAT(look("xcluster.local", type::a), ElementsAre("elsewhere"));
  EXPECT_THAT(look("9.9.9.9.in-addr.arpa", type::ptr), ElementsAre("elsewhere"));
  EXPECT_THAT(look("99.0.0.10.in-addr.arpa", type::ptr), ElementsAre("NXDOMAIN"));
}

TEST_F(ZoneTest, knows_nothing_before_it_was_told_everything) {
  Zone young{{.domain = "cluster.local"}};
  EXPECT_EQ(young.answer({*Name::from_text("a.b.svc.cluster.local"), type::a})->rcode,
            Rcode::server_failure);
  EXPECT_FALSE(young.answer({*Name::from_text("example.com"), type::a}));
}

TEST_F(ZoneTest, forgets_what_is_gone) {
  const Value web = service("web", R"({"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"]})");
  const Value one = slice("web-1", "web", R"([{"addresses":["10.130.0.9"],"hostname":"one"}])");
  zone.set_service(web);
  zone.set_slice(one);
  // Of another service from now on.
  zone.set_slice(slice("web-1", "db", R"([{"addresses":["10.130.0.9"],"hostname":"one"}])"));
  EXPECT_THAT(look("one.web.default.svc.cluster.local", type::a), ElementsAre("NXDOMAIN"));
  zone.remove_slice(one);
  zone.remove_service(web);
  EXPECT_THAT(look("web.default.svc.cluster.local", type::a), ElementsAre("NXDOMAIN"));
  EXPECT_THAT(look("7.0.0.10.in-addr.arpa", type::ptr), ElementsAre("NXDOMAIN"));
  EXPECT_THAT(look("9.0.130.10.in-addr.arpa", type::ptr), ElementsAre("NXDOMAIN"));
}

TEST_F(ZoneTest, looks_for_no_more_than_can_be_sent) {
  zone.set_service(service("db", R"({"clusterIP":"None"})"));
  for (int block = 0; block < 10; ++block) {
    std::string endpoints;
    for (int i = 0; i < 100; ++i) {
      append(endpoints, i == 0 ? "[" : ",", R"({"addresses":["10.130.)", block, '.', i, R"("]})");
    }
    zone.set_slice(slice(cat("db-", block), "db", endpoints + "]"));
  }
  const Question question{*Name::from_text("db.default.svc.cluster.local"), type::a};
  EXPECT_EQ(zone.answer(question, 128)->answers.size(), 128U);
  EXPECT_EQ(zone.answer(question)->answers.size(), 1000U);
}

/// Whatever is put and taken, in whatever order: what is left answers as if only that had ever
/// been.
TEST(ZoneProperty, depends_on_what_is_there_not_on_the_way_there) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::mt19937 chance(seed);
    const auto pick = [&](unsigned n) { return static_cast<unsigned>(chance() % n); };
    Zone zone{{.domain = "cluster.local", .ranges = {*Range::parse("10.0.0.0/8")}}};
    zone.set_namespace("default");
    std::map<std::string, Value> services;
    std::map<std::string, Value> slices;
    for (int step = 0; step < 200; ++step) {
      const std::string name = cat("s", pick(4));
      const std::string slice_name = cat("e", pick(6));
      switch (pick(5)) {
        case 0:
          services[name] =
              service(name, pick(3) == 0 ? R"({"clusterIP":"None","publishNotReadyAddresses":true})"
                                         : cat(R"({"clusterIP":"10.0.0.)", pick(3), R"("})"));
          zone.set_service(services[name]);
          break;
        case 1:
          if (!services.contains(name)) break;
          zone.remove_service(services[name]);
          services.erase(name);
          break;
        case 2:
          if (!slices.contains(slice_name)) break;
          zone.remove_slice(slices[slice_name]);
          slices.erase(slice_name);
          break;
        default:
          slices[slice_name] =
              slice(slice_name, name,
                    cat(R"([{"addresses":["10.1.0.)", pick(5), R"("],"conditions":{"ready":)",
                        pick(2) == 0, R"(}},{"addresses":["10.1.0.)", pick(5),
                        R"("],"hostname":"h)", pick(3), R"("}])"));
          zone.set_slice(slices[slice_name]);
      }
    }
    Zone fresh{{.domain = "cluster.local", .ranges = {*Range::parse("10.0.0.0/8")}}};
    fresh.set_namespace("default");
    for (const auto& [key, value] : slices) fresh.set_slice(value);
    for (const auto& [key, value] : services) fresh.set_service(value);
    zone.set_complete();
    fresh.set_complete();
    std::vector<std::string> names;
    for (int i = 0; i < 5; ++i) {
      names.push_back(cat("s", i, ".default.svc.cluster.local"));
      for (int h = 0; h < 4; ++h) names.push_back(cat("h", h, ".", names[names.size() - 1 - h]));
      names.push_back(cat("_http._tcp.s", i, ".default.svc.cluster.local"));
      names.push_back(cat(i, ".0.1.10.in-addr.arpa"));
      names.push_back(cat(i, ".0.0.10.in-addr.arpa"));
    }
    for (const auto& name : names) {
      for (const auto type : {type::a, type::srv, type::ptr}) {
        const Question question{*Name::from_text(name), type};
        const auto a = zone.answer(question);
        const auto b = fresh.answer(question);
        ASSERT_EQ(a->rcode, b->rcode) << name << " seed " << seed;
        ASSERT_EQ(a->answers, b->answers) << name << " seed " << seed;
        ASSERT_EQ(a->additional, b->additional) << name << " seed " << seed;
      }
    }
  }
}

TEST(Range, holds_addresses_that_begin_alike) {
  EXPECT_TRUE(Range::parse("10.0.0.0/24")->contains(*parse_address("10.0.0.255")));
  EXPECT_FALSE(Range::parse("10.0.0.0/24")->contains(*parse_address("10.0.1.0")));
  EXPECT_FALSE(Range::parse("10.0.0.0/24")->contains(*parse_address("::1")));
  EXPECT_FALSE(Range::parse("10.0.0.0"));
  EXPECT_FALSE(Range::parse("10.0.0.0/33"));
}

TEST(ReverseAddress, takes_whole_addresses_apart_from_parts) {
  EXPECT_TRUE(reverse_address(*Name::from_text("4.3.2.1.in-addr.arpa"))->whole);
  EXPECT_FALSE(reverse_address(*Name::from_text("2.1.in-addr.arpa"))->whole);
  EXPECT_FALSE(reverse_address(*Name::from_text("5.4.3.2.1.in-addr.arpa")));
  EXPECT_FALSE(reverse_address(*Name::from_text("256.3.2.1.in-addr.arpa")));
  EXPECT_FALSE(reverse_address(*Name::from_text("arpa")));
}

}  // namespace
}  // namespace dibs::dns
