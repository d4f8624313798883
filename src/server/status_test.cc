#include "server/status.h"

#include <gtest/gtest.h>

#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::to_text;

struct Case {
  Error error;
  const char* expected;
};

class StatusOf : public testing::TestWithParam<Case> {};

TEST_P(StatusOf, error_reads_as_the_api_words_it) {
  EXPECT_EQ(to_text(status_value(GetParam().error)), GetParam().expected);
}

Error with_causes() {
  ErrorDetails details;
  details.name = "x";
  details.group = "apps";
  details.kind = "Deployment";
  details.uid = "u";
  details.causes = {{"FieldValueInvalid", "Invalid value", "spec.a"}, {"", "only text", ""}};
  details.retry_after_seconds = 10;
  return {Code::invalid, "m", details};
}

INSTANTIATE_TEST_SUITE_P(
    All, StatusOf,
    testing::Values(Case{Error::bad_request("m"),
                         "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure','"
                         "message':'m','reason':'BadRequest','code':400}"},
                    Case{Error::plain("m"),
                         "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure','"
                         "message':'m','code':500}"},
                    Case{not_found_error("apps", "deployments", "x"),
                         "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure','"
                         "message':'deployments.apps \\'x\\' not "
                         "found','reason':'NotFound','details':{'name':'x','group':'apps','kind':'"
                         "deployments'},'code':404}"},
                    Case{unknown_resource_error(),
                         "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure','"
                         "message':'the server could not find the "
                         "requested resource','reason':'NotFound','details':{},'code':404}"},
                    Case{with_causes(),
                         "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure','"
                         "message':'m','reason':'Invalid','details':"
                         "{'name':'x','group':'apps','kind':'Deployment','uid':'u','causes':[{'"
                         "reason':'FieldValueInvalid','message':"
                         "'Invalid value','field':'spec.a'},{'message':'only "
                         "text'}],'retryAfterSeconds':10},'code':422}"}));

TEST(StatusErrors, have_the_words_of_the_api) {
  EXPECT_EQ(already_exists_error("", "pods", "p").message(), "pods \"p\" already exists");
  EXPECT_EQ(conflict_error("apps", "deployments", "d", "r").message(),
            "Operation cannot be fulfilled on deployments.apps \"d\": r");
  EXPECT_EQ(forbidden_error("", "pods", "p", "r").message(), "pods \"p\" is forbidden: r");
  EXPECT_EQ(forbidden_error("apps", "deployments", "", "r").message(),
            "deployments.apps is forbidden: r");
  EXPECT_EQ(http_status(method_not_allowed_error().code()), 405);
}

TEST(StatusResponse, tells_when_to_come_back_in_a_header_too) {
  net::Response response = status_response(with_causes());

  EXPECT_EQ(response.status, 422);
  EXPECT_EQ(response.headers.get("Retry-After"), "10");
  EXPECT_EQ(response.headers.get("Content-Type"), "application/json");
  EXPECT_EQ(response.headers.get("Cache-Control"), "no-cache, private");
  EXPECT_EQ(response.body.back(), '\n');
  EXPECT_FALSE(status_response(Error::bad_request("m")).headers.has("Retry-After"));
}

TEST(SuccessStatus, names_what_was_deleted) {
  EXPECT_EQ(to_text(success_status("x", "", "configmaps", "u")),
            "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Success','details':{'name':"
            "'x','kind':"
            "'configmaps','uid':'u'}}");
}

}  // namespace
}  // namespace dibs::server
