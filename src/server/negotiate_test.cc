#include "server/negotiate.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::server {
namespace {

Result<Answer> answer_for(std::string_view accept, AnswerTo what = AnswerTo::one,
                          std::string_view target = "/x", std::string_view agent = "",
                          Forms forms = {}) {
  net::Request request;
  if (!accept.empty()) request.headers.add("Accept", std::string(accept));
  if (!agent.empty()) request.headers.add("User-Agent", std::string(agent));
  return negotiate_answer(request, *net::Target::parse(target), what, forms);
}

std::string shown(const Result<Answer>& answer) {
  if (!answer.ok()) return cat(http_status(answer.error().code()));
  static constexpr const char* kForms[] = {"object", "table", "metadata", "metadata_list",
                                           "stored"};
  std::string out = answer->media == Media::yaml       ? "yaml "
                    : answer->media == Media::protobuf ? "protobuf "
                                                       : "json ";
  append(out, kForms[static_cast<int>(answer->form)]);
  if (answer->form != Form::object) append(out, " ", answer->form_version);
  if (answer->pretty) append(out, " pretty");
  return out;
}

struct Case {
  const char* accept;
  AnswerTo what;
  const char* expected;
};

class Accept : public testing::TestWithParam<Case> {};

TEST_P(Accept, decides_the_form) {
  EXPECT_EQ(shown(answer_for(GetParam().accept, GetParam().what)), GetParam().expected)
      << GetParam().accept;
}

constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";
constexpr const char* kKubectl =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/"
    "json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

INSTANTIATE_TEST_SUITE_P(
    All, Accept,
    testing::Values(
        Case{"", AnswerTo::one, "json object"}, Case{"*/*", AnswerTo::one, "json object"},
        Case{"application/json", AnswerTo::one, "json object"},
        Case{"application/json, */*", AnswerTo::one, "json object"},
        Case{"application/yaml", AnswerTo::one, "yaml object"},
        Case{"application/yaml", AnswerTo::list, "yaml object"},
        Case{"application/json;q=0.5,application/yaml;q=0.9", AnswerTo::one, "yaml object"},
        Case{"application/yaml;q=0.5,application/json", AnswerTo::one, "json object"},
        Case{kTable, AnswerTo::one, "json table v1"}, Case{kTable, AnswerTo::list, "json table v1"},
        Case{kTable, AnswerTo::watch, "json table v1"},
        Case{kKubectl, AnswerTo::list, "json table v1"},
        Case{"application/json;as=Table;v=v1beta1;g=meta.k8s.io", AnswerTo::one,
             "json table v1beta1"},
        Case{"application/json;as=Table;v=v9;g=meta.k8s.io,application/json", AnswerTo::one,
             "json object"},
        Case{"application/json;as=Table;v=v9;g=meta.k8s.io", AnswerTo::one, "406"},
        Case{"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", AnswerTo::one,
             "json metadata v1"},
        Case{"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", AnswerTo::list,
             "json metadata_list v1"},
        Case{"application/vnd.kubernetes.protobuf,application/json", AnswerTo::one, "json object"},
        Case{"application/vnd.kubernetes.protobuf", AnswerTo::one, "json object"},
        Case{"text/html", AnswerTo::one, "406"}, Case{"application/*", AnswerTo::one, "406"},
        Case{"image/png,text/html", AnswerTo::list, "406"},
        Case{"text/html,application/json;q=0.1", AnswerTo::one, "json object"},
        Case{"application/yaml", AnswerTo::watch, "406"}));

TEST(Negotiate, gives_the_stored_form_where_there_is_one) {
  constexpr const char* kStored = "application/json;as=Stored";
  constexpr const char* kOrPlain = "application/json;as=Stored,application/json";
  for (const AnswerTo what : {AnswerTo::one, AnswerTo::list, AnswerTo::watch}) {
    EXPECT_EQ(shown(answer_for(kStored, what, "/x", "", {.stored = true})), "json stored v1");
    EXPECT_EQ(shown(answer_for(kOrPlain, what, "/x", "", {.stored = true})), "json stored v1");
    EXPECT_EQ(shown(answer_for(kStored, what)), "406");
    EXPECT_EQ(shown(answer_for(kOrPlain, what)), "json object");
  }
}

TEST(Negotiate, refuses_protobuf_alone_of_what_has_none) {
  constexpr const char* kAlone = "application/vnd.kubernetes.protobuf";
  const Result<Answer> refused = answer_for(kAlone, AnswerTo::one, "/x", "", {.strict = true});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(http_status(refused.error().code()), 406);
  EXPECT_EQ(refused.error().message(),
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(shown(answer_for(cat(kAlone, ",application/json"), AnswerTo::one, "/x", "",
                             {.strict = true})),
            "json object");
}

TEST(Negotiate, gives_protobuf_of_what_has_it) {
  const Forms all{.protobuf = true};
  constexpr const char* kBoth = "application/vnd.kubernetes.protobuf,application/json";
  constexpr const char* kMetadata =
      "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
      "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
  for (const AnswerTo what : {AnswerTo::one, AnswerTo::list, AnswerTo::watch}) {
    EXPECT_EQ(shown(answer_for(kBoth, what, "/x", "", all)), "protobuf object");
    EXPECT_EQ(shown(answer_for(kBoth, what)), "json object");
    // Of custom resources as well.
    EXPECT_EQ(shown(answer_for(kMetadata, what)), "protobuf metadata v1");
  }
  EXPECT_TRUE(answer_for(kBoth, AnswerTo::list, "/x", "", all)->json_too);
  EXPECT_FALSE(
      answer_for("application/vnd.kubernetes.protobuf", AnswerTo::list, "/x", "", all)->json_too);
  EXPECT_EQ(shown(answer_for("application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,"
                             "application/json",
                             AnswerTo::list, "/x", "", all)),
            "json object");
}

TEST(Negotiate, gives_no_table_of_what_is_no_object) {
  const Forms review{.protobuf = true, .table = false};
  constexpr const char* kTable = "application/json;as=Table;g=meta.k8s.io;v=v1";
  EXPECT_EQ(shown(answer_for(kTable, AnswerTo::one, "/x", "", review)), "406");
  EXPECT_EQ(shown(answer_for(cat(kTable, ",application/json"), AnswerTo::one, "/x", "", review)),
            "json object");
}

TEST(Negotiate, says_what_it_could_give) {
  auto refused = answer_for("text/html");

  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("application/json, application/yaml"),
            std::string::npos);
}

TEST(Negotiate, joins_several_accept_headers) {
  net::Request request;
  request.headers.add("Accept", "text/html");
  request.headers.add("Accept", "application/yaml");

  EXPECT_EQ(shown(negotiate_answer(request, *net::Target::parse("/x"), AnswerTo::one)),
            "yaml object");
}

TEST(Negotiate, is_pretty_for_people) {
  struct {
    const char* target;
    const char* agent;
    bool pretty;
  } cases[] = {{"/x", "kubectl/v1.37", false}, {"/x?pretty=true", "kubectl/v1.37", true},
               {"/x?pretty=1", "", true},      {"/x?pretty=false", "curl/8", false},
               {"/x", "curl/8", true},         {"/x", "Mozilla/5.0 (X11)", true},
               {"/x", "Wget/1.2", true}};
  for (const auto& one : cases) {
    auto answer = answer_for("", AnswerTo::one, one.target, one.agent);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->pretty, one.pretty) << one.target << " " << one.agent;
  }
}

TEST(BodyFormat, is_that_of_the_content_type) {
  EXPECT_EQ(*body_format(""), BodyFormat::json);
  EXPECT_EQ(*body_format("application/json; charset=utf-8"), BodyFormat::json);
  EXPECT_EQ(*body_format("APPLICATION/JSON"), BodyFormat::json);
  EXPECT_EQ(*body_format("application/yaml"), BodyFormat::yaml);
  EXPECT_EQ(*body_format("application/vnd.kubernetes.protobuf"), BodyFormat::protobuf);
  auto unknown = body_format("text/plain");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(http_status(unknown.error().code()), 415);
}

TEST(MediaType, loses_parameters_and_case) {
  EXPECT_EQ(media_type(" Application/Json ; charset=x"), "application/json");
  EXPECT_EQ(media_type(""), "");
}

}  // namespace
}  // namespace dibs::server
