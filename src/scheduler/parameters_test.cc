#include "scheduler/parameters.h"

#include <gtest/gtest.h>

#include "cluster/test_cluster.h"
#include "scheduler/named_claims.h"

namespace dibs::scheduler {
namespace {

using cluster::test::from_text;
using json::Value;

Value claim(const std::string& reference = "null") {
  return from_text(
      "{'metadata':{'name':'c','namespace':'ns'},'spec':{'resourceClassName':'k',"
      "'parametersRef':" +
      reference + "}}");
}
Value resource_class(const std::string& reference = "null") {
  return from_text("{'metadata':{'name':'k'},'driverName':'d','parametersRef':" + reference + "}");
}
Value parameters(const std::string& name_space, const std::string& name,
                 const std::string& more = "") {
  return from_text("{'metadata':{'name':'" + name + "','namespace':'" + name_space + "'}" + more +
                   "}");
}

constexpr const char* kDirectClaim =
    "{'apiGroup':'resource.k8s.io','kind':'ResourceClaimParameters','name':'p'}";
constexpr const char* kDirectClass =
    "{'apiGroup':'resource.k8s.io','kind':'ResourceClassParameters','name':'p','namespace':'ns'}";
constexpr const char* kVendor = "{'apiGroup':'example.com','kind':'Card','name':'big'}";
constexpr const char* kVendorOfClass =
    "{'apiGroup':'example.com','kind':'Card','name':'big','namespace':'any'}";

TEST(Parameters, of_nothing_are_one_shareable_resource_of_the_driver) {
  const FoundParameters found = Parameters().find(claim(), resource_class());
  EXPECT_EQ(found.problem, "");
  EXPECT_TRUE(found.of_class.is_null());
  EXPECT_EQ(found.of_claim, from_text("{'shareable':true,'driverRequests':[{'driverName':'d',"
                                      "'requests':[{'namedResources':{'selector':'true'}}]}]}"));
}

TEST(Parameters, are_found_by_name) {
  Parameters known;
  EXPECT_EQ(known.find(claim(kDirectClaim), resource_class(kDirectClass)).problem,
            "class parameters ns/p not found");
  EXPECT_TRUE(known.put_class_parameters(parameters("ns", "p")));
  EXPECT_EQ(known.find(claim(kDirectClaim), resource_class(kDirectClass)).problem,
            "claim parameters ns/p not found");
  known.put_claim_parameters(parameters("other", "p"));
  EXPECT_NE(known.find(claim(kDirectClaim), resource_class()).problem, "");
  known.put_claim_parameters(parameters("ns", "p", ",'shareable':true"));
  const FoundParameters found = known.find(claim(kDirectClaim), resource_class(kDirectClass));
  EXPECT_EQ(found.problem, "");
  EXPECT_TRUE(found.of_claim["shareable"].as_bool());
  known.remove_claim_parameters(parameters("ns", "p"));
  EXPECT_NE(known.find(claim(kDirectClaim), resource_class()).problem, "");
}

TEST(Parameters, are_found_by_what_they_were_generated_from) {
  Parameters known;
  EXPECT_EQ(known.find(claim(kVendor), resource_class(kVendorOfClass)).problem,
            "generated class parameters for Card.example.com big not found");
  EXPECT_EQ(known.find(claim(kVendor), resource_class()).problem,
            "generated claim parameters for Card.example.com ns/big not found");
  const auto from = [](const char* reference) {
    return std::string(",'generatedFrom':") + reference;
  };
  // Of a claim only those of its namespace count; a class has none.
  known.put_claim_parameters(parameters("other", "a", from(kVendor)));
  EXPECT_NE(known.find(claim(kVendor), resource_class()).problem, "");
  known.put_claim_parameters(parameters("ns", "b", from(kVendor)));
  known.put_claim_parameters(parameters("ns", "a", from(kVendor)));
  EXPECT_EQ(known.find(claim(kVendor), resource_class()).of_claim["metadata"]["name"].as_string(),
            "a");
  known.put_class_parameters(parameters("other", "x", from(kVendor)));
  EXPECT_NE(known.find(claim(), resource_class(kVendorOfClass)).problem, "");
  known.put_class_parameters(parameters("other", "x", from(kVendorOfClass)));
  EXPECT_EQ(known.find(claim(), resource_class(kVendorOfClass)).problem, "");
  // Not any more.
  known.put_claim_parameters(parameters("ns", "a"));
  EXPECT_EQ(known.find(claim(kVendor), resource_class()).of_claim["metadata"]["name"].as_string(),
            "b");
  known.remove_claim_parameters(parameters("ns", "b"));
  EXPECT_NE(known.find(claim(kVendor), resource_class()).problem, "");
}

TEST(Parameters, say_whether_something_changed) {
  Parameters known;
  EXPECT_TRUE(known.put_claim_parameters(parameters("ns", "p")));
  EXPECT_FALSE(known.put_claim_parameters(parameters("ns", "p", ",'kind':'x'")));
  EXPECT_TRUE(known.put_claim_parameters(parameters("ns", "p", ",'shareable':true")));
  EXPECT_TRUE(known.put_class_parameters(parameters("ns", "p")));
  EXPECT_TRUE(known.put_class_parameters(parameters("ns", "p", ",'filters':[]")));
}

constexpr const char* kTwoDrivers =
    "{'shareable':false,'driverRequests':[{'driverName':'e','requests':[{'vendorParameters':{'n':1}"
    ",'namedResources':{'selector':'s1'}},{'namedResources':{'selector':'s2'}}]},{'driverName':"
    "'d','vendorParameters':{'mode':'fast'},'requests':[{'namedResources':{'selector':'s3'}}]}]}";

NamedClaim two_drivers(std::string& problem) {
  FoundParameters found;
  found.of_claim = from_text(kTwoDrivers);
  found.of_class = from_text(
      "{'filters':[{'driverName':'e','namedResources':{'selector':'f'}}],'vendorParameters':["
      "{'driverName':'d','parameters':{'sharing':'none'}}]}");
  return NamedClaim::read(claim(), resource_class(), std::move(found), problem);
}

TEST(NamedClaim, has_a_request_for_each_of_a_driver) {
  std::string problem;
  const NamedClaim named = two_drivers(problem);
  EXPECT_EQ(problem, "");
  ASSERT_EQ(named.claim()->requests.size(), 3U);
  EXPECT_EQ(named.claim()->requests[0].name, "e/0");
  EXPECT_EQ(named.claim()->requests[2].name, "d");
  const alloc::DeviceRequest& first = named.claim()->requests[0].alternatives[0];
  EXPECT_EQ(first.driver, "e");
  EXPECT_EQ(first.selectors, std::vector<std::string>{"s1"});
  EXPECT_EQ(named.class_of(first.class_name)->selectors, std::vector<std::string>{"f"});
  const alloc::DeviceRequest& last = named.claim()->requests[2].alternatives[0];
  EXPECT_TRUE(named.class_of(last.class_name)->selectors.empty());
  EXPECT_EQ(named.class_of("k"), nullptr);
}

TEST(NamedClaim, writes_an_allocation_of_v1alpha2) {
  std::string problem;
  const NamedClaim named = two_drivers(problem);
  alloc::Node node;
  node.name = "n";
  node.labels = from_text("{'kubernetes.io/hostname':'n'}");
  const Value chosen =
      from_text("{'devices':{'results':[{'device':'e0'},{'device':'e1'},{'device':'d0'}]}}");
  EXPECT_EQ(
      named.allocation(node, chosen),
      from_text("{'availableOnNodes':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
                "'kubernetes.io/hostname','operator':'In','values':['n']}]}]},'resourceHandles':["
                "{'driverName':'e','structuredData':{'nodeName':'n','results':[{'namedResources':{"
                "'name':'e0'},'vendorRequestParameters':{'n':1}},{'namedResources':{'name':'e1'},"
                "'vendorRequestParameters':null}],'vendorClaimParameters':null,"
                "'vendorClassParameters':null}},{'driverName':'d','structuredData':{'nodeName':'n',"
                "'results':[{'namedResources':{'name':'d0'},'vendorRequestParameters':null}],"
                "'vendorClaimParameters':{'mode':'fast'},'vendorClassParameters':{'sharing':"
                "'none'}}}]}"));
  // A node that is called otherwise than its label is meant by its name.
  node.labels = from_text("{'kubernetes.io/hostname':'host'}");
  EXPECT_EQ(named.allocation(node, chosen)["availableOnNodes"],
            from_text("{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':"
                      "'In','values':['n']}]}]}"));
}

TEST(NamedClaim, refuses_what_cannot_be_allocated) {
  std::string problem;
  FoundParameters found;
  found.of_claim = from_text("{'driverRequests':[{'driverName':'d','requests':[{}]}]}");
  NamedClaim::read(claim(), resource_class(), found, problem);
  EXPECT_EQ(problem, "driver d: no supported structured parameters found");
  Value many = Value::array();
  for (int i = 0; i < 33; ++i) many.push(Value::object());
  found.of_claim = Value::object({{"driverRequests", many}});
  NamedClaim::read(claim(), resource_class(), found, problem);
  EXPECT_EQ(problem, "claim parameters name more than 32 drivers");
}

}  // namespace
}  // namespace dibs::scheduler
