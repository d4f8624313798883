#include "server/audit.h"

#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "server/authentication.h"
#include "server/body.h"
#include "server/options.h"

namespace dibs::server {
namespace {

constexpr std::size_t kLongestAgent = 1024;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> texts) {
  for (std::string_view one : texts) {
    if (one == text) return true;
  }
  return false;
}

/// What goes on after its answer has begun.
bool goes_on(const RequestInfo& info) {
  return info.is_resource &&
         (info.verb == "watch" ||
          is_one_of(info.subresource, {"attach", "exec", "proxy", "log", "portforward"}));
}

Value list_of(const std::vector<std::string>& texts) {
  Value list = Value::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

Value user_value(const auth::UserInfo& user) {
  Value out = Value::object();
  if (!user.name.empty()) out.set("username", user.name);
  if (!user.uid.empty()) out.set("uid", user.uid);
  if (!user.groups.empty()) out.set("groups", list_of(user.groups));
  for (const auto& [key, values] : user.extra) out.mut("extra").set(key, list_of(values));
  return out;
}

std::string_view host_of(std::string_view address) {
  const auto colon = address.rfind(':');
  std::string_view host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

/// What proxies say, then the peer itself; all but the last are as good as their sender.
Value sources_of(const net::Request& request) {
  Value out = Value::array();
  std::string last;
  const auto add = [&](std::string_view address) {
    address = trim(address);
    if (address.empty() || address == last) return;
    last = address;
    out.push(address);
  };
  for (std::string_view one : split(request.headers.get("X-Forwarded-For"), ',')) add(one);
  add(request.headers.get("X-Real-Ip"));
  add(is_inside(request) ? "127.0.0.1" : host_of(request.peer.address));
  return out;
}

Value reference_of(const RequestInfo& info) {
  Value out = Value::object();
  const auto add = [&](std::string_view key, const std::string& text) {
    if (!text.empty()) out.set(key, text);
  };
  add("resource", info.resource);
  add("namespace", info.name_space);
  add("name", info.name);
  add("apiGroup", info.group);
  add("apiVersion", info.version);
  add("subresource", info.subresource);
  return out;
}

void drop_managers(Value& object) {
  if (object["metadata"].contains("managedFields")) object.mut("metadata").erase("managedFields");
  for (const char* list : {"items", "rows"}) {
    if (!object[list].is_array()) continue;
    Value& items = object.mut(list);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool row = items[i].contains("object");
      const Value& metadata = row ? items[i]["object"]["metadata"] : items[i]["metadata"];
      if (!metadata.contains("managedFields")) continue;
      Value& holder = row ? items.mut(i).mut("object") : items.mut(i);
      holder.mut("metadata").erase("managedFields");
    }
  }
}

/// A body as a value; null where it is none.
Value body_value(std::string_view body, std::string_view type) {
  if (body.empty()) return {};
  Result<Value> read = Error::internal("");
  if (body.starts_with(std::string_view("k8s\0", 4))) {
    read = parse_protobuf(body);
  } else if (type.find("yaml") != std::string_view::npos) {
    read = json::parse_yaml(body);
  } else {
    read = json::parse(body);
  }
  return read.ok() ? std::move(read).value() : Value();
}

/// How a sender tried to say who he is.
std::string attempts(const net::Request& request) {
  std::vector<std::string> tried;
  const std::string header = to_lower(request.headers.get("Authorization"));
  for (const char* method : {"basic", "bearer"}) {
    if (trim(header).starts_with(cat(method, " "))) tried.emplace_back(method);
  }
  if (request.peer.certificate || request.peer.certificate_invalid) tried.emplace_back("x509");
  if (tried.empty()) return "Authentication failed, no credentials provided";
  return cat("Authentication failed, attempted: ", join(tried, ", "));
}

}  // namespace

AuditEntry::AuditEntry(Auditor& auditor, AuditChoice choice, const Context& context,
                       const auth::UserInfo* user)
    : auditor_(auditor), choice_(choice), is_long_(goes_on(context.info)) {
  const net::Request& request = context.request;
  id_ = request.headers.get("Audit-ID");
  if (id_.empty()) id_ = runtime::make_uuid(auditor.runtime_.random);
  std::string agent(request.headers.get("User-Agent"));
  if (agent.size() > kLongestAgent) agent = cat(agent.substr(0, kLongestAgent), "...TRUNCATED");
  event_ = Value::object({{"kind", "Event"},
                          {"apiVersion", "audit.k8s.io/v1"},
                          {"level", name_of(choice.level)},
                          {"auditID", id_},
                          {"stage", ""},
                          {"requestURI", request.target},
                          {"verb", context.info.verb},
                          {"user", user != nullptr ? user_value(*user) : Value::object()}});
  event_.set("impersonatedUser", nullptr);
  event_.set("sourceIPs", sources_of(request));
  event_.set("userAgent", agent.empty() ? Value() : Value(agent));
  event_.set("objectRef", context.info.is_resource ? reference_of(context.info) : Value());
  for (const char* later : {"responseStatus", "requestObject", "responseObject"}) {
    event_.set(later, nullptr);
  }
  event_.set("requestReceivedTimestamp", format_rfc3339_micro(context.now));
}

AuditEntry::~AuditEntry() {
  if (open_) tell(AuditStage::response_complete);
}

void AuditEntry::impersonates(const auth::UserInfo& user) {
  event_.set("impersonatedUser", user_value(user));
}

void AuditEntry::annotate(std::string_view key, std::string_view value) {
  Value& all = event_.mut("annotations");
  if (!all.contains(key)) all.set(key, value);
}

void AuditEntry::take_request(const Context& context) {
  const RequestInfo& info = context.info;
  // What is created is named by its body alone.
  const bool names = info.verb == "create" || info.verb == "update";
  const bool is_wanted = choice_.level >= AuditLevel::request;
  if (!info.is_resource || (!names && !is_wanted)) return;
  const Request& request = context.request;
  Value object = request.value.is_null()
                     ? body_value(request.body, request.headers.get("Content-Type"))
                     : request.value;
  if (object.is_null()) return;
  if (names) {
    Value& reference = event_.mut("objectRef");
    for (const char* key : {"namespace", "name", "uid", "resourceVersion"}) {
      const std::string_view text = object["metadata"][key].as_string();
      if (!reference.contains(key) && !text.empty()) reference.set(key, text);
    }
  }
  if (!is_wanted || truncated_) return;
  if (choice_.omit_managed_fields) drop_managers(object);
  event_.set("requestObject", std::move(object));
}

void AuditEntry::set_status(const Response& response) {
  Value status = Value::object({{"metadata", Value::object()}});
  Value object = response.value;
  const bool is_wanted = wants_body();
  // A refusal's reason is told on every level.
  if (object.is_null() && (is_wanted || response.status >= 300)) {
    object = body_value(response.body, response.headers.get("Content-Type"));
  }
  if (object["kind"].as_string() == "Status") {
    for (const char* key : {"status", "message", "reason", "details"}) {
      if (object.contains(key)) status.set(key, object[key]);
    }
  }
  status.set("code", response.status);
  event_.set("responseStatus", std::move(status));
  if (!is_wanted || truncated_ || !object.is_object()) return;
  if (choice_.omit_managed_fields) drop_managers(object);
  event_.set("responseObject", std::move(object));
}

void AuditEntry::answered(const Context& context, const Response& response) {
  take_request(context);
  set_status(response);
  if (is_long_) tell(AuditStage::response_started);
  tell(AuditStage::response_complete);
  open_ = false;
}

void AuditEntry::started(const Context& context, int status) {
  take_request(context);
  event_.set("responseStatus", Value::object({{"metadata", Value::object()}, {"code", status}}));
  open_ = true;
  tell(AuditStage::response_started);
}

void AuditEntry::not_known(const Context& context, const Response& response) {
  event_.set("responseStatus", Value::object({{"metadata", Value::object()},
                                              {"message", attempts(context.request)},
                                              {"code", response.status}}));
  tell(AuditStage::response_started);
}

void AuditEntry::leave_out_bodies() {
  if (choice_.level < AuditLevel::request) return;
  truncated_ = true;
  for (const char* body : {"requestObject", "responseObject"}) event_.set(body, nullptr);
  annotate("audit.k8s.io/truncated", "true");
}

void AuditEntry::tell(AuditStage stage) {
  if (!choice_.tells(stage)) return;
  event_.set("stage", name_of(stage));
  std::string told = line(stage);
  if (told.size() > kMostBytes) {
    leave_out_bodies();
    told = line(stage);
  }
  auditor_.events_.one().add();
  auditor_.log_->add(told);
}

std::string AuditEntry::line(AuditStage stage) const {
  std::string line;
  line.reserve(1024);
  line += '{';
  for (const auto& [key, value] : event_.members()) {
    if (value.is_null() || key == "annotations") continue;
    append(line, line.size() > 1 ? "," : "", "\"", key, "\":");
    json::write_to(line, value, true);
  }
  append(line, ",\"stageTimestamp\":\"",
         stage == AuditStage::request_received
             ? event_["requestReceivedTimestamp"].str()
             : format_rfc3339_micro(auditor_.runtime_.clock.now()),
         "\"");
  if (!event_["annotations"].empty()) {
    line += ",\"annotations\":";
    json::write_to(line, event_["annotations"], true);
  }
  line += "}\n";
  return line;
}

Auditor::Auditor(AuditPolicy policy, std::unique_ptr<AuditLog> log, runtime::Runtime& runtime,
                 metrics::Registry& metrics)
    : policy_(std::move(policy)),
      runtime_(runtime),
      events_(metrics.counter("apiserver_audit_event_total",
                              "Audit events generated and sent to the audit log.")),
      log_(std::move(log)) {
  metrics.gauge_function("dibs_audit_events_lost",
                         "Audit events that the audit log had no room for.",
                         [this] { return static_cast<double>(log_->lost()); });
}

Result<> check_audit_options(const Options& options) {
  if (options.audit_log.path.empty() && options.audit_policy.empty()) return success();
  if (options.audit_policy.empty()) {
    return Error::bad_request("--audit-log-path: needs --audit-policy-file, which says what of");
  }
  if (options.audit_log.path.empty()) {
    return Error::bad_request("--audit-policy-file: needs --audit-log-path, to write to");
  }
  const auto policy = AuditPolicy::parse(options.audit_policy);
  if (!policy.ok()) return policy.error().within("--audit-policy-file");
  return success();
}

Result<std::unique_ptr<Auditor>> Auditor::open(const Options& options, runtime::Runtime& runtime,
                                               metrics::Registry& metrics) {
  DIBS_CHECK(check_audit_options(options));
  if (options.audit_log.path.empty()) return std::unique_ptr<Auditor>();
  DIBS_TRY(auto policy, AuditPolicy::parse(options.audit_policy));
  DIBS_TRY(auto log, AuditLog::open(options.audit_log, runtime));
  return std::unique_ptr<Auditor>(new Auditor(std::move(policy), std::move(log), runtime, metrics));
}

AuditEntryPtr Auditor::begin(const Context& context, const auth::UserInfo* user) {
  const RequestInfo& info = context.info;
  auth::RequestAttributes what;
  if (user != nullptr) what.user = *user;
  what.verb = info.verb;
  what.is_resource = info.is_resource;
  what.path = info.path;
  what.group = info.group;
  what.resource = info.resource;
  what.subresource = info.subresource;
  what.name_space = info.name_space;
  what.name = info.name;
  const AuditChoice choice = policy_.choose(what, user != nullptr);
  if (choice.level == AuditLevel::none) return nullptr;
  return std::make_shared<AuditEntry>(*this, choice, context, user);
}

namespace {

class AuditedExchange final : public calls::Exchange {
 public:
  AuditedExchange(std::shared_ptr<calls::Exchange> inner, std::shared_ptr<Context> context)
      : inner_(std::move(inner)), context_(std::move(context)) {}

  void respond(net::Response response) override { answer(std::move(response)); }
  void answer(Response response) override {
    // What the server answers by itself was told there.
    if (auto entry = std::exchange(context_->audit, nullptr)) entry->answered(*context_, response);
    inner_->answer(std::move(response));
  }
  std::shared_ptr<net::BodyStream> stream(net::Response head) override {
    auto entry = begin(head.status);
    return held(inner_->stream(std::move(head)), std::move(entry));
  }
  std::shared_ptr<calls::EventStream> stream_events(const net::Response& head) override {
    auto stream = inner_->stream_events(head);
    if (stream == nullptr) return nullptr;
    return held(std::move(stream), begin(head.status));
  }
  void upgrade(std::string protocol,
               std::function<void(std::shared_ptr<net::WebSocket>)> ready) override {
    auto entry = begin(101);
    inner_->upgrade(std::move(protocol), [entry, ready](std::shared_ptr<net::WebSocket> socket) {
      ready(held(std::move(socket), entry));
    });
  }
  void upgrade_to(net::Response head,
                  std::function<void(std::shared_ptr<net::ByteStream>)> ready) override {
    auto entry = begin(head.status);
    inner_->upgrade_to(std::move(head), [entry, ready](std::shared_ptr<net::ByteStream> bytes) {
      ready(held(std::move(bytes), entry));
    });
  }
  void on_gone(std::function<void()> gone) override { inner_->on_gone(std::move(gone)); }

 private:
  AuditEntryPtr begin(int status) {
    auto entry = std::exchange(context_->audit, nullptr);
    if (entry) entry->started(*context_, status);
    return entry;
  }

  /// The same thing, which holds the entry as long as it is held itself.
  template <typename Thing>
  static std::shared_ptr<Thing> held(std::shared_ptr<Thing> thing, AuditEntryPtr entry) {
    if (thing == nullptr || entry == nullptr) return thing;
    auto both = std::make_shared<std::pair<AuditEntryPtr, std::shared_ptr<Thing>>>(
        std::move(entry), std::move(thing));
    return std::shared_ptr<Thing>(both, both->second.get());
  }

  std::shared_ptr<calls::Exchange> inner_;
  std::shared_ptr<Context> context_;
};

}  // namespace

std::shared_ptr<calls::Exchange> audited(std::shared_ptr<calls::Exchange> exchange,
                                         std::shared_ptr<Context> context) {
  if (context->audit == nullptr || !goes_on(context->info)) return exchange;
  return std::make_shared<AuditedExchange>(std::move(exchange), std::move(context));
}

}  // namespace dibs::server
