#include "server/access.h"

#include <atomic>
#include <map>
#include <unordered_map>

#include "api/merge/selectors.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "net/jwt.h"
#include "server/audit.h"
#include "server/auth/authorizer.h"
#include "server/auth/escalation.h"
#include "server/auth/node_restriction.h"
#include "server/auth/rbac.h"
#include "server/auth/tokens.h"
#include "server/backup.h"
#include "server/credentials.h"
#include "server/issuer_keys.h"
#include "server/status.h"
#include "server/stored.h"
#include "server/token_tracking.h"

namespace dibs::server {

using auth::Decision;
using auth::RequestAttributes;
using auth::UserInfo;

namespace {

constexpr std::size_t kCachedTokens = 4096;
/// A longer token is checked each time: whoever may ask for tokens chooses how long they are.
constexpr std::size_t kLongestCached = std::size_t{8} << 10;

}  // namespace

struct Access::Parts {
  Parts(runtime::Runtime& runtime, Objects& objects, ResourceTable& resources,
        const Options& options)
      : runtime(runtime),
        objects(objects),
        resources(resources),
        options(options),
        shared(objects.store().shared()),
        nodes(options.minor()),
        authorizer(nodes, rbac, options.minor() >= 32),
        issuers(runtime, options.issuer_keys ? options.issuer_keys : make_key_source()) {}

  runtime::Runtime& runtime;
  Objects& objects;
  ResourceTable& resources;
  const Options& options;
  const bool shared;
  auth::Rbac rbac;
  auth::NodeAuthorizer nodes;
  auth::Authorizer authorizer;
  auth::TokenOptions token_options;
  std::optional<net::JwtSigner> signer;
  net::JwtVerifier verifier;
  std::unique_ptr<Authenticator> authenticator;
  IssuerKeys issuers;
  std::map<std::string, UserInfo, std::less<>> static_tokens;

  /// Claims of tokens whose signature was good: checking one costs more than all the rest of a
  /// small request.
  Mutex cache_mutex;
  std::unordered_map<std::string, Value> cached_claims DIBS_GUARDED_BY(cache_mutex);

  Mutex mutex;
  /// What decisions are made of, kept as it changes.
  struct Followed {
    std::string prefix;
    std::function<void()> ready;
    std::unique_ptr<store::Watch> watch = {};
    /// Where others write, the way to a state may be lost, and only the state is told: then this
    /// says what is gone.
    std::map<std::string, store::RecordPtr, std::less<>> known = {};
  };
  std::vector<Followed> followed DIBS_GUARDED_BY(mutex);
  bool stopped DIBS_GUARDED_BY(mutex) = false;
  std::atomic<std::uint64_t> own_refusals{0};

  Mutex anonymous_mutex;
  std::shared_ptr<const auth::AnonymousOptions> anonymous DIBS_GUARDED_BY(anonymous_mutex) =
      std::make_shared<const auth::AnonymousOptions>();

  std::shared_ptr<const auth::AnonymousOptions> anonymous_options() {
    const MutexLock lock(anonymous_mutex);
    return anonymous;
  }
  void configure(const auth::AuthenticationConfiguration& configuration);

  /// Whether the user may do everything with every resource and every path.
  Decision authorize_everything(const UserInfo& user) const;
  /// The outcome, told to the log when a part of this process was refused.
  Result<> told(const Context& context, Result<> outcome);
  Result<Value> claims_of(std::string_view token);
  Result<auth::VerifiedToken> verify(std::string_view token,
                                     const std::vector<std::string>& audiences);
  Result<Value> lookup(std::string_view resource, std::string_view name_space,
                       std::string_view name);
  Result<> follow(const ResourcePtr& resource, bool at_once);
  void pump(std::size_t index);
  void catch_up();
  Result<> open(Followed& one) DIBS_REQUIRES(mutex);
  void take(Followed& one, const store::RecordPtr& now, const store::RecordPtr& before)
      DIBS_REQUIRES(mutex);
};

Access::Access(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Access::~Access() { stop(); }

Result<std::unique_ptr<Access>> Access::open(runtime::Runtime& runtime, Objects& objects,
                                             ResourceTable& resources, const Options& options) {
  auto parts = std::make_unique<Parts>(runtime, objects, resources, options);
  parts->token_options.issuer = options.issuer;
  parts->token_options.more_issuers = options.more_issuers;
  parts->token_options.audiences = options.api_audiences;
  parts->token_options.extend = options.extend_tokens;
  parts->token_options.max_life = options.max_token_life;
  if (!options.account_key_pem.empty()) {
    auto signer = net::JwtSigner::open(options.account_key_pem);
    if (!signer.ok()) return signer.error().within("the key of service accounts");
    parts->signer = std::move(signer).value();
    auto added = parts->verifier.add(options.account_key_pem);
    if (!added.ok()) return added.error().within("the key of service accounts");
  }
  if (!options.account_verifying_pem.empty()) {
    auto added = parts->verifier.add(options.account_verifying_pem);
    if (!added.ok()) return added.error().within("--service-account-key-file");
  }
  auto tokens = auth::parse_static_tokens(options.static_tokens);
  if (!tokens.ok()) return tokens.error().within("--token-auth-file");
  parts->static_tokens = std::move(tokens).value();
  Parts& p = *parts;
  parts->authenticator = std::make_unique<Authenticator>(
      std::vector<TokenVerifier>{[&p](std::string_view token) -> Result<UserInfo> {
                                   auto found = p.static_tokens.find(token);
                                   if (found == p.static_tokens.end()) return unauthorized_error();
                                   return found->second;
                                 },
                                 [&p](std::string_view token) -> Result<UserInfo> {
                                   DIBS_TRY(auth::VerifiedToken verified, p.verify(token, {}));
                                   return verified.user;
                                 },
                                 [&p](std::string_view token) -> Result<UserInfo> {
                                   return p.issuers.authenticate(token);
                                 }},
      options.front_proxies,
      [&p](const net::Request& request) { return p.anonymous_options()->allows(request.target); });
  parts->configure(options.authentication);
  return std::unique_ptr<Access>(new Access(std::move(parts)));
}

Result<Value> Access::Parts::claims_of(std::string_view token) {
  {
    MutexLock lock(cache_mutex);
    auto found = cached_claims.find(std::string(token));
    if (found != cached_claims.end()) return found->second;
  }
  DIBS_TRY(Value claims, verifier.verify(token));
  if (token.size() > kLongestCached) return claims;
  MutexLock lock(cache_mutex);
  if (cached_claims.size() >= kCachedTokens) cached_claims.clear();
  cached_claims.emplace(token, claims);
  return claims;
}

Result<auth::VerifiedToken> Access::Parts::verify(std::string_view token,
                                                  const std::vector<std::string>& audiences) {
  const auth::TokenLookup find = [this](std::string_view resource, std::string_view name_space,
                                        std::string_view name) {
    return lookup(resource, name_space, name);
  };
  const Time now = runtime.clock.now();
  if (token.find('.') == auth::kBootstrapTokenId)
    return auth::verify_bootstrap_token(token, token_options, audiences, find, now);
  auto claims = claims_of(token);
  if (!claims.ok()) return Error(Code::unauthorized, "");
  // This server's own issuer may have the name of the old one.
  if ((*claims)["iss"].as_string() == auth::kLegacyIssuer &&
      !(*claims)["kubernetes.io"].is_object()) {
    const auto used = [this, now](const Value& secret) {
      note_token_use(objects.store(), *resources.get()->find("", "v1", "secrets"), secret, now);
    };
    return auth::verify_legacy_claims(*claims, token, audiences, token_options, find, used);
  }
  return auth::verify_claims(*claims, audiences, token_options, find, now);
}

Result<Value> Access::Parts::lookup(std::string_view resource, std::string_view name_space,
                                    std::string_view name) {
  ResourceSetPtr set = resources.get();
  for (const api::GroupInfo& group : set->catalog.groups) {
    if (auto found = set->find_plural(group.name, resource))
      return objects.get(*found, name_space, name);
  }
  return not_found_error("", resource, name);
}

Result<> Access::load() {
  for (std::string_view plural : {"roles", "rolebindings", "clusterroles", "clusterrolebindings"}) {
    auto resource = parts_->resources.get()->find_plural("rbac.authorization.k8s.io", plural);
    if (resource) DIBS_CHECK(parts_->follow(resource, true));
  }
  constexpr std::pair<std::string_view, std::string_view> kGraph[] = {
      {"", "pods"},
      {"", "persistentvolumes"},
      {"storage.k8s.io", "volumeattachments"},
      {"resource.k8s.io", "resourceslices"},
      {"certificates.k8s.io", "podcertificaterequests"}};
  for (auto [group, plural] : kGraph) {
    auto resource = parts_->resources.get()->find_plural(group, plural);
    if (resource) DIBS_CHECK(parts_->follow(resource, false));
  }
  return success();
}

Result<> Access::Parts::follow(const ResourcePtr& resource, bool at_once) {
  MutexLock lock(mutex);
  const std::size_t index = followed.size();
  // A decision right after the write of a role must know it, so that is taken on the writer's
  // thread: there are few. Pods are many, and a node comes to know of them later anyway.
  followed.push_back({resource->storage_prefix, [this, index, at_once] {
                        if (at_once) return pump(index);
                        runtime.executor.post([this, index] { pump(index); });
                      }});
  DIBS_CHECK(open(followed.back()));
  lock.unlock();
  pump(index);
  return success();
}

Result<> Access::Parts::open(Followed& one) {
  store::RangeQuery query;
  query.prefix = one.prefix;
  DIBS_TRY(store::Listing listing, objects.store().range(query));
  auto before = std::exchange(one.known, {});
  for (const auto& record : listing.records) {
    take(one, record, nullptr);
    if (auto found = before.find(record->key); found != before.end()) before.erase(found);
  }
  for (const auto& [key, record] : before) take(one, nullptr, record);
  DIBS_TRY(one.watch, objects.store().watch(one.prefix, listing.revision, one.ready));
  return success();
}

void Access::Parts::pump(std::size_t index) {
  // These go without the lock, which their ready() may wait for.
  std::vector<std::unique_ptr<store::Watch>> lost;
  MutexLock lock(mutex);
  if (stopped) return;
  Followed& one = followed[index];
  while (one.watch) {
    auto events = one.watch->next(64);
    if (!events.ok()) {
      lost.push_back(std::move(one.watch));
      if (auto opened = open(one); !opened.ok()) {
        log::error("what decides who may do what cannot be read", {{"error", opened.error()}});
        return;
      }
      continue;
    }
    if (events->empty()) return;
    for (const auto& event : *events) take(one, event->now, event->before);
  }
}

void Access::Parts::catch_up() {
  std::size_t count = 0;
  {
    MutexLock lock(mutex);
    count = followed.size();
  }
  for (std::size_t index = 0; index < count; ++index) pump(index);
}

void Access::Parts::take(Followed& one, const store::RecordPtr& now,
                         const store::RecordPtr& before) {
  if (shared && now) one.known[std::string(now->key)] = now;
  if (shared && !now) one.known.erase(std::string(before->key));
  auto object = decode_stored(now ? *now : *before);
  if (!object.ok()) return;
  if (now) {
    rbac.upsert(*object);
    nodes.upsert(*object);
    return;
  }
  auto kind = (*object)["kind"].as_string();
  auto name_space = (*object)["metadata"]["namespace"].as_string();
  auto name = (*object)["metadata"]["name"].as_string();
  rbac.remove(kind, name_space, name);
  nodes.remove(kind, name_space, name);
}

void Access::catch_up() { parts_->catch_up(); }

void Access::stop() {
  parts_->issuers.stop();
  std::vector<std::unique_ptr<store::Watch>> watches;
  {
    MutexLock lock(parts_->mutex);
    parts_->stopped = true;
    for (auto& one : parts_->followed) watches.push_back(std::move(one.watch));
  }
}

void Access::Parts::configure(const auth::AuthenticationConfiguration& configuration) {
  issuers.configure(configuration.issuers);
  auto made = std::make_shared<const auth::AnonymousOptions>(
      configuration.anonymous.value_or(auth::AnonymousOptions()));
  const MutexLock lock(anonymous_mutex);
  anonymous = std::move(made);
}

void Access::configure(const auth::AuthenticationConfiguration& configuration) {
  parts_->configure(configuration);
}

bool Access::await_keys(const net::Request& request, std::function<void()> done) {
  const std::string token = token_of(request);
  return !token.empty() && parts_->issuers.await_keys(token, std::move(done));
}

Result<UserInfo> Access::authenticate(const net::Request& request) {
  DIBS_TRY(UserInfo user, parts_->authenticator->authenticate(request));
  // This server's own, for the ports of nodes: a request that comes by it was led back here.
  if (user.name == kNodeClientUser) return unauthorized_error();
  if (is_inside(request)) take_extra(request, user);
  return user;
}

Result<UserInfo> Access::impersonate(const net::Request& request, const UserInfo& sender) {
  return server::impersonate(request, sender,
                             [this](const RequestAttributes& what) { return authorize(what); });
}

Decision Access::Parts::authorize_everything(const UserInfo& user) const {
  RequestAttributes every;
  every.user = user;
  every.verb = every.group = every.version = every.resource = "*";
  Decision decision = authorizer.authorize(every);
  if (!decision.allowed) return decision;
  every.is_resource = false;
  every.path = "*";
  return authorizer.authorize(every);
}

Decision Access::authorize(const RequestAttributes& attributes) {
  Decision decision = parts_->authorizer.authorize(attributes);
  // What shows or replaces everything is for those who may everything, not for whoever may read
  // any path.
  if (decision.allowed && !attributes.is_resource && is_backup_path(attributes.path)) {
    return parts_->authorize_everything(attributes.user);
  }
  if (decision.allowed || !auth::node_identity(attributes.user)) return decision;
  // A node may ask for what a pod needs as soon as it has heard of the pod, which may be before
  // the graph has.
  parts_->catch_up();
  return parts_->authorizer.authorize(attributes);
}

std::uint64_t Access::own_refusals() const { return parts_->own_refusals; }

Result<> Access::Parts::told(const Context& context, Result<> outcome) {
  // What is looked at a second time has not been refused yet.
  const bool last = context.fresh || !shared;
  if (!outcome.ok() && last && is_inside(context.request) &&
      !auth::may_have_lost_a_pod(context.user, context.info.resource, outcome.error().message())) {
    ++own_refusals;
    log::warn("a part of this process was refused",
              {{"user", context.user.name}, {"error", outcome.error()}});
  }
  return outcome;
}

Result<> Access::authorize_request(const Context& context) {
  return authorize_as(context, context.info.verb);
}

Result<> Access::authorize_creation(const Context& context) {
  return authorize_as(context, "create");
}

Result<> Access::authorize_as(const Context& context, std::string_view verb) {
  const RequestInfo& info = context.info;
  RequestAttributes what;
  what.user = context.user;
  what.verb = verb;
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
  // A list that can only find one object is about that object.
  if (info.is_resource && info.name.empty() && (verb == "list" || verb == "watch")) {
    auto selector = api::parse_field_selector(what.field_selector);
    if (selector.ok()) what.name = selector->exact("metadata.name").value_or("");
  }
  return authorize_for(context, what);
}

Result<> Access::authorize_for(const Context& context, const RequestAttributes& what) {
  Decision decision = authorize(what);
  if (context.audit) {
    context.audit->annotate("authorization.k8s.io/decision", decision.allowed ? "allow" : "forbid");
    context.audit->annotate("authorization.k8s.io/reason", decision.reason);
  }
  if (decision.allowed) return success();
  return parts_->told(context, auth::refusal_error(what, decision.reason));
}

Value Access::review_token(std::string_view token, const std::vector<std::string>& audiences) {
  // Static tokens and those from outside, whose audiences are between their issuer and this server,
  // are for the API alone: who asks for another audience must not take them for his.
  const std::vector<std::string> own = parts_->token_options.own_audiences(audiences);
  auto found = parts_->static_tokens.find(token);
  if (found != parts_->static_tokens.end() && !own.empty()) {
    return auth::token_review_status(auth::VerifiedToken{found->second, own});
  }
  auto verified = parts_->verify(token, audiences);
  if (!verified.ok() && !own.empty()) {
    auto outside = parts_->issuers.authenticate(token);
    if (outside.ok()) {
      return auth::token_review_status(auth::VerifiedToken{std::move(outside).value(), own});
    }
    if (!outside.error().message().empty()) {
      return auth::token_review_status(Result<auth::VerifiedToken>(outside.error()));
    }
  }
  return auth::token_review_status(verified);
}

Result<Value> Access::issue_token(Context& context, const Value& account,
                                  const Value& token_request) {
  if (!parts_->signer) return Error::internal("no key to sign tokens with");
  DIBS_CHECK(check_node_write(context.user, auth::NodeOperation::create, *context.resource, "token",
                              context.info.name_space, context.info.name, &token_request, nullptr));
  DIBS_TRY(auth::PreparedToken token,
           auth::prepare_token(
               account, token_request, parts_->token_options,
               [this](std::string_view resource, std::string_view name_space,
                      std::string_view name) { return parts_->lookup(resource, name_space, name); },
               context.now, runtime::make_uuid(parts_->runtime.random)));
  DIBS_TRY(std::string text, parts_->signer->sign(token.claims));
  for (const std::string& warning : token.warnings) context.warn(warning);
  token.answer.mut("status").set("token", text);
  return token.answer;
}

Value Access::rules_for(const UserInfo& user, std::string_view name_space) {
  return parts_->authorizer.rules_for(user, name_space);
}

json::Value Access::jwks() { return parts_->verifier.jwks(); }
std::vector<std::string> Access::jwt_algorithms() { return parts_->verifier.algorithms(); }

Result<> Access::check_escalation(const Write& write) {
  auth::RoleWrite role{write.context.user,      write.resource.plural, write.name_space,
                       write.context.info.name, write.object,          write.old_if_any()};
  return auth::check_role_write(parts_->rbac, role,
                                [this](const RequestAttributes& what) { return authorize(what); });
}

Result<> Access::check_node(const Write& write) {
  auth::NodeOperation operation = auth::NodeOperation::update;
  if (write.operation == Operation::create) operation = auth::NodeOperation::create;
  if (write.operation == Operation::remove) operation = auth::NodeOperation::remove;
  return parts_->told(
      write.context,
      check_node_write(write.context.user, operation, write.resource, write.subresource,
                       write.name_space, write.name, write.object_if_any(), write.old_if_any()));
}

Result<> Access::check_node_write(const UserInfo& user, auth::NodeOperation operation,
                                  const Resource& resource, std::string_view subresource,
                                  std::string_view name_space, std::string_view name,
                                  const Value* object, const Value* old) {
  auth::NodeWrite write{
      user, operation, resource.group, resource.plural, subresource, name_space, name, object, old};
  auth::NodeLookups lookups;
  lookups.get = [this](std::string_view what, std::string_view where, std::string_view which) {
    return parts_->lookup(what, where, which);
  };
  lookups.authorize = [this](const RequestAttributes& what) { return authorize(what); };
  return auth::check_node_write(write, lookups);
}

}  // namespace dibs::server
