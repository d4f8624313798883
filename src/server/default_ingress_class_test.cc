// Which class an Ingress gets that names none.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/context.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::from_text;
using test::Reply;
using test::TestServer;

constexpr const char* kClasses = "/apis/networking.k8s.io/v1/ingressclasses";
constexpr const char* kIngresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";

struct DefaultIngressClassTest : testing::Test {
  TestServer api;

  void add_class(std::string_view name, std::string_view is_default) {
    Value object = from_text(
        "{'apiVersion':'networking.k8s.io/v1','kind':'IngressClass','spec':{'controller':"
        "'example.com/c'}}");
    object.mut("metadata").set("name", name);
    object.mut("metadata")
        .mut("annotations")
        .set("ingressclass.kubernetes.io/is-default-class", is_default);
    Reply made = api.post(kClasses, object);
    EXPECT_EQ(made.status, 201) << made.text;
  }
  /// The class of a new Ingress; "none" without one.
  std::string class_of(std::string_view name, std::string_view annotation = "") {
    Value object = from_text(
        "{'apiVersion':'networking.k8s.io/v1','kind':'Ingress','spec':{'defaultBackend':{'service':"
        "{'name':'web','port':{'number':80}}}}}");
    object.mut("metadata").set("name", name);
    if (!annotation.empty())
      object.mut("metadata").mut("annotations").set("kubernetes.io/ingress.class", annotation);
    Reply made = api.post(kIngresses, object);
    EXPECT_EQ(made.status, 201) << made.text;
    const Value& found = made.body["spec"]["ingressClassName"];
    return found.is_null() ? "none" : found.str();
  }
};

TEST_F(DefaultIngressClassTest, is_the_one_that_is_marked) {
  add_class("plain", "false");
  EXPECT_EQ(class_of("a"), "none");

  add_class("b-first", "true");
  EXPECT_EQ(class_of("b"), "b-first");
  EXPECT_EQ(class_of("c", "older"), "none") << "it names a class in the older way";

  // Of the same second: by name.
  add_class("a-second", "true");
  EXPECT_EQ(class_of("d"), "a-second");
  api.sim.advance(std::chrono::seconds(2));
  add_class("z-youngest", "true");
  EXPECT_EQ(class_of("e"), "z-youngest");
}

TEST_F(DefaultIngressClassTest, stays_away_from_updates) {
  EXPECT_EQ(class_of("a"), "none");
  add_class("late", "true");
  Reply changed = api.patch(cat(kIngresses, "/a"), "merge", "{'metadata':{'labels':{'x':'y'}}}");
  EXPECT_EQ(changed.status, 200) << changed.text;
  EXPECT_TRUE(changed.body["spec"]["ingressClassName"].is_null());
}

}  // namespace
}  // namespace dibs::server
