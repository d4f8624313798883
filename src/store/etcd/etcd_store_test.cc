// The store over real etcd processes: what others do to it, and what can go wrong with it.

#include "store/etcd/etcd_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "store/etcd/test_etcd_store.h"
#include "store/etcd/test_raw_etcd.h"
#include "store/fill.h"

namespace dibs::store {
namespace {

using namespace std::chrono_literals;
using Etcd = testing::EtcdStoreTest;
using testing::EtcdCluster;
using testing::eventually;
using ::testing::HasSubstr;
using testing::Proxy;
using testing::put;
using testing::RawEtcd;
using testing::removal;
using testing::show;

std::string error_of(const Result<>& result) { return result.ok() ? "" : result.error().message(); }

TEST_F(Etcd, two_stores_see_each_others_writes) {
  const EtcdCluster cluster;
  const auto a = open({.endpoints = cluster.endpoints()});
  const auto b = open({.endpoints = cluster.endpoints()});

  for (int i = 0; i < 50; ++i) {
    const Revision revision = commit(*a, {put("/registry/x", std::to_string(i))});
    ASSERT_TRUE(b->sync().ok());
    EXPECT_EQ(value(*b, "/registry/x"), std::to_string(i));
    EXPECT_EQ(b->get("/registry/x")->modified, revision);
  }
  const Revision seen = a->get("/registry/x")->modified;
  const Revision newer = commit(*b, {put("/registry/x", "b", seen)});
  auto beaten = a->commit({put("/registry/x", "a", seen)});
  ASSERT_FALSE(beaten.ok());
  EXPECT_EQ(beaten.error().code(), Code::conflict);
  EXPECT_EQ(value(*a, "/registry/x"), "b") << "what beat it is visible";
  commit(*b, {removal("/registry/x")});
  EXPECT_EQ(a->commit({put("/registry/x", "a", newer)}).error().code(), Code::conflict);
  EXPECT_EQ(value(*a, "/registry/x"), "-");
}

TEST_F(Etcd, swaps_the_prefix_and_leaves_other_keys_alone) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  raw.put("/else.where", "1");
  raw.put("/elsewhere", "2");
  raw.put("/else/pods/a", "3");
  const auto store = open({.endpoints = cluster.endpoints(), .prefix = "else/"});

  EXPECT_EQ(show(*store->range({})), "/registry/pods/a=3");
  commit(*store, {put("/registry/pods/b", "4"), put("/registry.dibs/c", "5")});
  EXPECT_EQ(raw.get("/else/pods/b"), "4");
  EXPECT_EQ(raw.get("/else.dibs/c"), "5");
  raw.put("/else.where", "6");
  raw.put("/else.dibs/d", "7");
  ASSERT_TRUE(store->sync().ok());
  EXPECT_EQ(show(*store->range({})),
            "/registry.dibs/c=5 /registry.dibs/d=7 /registry/pods/a=3 /registry/pods/b=4");
  EXPECT_EQ(store->commit({put("/other", "x")}).error().code(), Code::invalid);
}

TEST_F(Etcd, sync_does_not_wait_for_keys_that_are_not_ours) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  const auto store = open({.endpoints = cluster.endpoints()});
  for (int i = 0; i < 20; ++i) {
    const Revision revision = raw.put("other", "x");
    ASSERT_TRUE(store->sync().ok());
    EXPECT_GE(store->revision(), revision);
  }
  EXPECT_EQ(store->count(""), 0U);
}

TEST_F(Etcd, watches_from_before_go_on_after_a_restart) {
  const EtcdCluster cluster;
  auto store = open({.endpoints = cluster.endpoints()});
  const Revision from = commit(*store, {put("/registry/x", "1")});
  commit(*store, {put("/registry/x", "2")});
  commit(*store, {removal("/registry/x")});

  store.reset();
  store = open({.endpoints = cluster.endpoints()});

  auto watch = store->watch("/registry/", from, [] {});
  ASSERT_TRUE(watch.ok());
  EXPECT_EQ(show(*(*watch)->next(10)), cat(from + 1, "~/registry/x=2 ", from + 2, "-/registry/x"));
}

TEST_F(Etcd, keys_with_a_lifetime_go_by_themselves) {
  const EtcdCluster cluster;
  const auto store = open({.endpoints = cluster.endpoints()});
  ASSERT_TRUE(store->expires());
  for (const char* key : {"/registry/a", "/registry/b"}) {
    Op op = put(key, "x");
    op.lifetime = 1s;
    commit(*store, {op});
  }
  commit(*store, {put("/registry/c", "x")});
  EXPECT_EQ(store->count(""), 3U);
  EXPECT_TRUE(eventually([&] { return store->count("") == 1U; }));
  EXPECT_EQ(value(*store, "/registry/c"), "x");
}

TEST_F(Etcd, too_large_a_value_is_refused_with_the_reason) {
  const EtcdCluster cluster;
  const auto store = open({.endpoints = cluster.endpoints()});
  for (const std::size_t bytes : {std::size_t{1700} << 10, std::size_t{4} << 20}) {
    auto done = store->commit({put("/registry/x", std::string(bytes, 'x'))});
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code(), Code::too_large);
    EXPECT_THAT(done.error().message(), HasSubstr("--max-request-bytes"));
  }
  EXPECT_TRUE(store->health().ok());
}

TEST_F(Etcd, one_of_many_servers_compacts_as_kube_apiserver_does) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  const auto a = open({.endpoints = cluster.endpoints()});
  const auto b = open({.endpoints = cluster.endpoints()});
  Revision last = 0;
  for (int i = 0; i < 10; ++i) last = commit(*a, {put("/registry/x", std::to_string(i))});
  ASSERT_TRUE(b->sync().ok());

  ASSERT_TRUE(a->compact(last - 5).ok());
  EXPECT_TRUE(eventually([&] { return raw.get("compact_rev_key") == std::to_string(last - 5); }));
  // The other one does not know the version of the key, and so learns it.
  ASSERT_TRUE(b->compact(last - 4).ok());
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(raw.get("compact_rev_key"), std::to_string(last - 5));
  ASSERT_TRUE(b->compact(last - 3).ok());
  EXPECT_TRUE(eventually([&] { return raw.get("compact_rev_key") == std::to_string(last - 3); }));

  EXPECT_TRUE(eventually([&] {
    etcdserverpb::RangeRequest old;
    old.set_key("x");
    old.set_revision(last - 6);
    return !raw.send("KV/Range", old.SerializeAsString()).status.ok();
  }));
  const auto fresh = open({.endpoints = cluster.endpoints()});
  EXPECT_GE(fresh->compacted(), last - 5);
  EXPECT_EQ(value(*fresh, "/registry/x"), "9");
}

TEST_F(Etcd, what_was_filled_is_forgotten_by_all_whoevers_turn_it_is) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  for (const char* revision : {"1", "2", "3"}) raw.put("compact_rev_key", revision);
  auto store = open({.endpoints = cluster.endpoints()});
  const Revision before =
      commit(*store, {put("/registry/a", "1"), put(std::string(kUnfinished), "{}")});

  const auto finished = finish(*store);
  ASSERT_TRUE(finished.ok()) << finished.error().message();

  etcdserverpb::RangeRequest old;
  old.set_key("/registry/a");
  old.set_revision(before);
  EXPECT_FALSE(raw.send("KV/Range", old.SerializeAsString()).status.ok());
  ASSERT_TRUE(store->compact_for_all(before).ok()) << "forgotten already";
  store = open({.endpoints = cluster.endpoints()});
  EXPECT_EQ(store->watch("/registry/", before, [] {}).error().code(), Code::expired);
  EXPECT_EQ(show(*store->range({})), "/registry/a=1");
}

TEST_F(Etcd, lists_again_where_history_went_while_it_was_away) {
  const EtcdCluster cluster;
  RawEtcd raw(cluster.port());
  Proxy proxy(cluster.port());
  const auto store = open({.endpoints = {proxy.endpoint()}});
  commit(*store, {put("/registry/a", "1"), put("/registry/b", "1"), put("/registry/c", "1")});
  auto behind = store->watch("/registry/", store->revision(), [] {});
  auto elsewhere = store->watch("/registry/nothing/", store->revision(), [] {});
  const Revision seen = store->revision();

  proxy.cut();
  raw.put("/registry/a", "2");
  raw.remove("/registry/b");
  const Revision last = raw.put("/registry/d", "1");
  raw.compact(last);
  proxy.heal();

  ASSERT_TRUE(eventually([&] { return store->revision() >= last; }));
  EXPECT_EQ(show(*store->range({})), "/registry/a=2 /registry/c=1 /registry/d=1");
  EXPECT_EQ(store->get("/registry/d")->modified, last);
  EXPECT_EQ((*behind)->next(10).error().code(), Code::expired);
  EXPECT_TRUE((*elsewhere)->next(10).ok()) << "it has missed nothing";
  EXPECT_EQ(store->watch("/registry/", seen, [] {}).error().code(), Code::expired);
  commit(*store, {put("/registry/e", "1")});
}

TEST_F(Etcd, another_cluster_behind_the_same_endpoint_is_refused) {
  EtcdCluster cluster;
  const auto store = open({.endpoints = cluster.endpoints()});
  commit(*store, {put("/registry/a", "1")});

  cluster.wipe(0);
  cluster.start(0);
  EXPECT_TRUE(eventually([&] { return !store->health().ok(); }));
  EXPECT_TRUE(eventually([&] {
    return error_of(store->health()).find("another cluster") != std::string::npos;
  })) << error_of(store->health());
  EXPECT_EQ(store->sync().error().code(), Code::unavailable);
  EXPECT_EQ(value(*store, "/registry/a"), "1") << "reading goes on";
  RawEtcd raw(cluster.port());
  EXPECT_EQ(raw.get("/registry/a"), "-");
}

TEST_F(Etcd, goes_on_at_another_member_when_one_falls_silent) {
  const EtcdCluster cluster({.members = 3});
  Proxy proxy(cluster.port(0));
  const auto store =
      open({.endpoints = {proxy.endpoint(), cluster.endpoint(1), cluster.endpoint(2)}});
  commit(*store, {put("/registry/a", "1")});

  proxy.stall();
  const auto before = std::chrono::steady_clock::now();
  commit(*store, {put("/registry/a", "2", store->get("/registry/a")->modified)});
  EXPECT_LT(std::chrono::steady_clock::now() - before, 15s);
  EXPECT_TRUE(store->health().ok());
  EXPECT_EQ(value(*store, "/registry/a"), "2");
}

TEST_F(Etcd, loses_nothing_with_the_leader) {
  EtcdCluster cluster({.members = 3});
  const auto store = open({.endpoints = cluster.endpoints()});
  constexpr int kInFlight = 64;
  std::atomic<bool> stop = false;
  std::atomic<int> number = 0;
  Mutex mutex;
  std::map<std::string, Revision> acknowledged;
  std::map<std::string, std::string> failed;
  std::vector<std::thread> writers;
  for (int w = 0; w < kInFlight; ++w) {
    writers.emplace_back([&] {
      while (!stop) {
        const std::string key = cat("/registry/k/", ++number);
        auto done = store->commit({put(key, key, 0)});
        const MutexLock lock(mutex);
        if (done.ok()) {
          acknowledged[key] = *done;
        } else {
          failed[key] = done.error().message();
        }
      }
    });
  }
  std::this_thread::sleep_for(1s);
  int leader = 0;
  while (leader < 2 && !RawEtcd(cluster.port(leader)).leads()) ++leader;
  cluster.kill(leader);
  std::size_t then = 0;
  {
    const MutexLock lock(mutex);
    then = acknowledged.size();
  }
  EXPECT_TRUE(eventually([&] {
    const MutexLock lock(mutex);
    return acknowledged.size() > then + 500;
  })) << error_of(store->health());
  stop = true;
  for (auto& writer : writers) writer.join();

  std::vector<std::string> left;
  for (int i = 0; i < 3; ++i) {
    if (i != leader) left.push_back(cluster.endpoint(i));
  }
  const auto fresh = open({.endpoints = left});
  for (const auto& [key, revision] : acknowledged) {
    const RecordPtr record = fresh->get(key);
    ASSERT_TRUE(record) << key;
    EXPECT_EQ(record->modified, revision);
  }
  for (const auto& [key, why] : failed) ADD_FAILURE() << key << ": " << why;
}

TEST_F(Etcd, a_majority_that_is_gone_makes_it_unhealthy_until_it_is_back) {
  EtcdCluster cluster({.members = 3});
  const auto store = open({.endpoints = cluster.endpoints()});
  commit(*store, {put("/registry/a", "1")});

  cluster.kill(1);
  cluster.kill(2);
  EXPECT_TRUE(eventually([&] { return !store->health().ok(); }));
  auto refused = store->sync();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::unavailable);
  EXPECT_THAT(refused.error().message(), ::testing::Not(HasSubstr("127.0.0.1")))
      << "where it is, is not for whoever asks for an object";
  EXPECT_EQ(value(*store, "/registry/a"), "1");

  cluster.start(1);
  EXPECT_TRUE(eventually([&] { return store->health().ok(); })) << error_of(store->health());
  commit(*store, {put("/registry/a", "2")});
}

TEST_F(Etcd, a_member_may_be_replaced) {
  EtcdCluster cluster({.members = 3});
  const auto store = open({.endpoints = cluster.endpoints()});
  commit(*store, {put("/registry/a", "1")});
  cluster.wipe(2);

  // The member may have led, so nothing of this is sure to be answered the first time.
  RawEtcd raw(cluster.port(0));
  const std::string peer = cat("http://127.0.0.1:", cluster.peer_port(2));
  ASSERT_TRUE(eventually([&] {
    const auto list = raw.send("Cluster/MemberList", "");
    etcdserverpb::MemberListResponse members;
    if (!list.status.ok() || !members.ParseFromString(list.bytes)) return false;
    for (const auto& member : members.members()) {
      if (member.peerurls_size() != 1 || member.peerurls(0) != peer) continue;
      etcdserverpb::Member remove;  // MemberRemoveRequest: ID = 1
      remove.set_id(member.id());
      (void)raw.send("Cluster/MemberRemove", remove.SerializeAsString());
      return false;
    }
    return true;
  }));
  etcdserverpb::AuthenticateRequest add;  // MemberAddRequest: peerURLs = 1
  add.set_name(peer);
  ASSERT_TRUE(eventually([&] {
    const auto added = raw.send("Cluster/MemberAdd", add.SerializeAsString()).status;
    return added.ok() || added.message.find("already exists") != std::string::npos;
  }));
  cluster.start(2, "existing");
  cluster.wait_for(2);
  ASSERT_TRUE(eventually([&] { return store->commit({put("/registry/a", "2")}).ok(); }));

  const auto fresh = open({.endpoints = {cluster.endpoint(2)}});
  EXPECT_EQ(value(*fresh, "/registry/a"), "2");
}

TEST_F(Etcd, a_full_quota_takes_deletions_and_ends) {
  const EtcdCluster cluster({.flags = {"--quota-backend-bytes", "8000000"}});
  RawEtcd raw(cluster.port());
  const auto store = open({.endpoints = cluster.endpoints()});
  Result<Revision> done = Revision{0};
  int written = 0;
  for (; written < 100 && done.ok(); ++written) {
    done = store->commit({put(cat("/registry/", written), std::string(500'000, 'x'))});
  }
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::unavailable);
  EXPECT_THAT(done.error().message(), HasSubstr("database space exceeded"));
  EXPECT_FALSE(store->room().ok());
  EXPECT_FALSE(store->health().ok());
  for (int i = 0; i + 3 < written; ++i) {
    auto removed = store->commit({removal(cat("/registry/", i))});
    EXPECT_TRUE(removed.ok()) << removed.error().message();
  }
  const auto removed = [&](Store& by, int i) {
    const RecordPtr record = by.get(cat("/registry/", i));
    return record && by.commit({removal(std::string(record->key), record->modified)}).ok();
  };
  EXPECT_TRUE(removed(*store, written - 2));
  const auto unaware = open({.endpoints = cluster.endpoints()});
  EXPECT_TRUE(removed(*unaware, written - 3));

  raw.compact(store->revision());
  ASSERT_TRUE(raw.send("Maintenance/Defragment", "").status.ok());
  etcdserverpb::AlarmRequest alarm;
  alarm.set_alarm(etcdserverpb::NOSPACE);
  const auto raised = raw.call<etcdserverpb::AlarmResponse>("Maintenance/Alarm", alarm);
  ASSERT_EQ(raised.alarms_size(), 1);
  alarm.set_action(etcdserverpb::AlarmRequest::DEACTIVATE);
  alarm.set_memberid(raised.alarms(0).memberid());
  raw.call<etcdserverpb::AlarmResponse>("Maintenance/Alarm", alarm);
  EXPECT_TRUE(eventually([&] { return store->health().ok(); })) << error_of(store->health());
  commit(*store, {put("/registry/after", "1")});
}

TEST_F(Etcd, users_and_passwords) {
  EtcdCluster cluster;
  auto raw = std::make_unique<RawEtcd>(cluster.port());
  const auto send = [&](const char* method, const char* first, const char* second) {
    etcdserverpb::AuthenticateRequest two_words;
    two_words.set_name(first);
    two_words.set_password(second);
    EXPECT_TRUE(raw->send(method, two_words.SerializeAsString()).status.ok()) << method;
  };
  send("Auth/UserAdd", "root", "secret");
  send("Auth/RoleAdd", "root", "");
  send("Auth/UserGrantRole", "root", "root");
  send("Auth/AuthEnable", "", "");

  auto nobody = try_open({.endpoints = cluster.endpoints()});
  ASSERT_FALSE(nobody.ok());
  EXPECT_THAT(nobody.error().message(), HasSubstr("user name is empty"));
  auto wrong = try_open({.endpoints = cluster.endpoints(), .user = "root", .password = "guess"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message(), HasSubstr("invalid user ID or password"));

  const auto store = open({.endpoints = cluster.endpoints(), .user = "root", .password = "secret"});
  commit(*store, {put("/registry/a", "1")});
  // Tokens are gone with it.
  cluster.kill(0);
  cluster.start(0);
  commit(*store, {put("/registry/a", "2", store->get("/registry/a")->modified)});
}

/// What docs/etcd.md tells to grant, and no more.
class EtcdUser : public Etcd {
 protected:
  static constexpr char kRead = 0;
  static constexpr char kReadWrite = 2;

  void SetUp() override {
    Etcd::SetUp();
    if (IsSkipped()) return;
    cluster_ = std::make_unique<EtcdCluster>();
    raw_ = std::make_unique<RawEtcd>(cluster_->port());
    for (const char* name : {"root", "dibs"}) {
      send("Auth/UserAdd", name, "secret");
      send("Auth/RoleAdd", name, "");
      send("Auth/UserGrantRole", name, name);
    }
    grant("/registry.dibs/", "/registry0", kReadWrite);
    grant("compact_rev_key", "", kReadWrite);
    send("Auth/AuthEnable", "", "");
    etcdserverpb::AuthenticateRequest root;
    root.set_name("root");
    root.set_password("secret");
    token_ = raw_->call<etcdserverpb::AuthenticateResponse>("Auth/Authenticate", root).token();
  }
  void send(const char* method, const std::string& first, const std::string& second) {
    etcdserverpb::AuthenticateRequest two_words;
    two_words.set_name(first);
    two_words.set_password(second);
    EXPECT_TRUE(send(method, two_words.SerializeAsString()).ok()) << method;
  }
  rpc::Status send(const char* method, const std::string& bytes) {
    rpc::Metadata metadata;
    if (!token_.empty()) metadata.emplace_back("token", token_);
    return raw_->send(method, bytes, metadata).status;
  }
  void grant(const std::string& first, const std::string& end, char what) {
    const auto field = [](char number, const std::string& text) {
      return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(text.size())} + text;
    };
    // AuthRoleGrantPermissionRequest: name = 1, perm = 2; Permission: permType = 1, key = 2,
    // range_end = 3.
    const std::string permission = std::string{8, what} + field(2, first) + field(3, end);
    EXPECT_TRUE(send("Auth/RoleGrantPermission", field(1, "dibs") + field(2, permission)).ok());
  }
  std::unique_ptr<Store> open_as_user() {
    return open({.endpoints = cluster_->endpoints(), .user = "dibs", .password = "secret"});
  }

  std::unique_ptr<EtcdCluster> cluster_;
  std::unique_ptr<RawEtcd> raw_;
  std::string token_;
};

TEST_F(EtcdUser, has_all_that_it_needs_with_the_rights_that_are_told) {
  auto store = open_as_user();
  ASSERT_TRUE(store);
  Op op = put("/registry/ends", "x");
  op.lifetime = 1s;
  commit(*store, {put("/registry/a", "1", 0), put("/registry.dibs/b", "1"), op});
  ASSERT_TRUE(store->sync().ok());
  EXPECT_TRUE(eventually([&] { return !store->get("/registry/ends"); }));
  const Revision last = commit(*store, {removal("/registry/a")});
  ASSERT_TRUE(store->compact_for_all(last).ok());
  ASSERT_TRUE(store->compact(commit(*store, {put("/registry/a", "2")})).ok());
  EXPECT_TRUE(store->health().ok());
  store.reset();
  store = open_as_user();
  ASSERT_TRUE(store);
  EXPECT_EQ(value(*store, "/registry/a"), "2");
}

TEST_F(EtcdUser, who_may_not_write_any_more_is_unhealthy_until_it_may) {
  const auto store = open_as_user();
  ASSERT_TRUE(store);
  commit(*store, {put("/registry/a", "1")});

  grant("/registry.dibs/", "/registry0", kRead);
  const auto refused = store->commit({put("/registry/a", "2")});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::unavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr("permission denied"));
  EXPECT_THAT(error_of(store->health()), HasSubstr("permission denied"));
  EXPECT_TRUE(store->sync().ok()) << "it may read";
  EXPECT_EQ(value(*store, "/registry/a"), "1");

  grant("/registry.dibs/", "/registry0", kReadWrite);
  EXPECT_TRUE(eventually([&] { return store->health().ok(); })) << error_of(store->health());
  commit(*store, {put("/registry/a", "2")});
}

// --- certificates ---

/// An authority, and what it signs.
class Authority {
 public:
  Authority(const testing::TemporaryDirectory& folder, const std::string& name)
      : folder_(folder), name_(name) {
    make({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
          "2", "-subj", cat("/CN=", name), "-keyout", key(), "-out", certificate()});
  }
  std::string certificate() const { return folder_.file(name_ + ".crt"); }
  std::string key() const { return folder_.file(name_ + ".key"); }

  /// PATH.crt and PATH.key. `days` 0: over in a moment.
  std::string sign(const std::string& name, int days, const std::string& address = "127.0.0.1") {
    const std::string path = folder_.file(name);
    const std::string extensions = path + ".ext";
    make({"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
          cat("/CN=", name), "-keyout", path + ".key", "-out", path + ".csr"});
    FILE* file = std::fopen(extensions.c_str(), "w");
    std::fprintf(file, "subjectAltName=IP:%s\n", address.c_str());
    std::fclose(file);
    make({"x509", "-req", "-in", path + ".csr", "-CA", certificate(), "-CAkey", key(),
          "-CAcreateserial", "-days", std::to_string(days), "-extfile", extensions, "-out",
          path + ".crt"});
    return path;
  }

 private:
  void make(std::vector<std::string> command) const {
    command.insert(command.begin(), "openssl");
    EXPECT_EQ(testing::run(command, folder_.file("openssl.log")), 0) << command[1];
  }
  const testing::TemporaryDirectory& folder_;
  const std::string name_;
};

class EtcdTls : public Etcd {
 protected:
  EtcdCluster::Options with(const std::string& server) const {
    return {.flags = {"--cert-file", server + ".crt", "--key-file", server + ".key",
                      "--client-cert-auth", "--trusted-ca-file", authority_.certificate()},
            .scheme = "https"};
  }
  EtcdOptions as(const EtcdCluster& cluster, const std::string& client) const {
    return {.endpoints = cluster.endpoints(),
            .ca_file = authority_.certificate(),
            .certificate_file = client.empty() ? "" : client + ".crt",
            .key_file = client.empty() ? "" : client + ".key"};
  }
  static std::string refusal(const EtcdOptions& options) {
    auto opened = try_open(options);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? "" : opened.error().message();
  }

  testing::TemporaryDirectory folder_;
  Authority authority_{folder_, "authority"};
};

TEST_F(EtcdTls, certificates_of_both_sides_are_checked) {
  const std::string client = authority_.sign("client", 1);
  const EtcdCluster cluster(with(authority_.sign("server", 1)));
  {
    const auto store = open(as(cluster, client));
    commit(*store, {put("/registry/a", "1")});
  }
  EXPECT_THAT(refusal(as(cluster, "")), HasSubstr("certificate"));
  Authority other(folder_, "other");
  EtcdOptions wrong = as(cluster, client);
  wrong.ca_file = other.certificate();
  EXPECT_THAT(refusal(wrong), HasSubstr("certificate"));
}

TEST_F(EtcdTls, expired_certificates_are_refused_and_new_files_are_taken_up) {
  const std::string expired = authority_.sign("expired", 0);
  const std::string good = authority_.sign("good", 1);
  const EtcdCluster cluster(with(authority_.sign("server", 1)));
  const std::string used = folder_.file("used");
  const auto use = [&](const std::string& which) {
    for (const char* end : {".crt", ".key"}) {
      std::filesystem::copy_file(which + end, used + end,
                                 std::filesystem::copy_options::overwrite_existing);
    }
  };
  std::this_thread::sleep_for(1100ms);
  use(expired);
  EXPECT_THAT(refusal(as(cluster, used)), HasSubstr("expired"));
  use(good);
  const auto store = open(as(cluster, used));
  commit(*store, {put("/registry/a", "1")});
}

TEST_F(EtcdTls, a_server_with_another_name_or_an_expired_certificate_is_refused) {
  const std::string client = authority_.sign("client", 1);
  {
    const EtcdCluster cluster(with(authority_.sign("server", 1, "127.0.0.9")));
    EXPECT_THAT(refusal(as(cluster, client)), HasSubstr("127.0.0.1"));
  }
  const EtcdCluster cluster(with(authority_.sign("old", 0)));
  std::this_thread::sleep_for(1100ms);
  EXPECT_THAT(refusal(as(cluster, client)), HasSubstr("expired"));
}

TEST(EtcdOptions, are_checked_before_anybody_is_asked) {
  const auto refusal = [](const EtcdOptions& etcd) {
    StoreOptions options;
    options.etcd = etcd;
    return open_etcd_store(options).error().message();
  };
  EXPECT_THAT(refusal({}), HasSubstr("--etcd-endpoints"));
  EXPECT_THAT(refusal({.endpoints = {"127.0.0.1:2379"}}), HasSubstr("must be https://HOST:PORT"));
  EXPECT_THAT(refusal({.endpoints = {"https://a:1"}, .certificate_file = "x"}),
              HasSubstr("need each other"));
  EXPECT_THAT(refusal({.endpoints = {"http://a:1"}, .ca_file = "x"}), HasSubstr("https://"));
  EXPECT_THAT(refusal({.endpoints = {"http://a:1"}, .user = "x"}),
              HasSubstr("--etcd-password-file"));
}

}  // namespace
}  // namespace dibs::store
