#include "server/access.h"

#include <mutex>

#include "base/log.h"
#include "base/strings.h"
#include "net/jwt.h"
#include "server/auth/rbac.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {

using auth::Decision;
using auth::RequestAttributes;
using auth::UserInfo;

struct Access::Parts {
  Parts(runtime::Runtime& runtime, Objects& objects, ResourceTable& resources, const Options& options)
      : runtime(runtime), objects(objects), resources(resources), options(options) {}

  runtime::Runtime& runtime;
  Objects& objects;
  ResourceTable& resources;
  const Options& options;
  auth::Rbac rbac;
  net::JwtVerifier verifier;
  std::unique_ptr<Authenticator> authenticator;
  std::map<std::string, UserInfo, std::less<>> static_tokens;

  std::mutex mutex;
  std::vector<std::unique_ptr<store::Watch>> watches;  // guarded by mutex
  bool stopped = false;                                // guarded by mutex

  Result<> follow(const ResourcePtr& resource);
  void pump(std::size_t index);
  void take(const store::Record* now, const store::Record* before);
};

Access::Access(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Access::~Access() { stop(); }

Result<std::unique_ptr<Access>> Access::open(runtime::Runtime& runtime, Objects& objects, ResourceTable& resources,
                                             const Options& options) {
  auto parts = std::make_unique<Parts>(runtime, objects, resources, options);
  if (!options.account_key_pem.empty()) {
    auto added = parts->verifier.add(options.account_key_pem);
    if (!added.ok()) return added.error().within("the key of service accounts");
  }
  for (std::string_view line : split(options.static_tokens, '\n')) {
    auto fields = split(line, ',');
    if (fields.size() < 3) continue;
    UserInfo user;
    user.name = trim(fields[1]);
    user.uid = trim(fields[2]);
    for (std::size_t i = 3; i < fields.size(); ++i) {
      std::string group(trim(fields[i]));
      std::erase(group, '"');
      user.groups.push_back(group);
    }
    parts->static_tokens[std::string(trim(fields[0]))] = std::move(user);
  }
  Parts& p = *parts;
  parts->authenticator = std::make_unique<Authenticator>(std::vector<TokenVerifier>{
      [&p](std::string_view token) -> Result<UserInfo> {
        auto found = p.static_tokens.find(token);
        if (found == p.static_tokens.end()) return unauthorized_error();
        return found->second;
      }});
  return std::unique_ptr<Access>(new Access(std::move(parts)));
}

Result<> Access::load() {
  for (std::string_view plural : {"roles", "rolebindings", "clusterroles", "clusterrolebindings"}) {
    auto resource = parts_->resources.get()->find_plural("rbac.authorization.k8s.io", plural);
    if (resource) DIBS_CHECK(parts_->follow(resource));
  }
  return success();
}

Result<> Access::Parts::follow(const ResourcePtr& resource) {
  store::RangeQuery query;
  query.prefix = resource->storage_prefix;
  DIBS_TRY(store::Listing listing, objects.store().range(query));
  for (const auto& record : listing.records) take(record.get(), nullptr);
  std::size_t index = 0;
  {
    std::lock_guard lock(mutex);
    index = watches.size();
    watches.emplace_back();
  }
  // Decisions right after a write must know it, so changes are taken on the writer's thread: they are cheap.
  auto watch = objects.store().watch(resource->storage_prefix, listing.revision, [this, index] { pump(index); });
  if (!watch.ok()) return std::move(watch).error();
  {
    std::lock_guard lock(mutex);
    watches[index] = std::move(watch).value();
  }
  pump(index);
  return success();
}

void Access::Parts::pump(std::size_t index) {
  std::lock_guard lock(mutex);
  if (stopped || !watches[index]) return;
  for (;;) {
    auto events = watches[index]->next(64);
    if (!events.ok() || events->empty()) return;
    for (const auto& event : *events) take(event->now.get(), event->before.get());
  }
}

void Access::Parts::take(const store::Record* now, const store::Record* before) {
  auto object = decode_stored(now ? *now : *before);
  if (!object.ok()) return;
  if (now) {
    rbac.upsert(*object);
  } else {
    rbac.remove((*object)["kind"].as_string(), (*object)["metadata"]["namespace"].as_string(),
                (*object)["metadata"]["name"].as_string());
  }
}

void Access::stop() {
  std::vector<std::unique_ptr<store::Watch>> watches;
  {
    std::lock_guard lock(parts_->mutex);
    parts_->stopped = true;
    watches.swap(parts_->watches);
  }
}

Result<UserInfo> Access::identify(const net::Request& request) {
  DIBS_TRY(UserInfo user, parts_->authenticator->authenticate(request));
  return impersonate(request, user, [this](const RequestAttributes& what) { return authorize(what); });
}

Decision Access::authorize(const RequestAttributes& attributes) {
  if (attributes.user.in_group(auth::kMasters)) return {true, ""};
  return parts_->rbac.authorize(attributes);
}

Result<> Access::authorize_request(const Context& context) {
  const RequestInfo& info = context.info;
  RequestAttributes what;
  what.user = context.user;
  what.verb = info.verb;
  what.is_resource = info.is_resource;
  what.path = info.path;
  what.group = info.group;
  what.version = info.version;
  what.resource = info.resource;
  what.subresource = info.subresource;
  what.name_space = info.name_space;
  what.name = info.name;
  what.field_selector = context.target.get("fieldSelector");
  what.label_selector = context.target.get("labelSelector");
  Decision decision = authorize(what);
  if (decision.allowed) return success();
  if (!info.is_resource) {
    return Error(Code::forbidden,
                 cat("forbidden: User ", quoted(context.user.name), " cannot ", info.verb, " path ", quoted(info.path)),
                 ErrorDetails{});
  }
  std::string resource = info.subresource.empty() ? info.resource : cat(info.resource, "/", info.subresource);
  std::string why = cat("User ", quoted(context.user.name), " cannot ", info.verb, " resource ", quoted(resource),
                        " in API group ", quoted(info.group),
                        info.name_space.empty() ? std::string(" at the cluster scope")
                                                : cat(" in the namespace ", quoted(info.name_space)));
  if (!decision.reason.empty()) append(why, ": ", decision.reason);
  return forbidden_error(info.group, info.resource, info.name, why);
}

Result<UserInfo> Access::verify_token(std::string_view token, const std::vector<std::string>& audiences,
                                      std::vector<std::string>* matched) {
  (void)audiences;
  (void)matched;
  return parts_->authenticator->authenticate_token(token);
}

Result<Value> Access::issue_token(Context& context, const Value& account, const Value& token_request) {
  (void)context;
  (void)account;
  (void)token_request;
  return Error::internal("tokens");
}

Value Access::rules_for(const UserInfo& user, std::string_view name_space) {
  (void)user;
  (void)name_space;
  return Value::object({{"incomplete", false}});
}

json::Value Access::jwks() { return parts_->verifier.jwks(); }
Result<> Access::check_escalation(AdmissionRequest&) { return success(); }
Result<> Access::check_node(AdmissionRequest&) { return success(); }

}  // namespace dibs::server
