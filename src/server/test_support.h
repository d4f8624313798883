#pragma once
// For tests of this library: a whole server in one thread over a memory store and virtual time.
//
// A request runs to its end inside send(); time passes only when a test says so.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "net/http.h"
#include "runtime/sim_runtime.h"
#include "server/api_server.h"
#include "store/memory_store.h"

namespace dibs::server::test {

using json::Value;

/// Parses JSON with ' in place of "; a fault ends the test program.
Value from_text(std::string_view text);
/// Compact JSON with ' in place of ".
std::string to_text(const Value& value);
std::vector<std::string> strings_of(const Value& list);
/// The names of a list's items.
std::vector<std::string> names_of(const Value& list);
std::int64_t version_of(const Value& object);
/// The condition of that type in status.conditions, or null.
Value condition_of(const Value& object, std::string_view type);

/// What a client of a stream has received. A slow one takes nothing until drain().
class FakeStream : public net::BodyStream {
 public:
  bool write(SharedBytes piece) override;
  std::size_t queued() const override { return queued_; }
  void on_drained(std::function<void()> drained) override;
  void on_closed(std::function<void()> closed) override { closed_ = std::move(closed); }
  void finish() override { finished_ = true; }

  void be_slow() { slow_ = true; }
  void drain();
  /// The client goes away.
  void hang_up();

  bool finished() const { return finished_; }
  /// What was received since the last call, as it came.
  std::string take_text() { return std::exchange(text_, std::string()); }
  /// The events received since the last call.
  std::vector<Value> take();
  /// The same as "ADDED name", "BOOKMARK", "ERROR 410".
  std::vector<std::string> take_short();

 private:
  std::string text_;
  std::size_t queued_ = 0;
  bool slow_ = false;
  bool gone_ = false;
  bool finished_ = false;
  std::function<void()> drained_;
  std::function<void()> closed_;
};

struct Reply {
  int status = 0;  // 0: no answer yet
  net::Headers headers;
  std::string text;
  Value body;  // null when it is not JSON
  std::shared_ptr<FakeStream> stream;

  std::string message() const { return body["message"].str(); }
  std::string reason() const { return body["reason"].str(); }
  std::vector<std::string> warnings() const;
};

/// What answers a request by filling in `reply`; streams of a slow one take nothing.
std::unique_ptr<calls::Exchange> answer_into(std::shared_ptr<Reply> reply, bool slow = false);
/// The media type of a patch: "json", "merge", "strategic", "apply".
std::string patch_media(std::string_view type);

class TestServer {
 public:
  explicit TestServer(Options options = {}, const store::MemoryOptions& store_options = {});
  ~TestServer();

  /// As the administrator, unless the request says who sends it.
  Reply send(net::Request request);
  Reply send(calls::Request request);
  Reply get(std::string target, std::string accept = {});
  Reply post(std::string target, const Value& body);
  Reply put(std::string target, const Value& body);
  /// `type`: "json", "merge", "strategic", "apply".
  Reply patch(std::string target, std::string_view type, std::string_view body);
  Reply remove(std::string target, std::string_view options = {});
  /// A stream is expected.
  std::shared_ptr<FakeStream> watch(std::string target, std::string accept = {});

  Value add_config_map(std::string_view name, std::string_view data = "{}");
  /// A namespace with its default service account, so that pods can be made.
  void add_namespace(std::string_view name);
  void add_account(std::string_view name_space, std::string_view name = "default");
  /// The pod, ready, on a node; `labels` as JSON.
  Value run_pod(std::string_view name, std::string_view labels = "{}");
  void restart();

  runtime::SimRuntime sim;
  std::unique_ptr<store::Store> store;
  Options options;
  std::unique_ptr<ApiServer> server;
  /// New streams take nothing from their beginning.
  bool slow_streams = false;

 private:
  void open();
};

/// A request of the administrator with a body.
net::Request make_request(std::string method, std::string target, std::string body = {},
                          std::string content_type = "application/json");

inline constexpr const char* kConfigMaps = "/api/v1/namespaces/default/configmaps";
inline constexpr const char* kPods = "/api/v1/namespaces/default/pods";

Value config_map(std::string_view name, std::string_view data = "{}");
Value simple_pod(std::string_view name, std::string_view more_spec = "{}");

}  // namespace dibs::server::test
