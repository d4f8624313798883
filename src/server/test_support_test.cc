#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "server/test_support.h"

namespace dibs::server::test {
namespace {

class FakeExchange : public net::Exchange {
 public:
  FakeExchange(std::shared_ptr<Reply> reply, bool slow) : reply_(std::move(reply)), slow_(slow) {}

  void respond(net::Response response) override {
    ASSERT_EQ(reply_->status, 0) << "a request is answered once";
    reply_->status = response.status;
    reply_->headers = std::move(response.headers);
    reply_->text = std::move(response.body);
    if (auto body = json::parse(reply_->text); body.ok()) reply_->body = std::move(body).value();
  }

  std::shared_ptr<net::BodyStream> stream(net::Response head) override {
    EXPECT_EQ(reply_->status, 0) << "a request is answered once";
    reply_->status = head.status;
    reply_->headers = std::move(head.headers);
    reply_->stream = std::make_shared<FakeStream>();
    if (slow_) reply_->stream->be_slow();
    return reply_->stream;
  }

  void upgrade(std::string, std::function<void(std::shared_ptr<net::WebSocket>)> ready) override {
    reply_->status = 101;
    ready(nullptr);
  }

 private:
  std::shared_ptr<Reply> reply_;
  bool slow_;
};

}  // namespace

Value from_text(std::string_view text) {
  std::string json(text);
  for (char& c : json) {
    if (c == '\'') c = '"';
  }
  auto value = json::parse(json);
  if (!value.ok()) {
    ADD_FAILURE() << "no JSON: " << text << ": " << value.error().message();
    std::abort();
  }
  return *value;
}

std::string to_text(const Value& value) {
  std::string text = json::write(value);
  for (char& c : text) {
    if (c == '"') c = '\'';
  }
  return text;
}

std::vector<std::string> strings_of(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) out.push_back(item.str());
  return out;
}

std::vector<std::string> names_of(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list["items"].items()) out.push_back(item["metadata"]["name"].str());
  return out;
}

std::int64_t version_of(const Value& object) {
  return std::stoll(object["metadata"]["resourceVersion"].str());
}

Value condition_of(const Value& object, std::string_view type) {
  for (const Value& condition : object["status"]["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return nullptr;
}

bool FakeStream::write(SharedBytes piece) {
  EXPECT_FALSE(finished_) << "nothing is written after the end: " << *piece;
  if (gone_) return false;
  text_ += *piece;
  if (slow_) queued_ += piece->size();
  return true;
}

void FakeStream::on_drained(std::function<void()> drained) {
  drained_ = std::move(drained);
  if (queued_ == 0 && drained_) drained_();
}

void FakeStream::drain() {
  slow_ = false;
  queued_ = 0;
  if (drained_) drained_();
}

void FakeStream::hang_up() {
  gone_ = true;
  if (auto closed = std::exchange(closed_, nullptr)) closed();
}

std::vector<Value> FakeStream::take() {
  std::vector<Value> out;
  std::size_t next = 0;
  for (std::size_t end = 0; (end = text_.find('\n', next)) != std::string::npos; next = end + 1) {
    auto event = json::parse(std::string_view(text_).substr(next, end - next));
    EXPECT_TRUE(event.ok()) << text_;
    if (event.ok()) out.push_back(std::move(event).value());
  }
  text_.erase(0, next);
  return out;
}

std::vector<std::string> FakeStream::take_short() {
  std::vector<std::string> out;
  for (const Value& event : take()) {
    std::string text = event["type"].str();
    if (auto name = event["object"]["metadata"]["name"].as_string(); !name.empty())
      append(text, " ", name);
    if (text == "ERROR") append(text, " ", event["object"]["code"].as_int());
    out.push_back(std::move(text));
  }
  return out;
}

std::vector<std::string> Reply::warnings() const {
  std::vector<std::string> out;
  for (std::string_view text : headers.all("Warning")) out.emplace_back(text);
  return out;
}

TestServer::TestServer(Options given, const store::MemoryOptions& store_options)
    : store(store::make_memory_store(store_options)), options(std::move(given)) {
  open();
}

TestServer::~TestServer() {
  server->close();
  sim.run_until_idle();
}

void TestServer::open() {
  auto opened = ApiServer::open(sim.runtime(), *store, options);
  if (!opened.ok()) {
    ADD_FAILURE() << opened.error().message();
    std::abort();
  }
  server = std::move(opened).value();
  sim.run_until_idle();
}

void TestServer::restart() {
  server->close();
  sim.run_until_idle();
  server.reset();
  open();
}

net::Request make_request(std::string method, std::string target, std::string body,
                          std::string content_type) {
  net::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  if (!body.empty()) request.headers.add("Content-Type", std::move(content_type));
  request.headers.add("User-Agent", "tester/1.0");
  request.body = std::move(body);
  request.peer.address = "in-process";
  request.peer.certificate = true;
  request.peer.common_name = "admin";
  request.peer.organizations = {"system:masters"};
  return request;
}

Reply TestServer::send(net::Request request) { return send(calls::Request{std::move(request)}); }

Reply TestServer::send(calls::Request request) {
  auto reply = std::make_shared<Reply>();
  server->handle(std::move(request), answer_into(reply, slow_streams));
  sim.run_until_idle();
  return *reply;
}

Reply TestServer::get(std::string target, std::string accept) {
  net::Request request = make_request("GET", std::move(target));
  if (!accept.empty()) request.headers.add("Accept", std::move(accept));
  return send(std::move(request));
}

Reply TestServer::post(std::string target, const Value& body) {
  return send(make_request("POST", std::move(target), json::write(body)));
}

Reply TestServer::put(std::string target, const Value& body) {
  return send(make_request("PUT", std::move(target), json::write(body)));
}

Reply TestServer::patch(std::string target, std::string_view type, std::string_view body) {
  std::string text(body);
  for (char& c : text) {
    if (c == '\'') c = '"';
  }
  return send(make_request("PATCH", std::move(target), std::move(text), patch_media(type)));
}

std::string patch_media(std::string_view type) {
  return type == "json"    ? "application/json-patch+json"
         : type == "merge" ? "application/merge-patch+json"
         : type == "apply" ? "application/apply-patch+yaml"
                           : "application/strategic-merge-patch+json";
}

std::unique_ptr<calls::Exchange> answer_into(std::shared_ptr<Reply> reply, bool slow) {
  return calls::over_http(std::make_unique<FakeExchange>(std::move(reply), slow));
}

Reply TestServer::remove(std::string target, std::string_view delete_options) {
  return send(make_request(
      "DELETE", std::move(target),
      delete_options.empty() ? std::string() : json::write(from_text(delete_options))));
}

std::shared_ptr<FakeStream> TestServer::watch(std::string target, std::string accept) {
  Reply reply = get(std::move(target), std::move(accept));
  EXPECT_EQ(reply.status, 200) << reply.text;
  if (!reply.stream) {
    ADD_FAILURE() << "no stream";
    std::abort();
  }
  return reply.stream;
}

Value TestServer::add_config_map(std::string_view name, std::string_view data) {
  Reply made = post(kConfigMaps, config_map(name, data));
  EXPECT_EQ(made.status, 201) << made.text;
  return made.body;
}

void TestServer::add_namespace(std::string_view name) {
  Value object = from_text("{'apiVersion':'v1','kind':'Namespace'}");
  object.mut("metadata").set("name", name);
  Reply made = post("/api/v1/namespaces", object);
  EXPECT_EQ(made.status, 201) << made.text;
  add_account(name);
}

void TestServer::add_account(std::string_view name_space, std::string_view name) {
  Value object = from_text("{'apiVersion':'v1','kind':'ServiceAccount'}");
  object.mut("metadata").set("name", name);
  Reply made = post(cat("/api/v1/namespaces/", name_space, "/serviceaccounts"), object);
  EXPECT_EQ(made.status, 201) << made.text;
}

Value TestServer::run_pod(std::string_view name, std::string_view labels) {
  Value object = simple_pod(name, "{'nodeName':'n1'}");
  object.mut("metadata").set("labels", from_text(labels));
  Reply made = post(kPods, object);
  EXPECT_EQ(made.status, 201) << made.text;
  Value status = from_text("{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}");
  made.body.set("status", status);
  Reply running = put(cat(kPods, "/", name, "/status"), made.body);
  EXPECT_EQ(running.status, 200) << running.text;
  return running.body;
}

Value config_map(std::string_view name, std::string_view data) {
  Value object = from_text("{'apiVersion':'v1','kind':'ConfigMap'}");
  object.mut("metadata").set("name", name);
  if (Value members = from_text(data); !members.empty()) object.set("data", std::move(members));
  return object;
}

Value simple_pod(std::string_view name, std::string_view more_spec) {
  Value object = from_text(
      "{'apiVersion':'v1','kind':'Pod','spec':{'containers':[{'name':'c','image':'i'}]}}");
  object.mut("metadata").set("name", name);
  const Value more = from_text(more_spec);
  for (const auto& [key, value] : more.members()) object.mut("spec").set(key, value);
  return object;
}

}  // namespace dibs::server::test
