#include "client/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "client/client.h"
#include "client/testing/fake_api.h"
#include "runtime/sim_runtime.h"

namespace dibs::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Gvr kPods{"", "v1", "pods"};

struct RefusalsTest : testing::Test {
  RefusalsTest() {
    log::set_sink([this](std::string_view line) { lines.emplace_back(line); });
    transport = warn_of_refusals(
        make_in_process_transport(
            [this](calls::Request, std::unique_ptr<calls::Exchange> exchange) {
              exchange->respond({403,
                                 {},
                                 cat(R"({"kind":"Status","status":"Failure","code":403,)",
                                     R"("reason":"Forbidden","message":")", message, R"("})")});
            },
            sim.runtime()),
        sim.runtime());
  }
  ~RefusalsTest() override { log::set_sink(nullptr); }

  runtime::SimRuntime sim;
  std::string message =
      R"(pods \"p\" is forbidden: User \"u\" cannot get resource \"pods\" in API )"
      R"(group \"\" in the namespace \"a\")";
  std::vector<std::string> lines;
  std::unique_ptr<Transport> transport;
};

TEST_F(RefusalsTest, tells_at_once_and_then_every_minute) {
  Client client(*transport);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(client.get(kPods, "a", cat("p", i)).ok());
  EXPECT_THAT(lines,
              ElementsAre(HasSubstr(R"(User \"u\" cannot get resource \"pods\" in API group)")));

  sim.advance(std::chrono::minutes(1));
  EXPECT_FALSE(client.get(kPods, "a", "p").ok());
  EXPECT_THAT(lines, ElementsAre(HasSubstr("times=1"), HasSubstr("times=5")));
}

TEST_F(RefusalsTest, tells_of_refused_watches) {
  Client client(*transport);
  message = R"(pods is forbidden: User \"u\" cannot watch resource \"pods\" in API group \"\")";
  const auto stream = client.watch(kPods, "", {}, {});
  sim.run_until_idle();
  EXPECT_THAT(lines, ElementsAre(HasSubstr("cannot watch resource")));
}

TEST_F(RefusalsTest, leaves_refusals_of_admission_to_who_asked) {
  Client client(*transport);
  message = R"(pods \"p\" is forbidden: exceeded quota: q)";
  EXPECT_FALSE(client.get(kPods, "a", "p").ok());
  EXPECT_THAT(lines, IsEmpty());
}

}  // namespace
}  // namespace dibs::client
