#pragma once
// A server with an APIService whose own server is a fake: what it is asked, what it answers, and
// whether it is there.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "json/parse.h"
#include "server/aggregator.h"
#include "server/test_support.h"

namespace dibs::server {

inline constexpr const char* kServices = "/apis/apiregistration.k8s.io/v1/apiservices";
inline constexpr const char* kWardle =
    "/apis/apiregistration.k8s.io/v1/apiservices/v1.wardle.example.com";

/// A body that is there at once.
class WholeBody : public net::BodySource {
 public:
  explicit WholeBody(std::string text) : text_(std::move(text)) {}
  void start(std::function<void(std::string)> data, std::function<void(bool)> ended) override {
    data(text_);
    ended(true);
  }
  void hold(bool) override {}
  void expire(Duration) override {}

 private:
  std::string text_;
};

class Upgraded : public net::ByteStream {
 public:
  void start(std::function<void(std::string_view)>, std::function<void()>) override {}
  void write(std::string) override {}
  std::size_t queued() const override { return 0; }
  void on_drained(std::function<void()>) override {}
  void hold(bool) override {}
  void expire(Duration) override {}
  void close() override { closed = true; }

  bool closed = false;
};

class FakeExtensions : public ExtensionTransport {
 public:
  Result<net::Response> send(const ExtensionPlace& place, const net::Request& request,
                             Duration) override {
    places.push_back(place);
    asked.push_back(request);
    if (down || place.host == broken)
      return Error::unavailable("dial tcp 10.1.2.3:8443: connect: connection refused");
    net::Response out;
    out.status = status;
    if (request.target == "/apis/wardle.example.com/v1") {
      out.body = json::write(test::from_text(
          "{'kind':'APIResourceList','apiVersion':'v1','groupVersion':'wardle.example.com/v1',"
          "'resources':[{'name':'flunders','singularName':'flunder','namespaced':true,"
          "'kind':'Flunder','verbs':['get','list'],'shortNames':['fl']},"
          "{'name':'flunders/status','singularName':'','namespaced':true,'kind':'Flunder',"
          "'verbs':['get']}]}"));
    } else if (request.target == "/openapi/v3") {
      out.body = R"({"paths":{"apis/wardle.example.com/v1":{"serverRelativeURL":"/x?hash=1"}}})";
    } else if (request.target == "/openapi/v2") {
      out.body = R"({"paths":{"/apis/wardle.example.com/v1/flunders":{"get":{}},"/version":{}},)"
                 R"("definitions":{"example.Flunder":{"type":"object"}}})";
    } else {
      out.status = 404;
    }
    return out;
  }
  void open(const ExtensionPlace& place, const net::Request& request, net::Exchange&,
            std::function<void(Result<net::StreamAnswer>)> opened) override {
    places.push_back(place);
    passed.push_back(request);
    deepest = std::max(deepest, ++depth);
    if (holds) {
      held.push_back(std::move(opened));
    } else if (down) {
      opened(Error::unavailable("dial tcp 10.1.2.3:8443: i/o timeout"));
    } else {
      opened(answer());
    }
    --depth;
  }
  net::StreamAnswer answer() {
    net::StreamAnswer answer;
    answer.head.status = 200;
    answer.head.headers.add("Content-Type", "application/json");
    if (answered) answer.head = *answered;
    answer.body = std::make_shared<WholeBody>(R"({"kind":"FlunderList"})");
    if (answer.head.status == 101) answer.upgraded = upgraded;
    return answer;
  }
  void set_certificate(std::string, std::string) override {}
  void close() override {}

  bool down = false;
  bool holds = false;
  std::string broken;  // the address of one that does not answer
  int status = 200;
  std::optional<net::Response> answered;
  std::shared_ptr<Upgraded> upgraded = std::make_shared<Upgraded>();
  int depth = 0;  // of opening within opening
  int deepest = 0;
  std::vector<std::function<void(Result<net::StreamAnswer>)>> held;
  std::vector<ExtensionPlace> places;
  std::vector<net::Request> asked;
  std::vector<net::Request> passed;
};

inline Options with(std::shared_ptr<FakeExtensions> fake) {
  Options options;
  options.extensions = std::move(fake);
  return options;
}

inline constexpr const char* kApiService =
    "{'metadata':{'name':'v1.wardle.example.com'},'spec':{'group':'wardle.example.com',"
    "'version':'v1','groupPriorityMinimum':2000,'versionPriority':200,"
    "'insecureSkipTLSVerify':true,'service':{'namespace':'default','name':'wardle'}}}";
inline constexpr const char* kService =
    "{'metadata':{'name':'wardle'},'spec':{'ports':[{'port':443,'targetPort':8443,'name':'https'}]}"
    "}";

/// A ready endpoint at each address.
inline std::string slice_of(std::initializer_list<const char*> addresses, bool ready = true) {
  std::string endpoints;
  for (const char* address : addresses) {
    append(endpoints, endpoints.empty() ? "" : ",", "{'addresses':['", address,
           "'],'conditions':{'ready':", ready ? "true" : "false", "}}");
  }
  return cat("{'metadata':{'name':'wardle','labels':{'kubernetes.io/service-name':'wardle'}},",
             "'addressType':'IPv4','ports':[{'name':'https','port':8443}],'endpoints':[", endpoints,
             "]}");
}

inline constexpr const char* kWardleServices = "/api/v1/namespaces/default/services";
inline constexpr const char* kSlices =
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

inline std::vector<std::pair<const char*, std::string>> all_objects() {
  return {{kWardleServices, kService}, {kSlices, slice_of({"10.1.2.3"})}, {kServices, kApiService}};
}

class Aggregation : public testing::Test {
 protected:
  Aggregation() : fake(std::make_shared<FakeExtensions>()), api(with(fake)) {}

  void add(const char* path, const json::Value& object) {
    test::Reply made = api.post(path, object);
    ASSERT_EQ(made.status, 201) << made.text;
  }
  void add_api_service() { add(kServices, test::from_text(kApiService)); }
  void add_service() { add(kWardleServices, test::from_text(kService)); }
  void add_slice(bool ready = true) {
    add(kSlices, test::from_text(slice_of({"10.1.2.3"}, ready)));
  }
  void add_all() {
    add_service();
    add_slice();
    add_api_service();
    api.sim.run_for(std::chrono::seconds(3));
  }
  json::Value available() { return test::condition_of(api.get(kWardle).body, "Available"); }
  std::string told() {
    const json::Value condition = available();
    return cat(condition["status"].as_string(), " ", condition["reason"].as_string(), ": ",
               condition["message"].as_string());
  }

  std::shared_ptr<FakeExtensions> fake;
  test::TestServer api;
};

}  // namespace dibs::server
