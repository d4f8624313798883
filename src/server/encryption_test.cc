#include "server/encryption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/strings.h"
#include "runtime/sim_runtime.h"
#include "server/builtin_resources.h"
#include "store/stores.h"

namespace dibs::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kSecret = "/registry/secrets/default/s";
constexpr std::string_view kMap = "/registry/configmaps/default/m";
// 32 bytes each.
constexpr const char* kOld = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
constexpr const char* kNew = "YWJjZGVmZ2hpamtsbW5vcGFiY2RlZmdoaWprbG1ub3A=";

using AtRestPtr = std::shared_ptr<const store::AtRest>;

class EncryptionTest : public testing::Test {
 protected:
  Result<AtRestPtr> make(const std::string& resources) {
    return make_encryption(cat("apiVersion: apiserver.config.k8s.io/v1\n"
                               "kind: EncryptionConfiguration\n",
                               resources),
                           *builtin_resources({}), sim_.runtime().random);
  }
  AtRestPtr made(const std::string& resources) {
    auto out = make(resources);
    EXPECT_TRUE(out.ok()) << out.error().message();
    return out.ok() ? *out : nullptr;
  }
  static std::string text_of(const store::Record& record) {
    std::string out;
    record.value->append_to(out);
    return out;
  }
  static std::string secrets(const std::string& providers) {
    return cat("resources: [{resources: [secrets], providers: [", providers, "]}]");
  }
  static std::string keys(std::string_view kind, const std::string& more) {
    return cat("{", kind, ": {keys: [", more, "]}}");
  }
  static std::string key(std::string_view name, std::string_view secret) {
    return cat("{name: ", name, ", secret: ", secret, "}");
  }

  runtime::SimRuntime sim_;
};

TEST_F(EncryptionTest, gives_back_what_it_took_and_shows_none_of_it) {
  for (const char* kind : {"aescbc", "aesgcm", "secretbox"}) {
    const auto cipher = made(secrets(keys(kind, key("k1", kOld))));
    for (const std::string& value :
         {std::string(), std::string("a"), std::string(16, 'b'), std::string(10000, 'c')}) {
      const auto sealed = cipher->seal(kSecret, value);
      ASSERT_TRUE(sealed.ok());
      EXPECT_THAT(*sealed, StartsWith(cat("k8s:enc:", kind, ":v1:k1:")));
      if (value.size() > 8) {
        EXPECT_EQ(sealed->find(value.substr(0, 8)), std::string::npos);
      }
      EXPECT_NE(*sealed, *cipher->seal(kSecret, value));
      const auto opened = cipher->open(kSecret, *sealed);
      ASSERT_TRUE(opened.ok()) << opened.error().message();
      EXPECT_EQ(opened->value, value);
      EXPECT_FALSE(opened->stale);
    }
    EXPECT_EQ(*cipher->seal(kMap, "plain"), "plain");
  }
}

TEST_F(EncryptionTest, reads_what_others_wrote) {
  // AES-256-CBC of {"a":1} with a vector of 16 zeros, by another program.
  const auto cipher = made(secrets(keys("aescbc", key("k1", kOld))));
  std::string body;
  ASSERT_TRUE(base64_decode("D5rUwT1nTj6nNH0KCkUekA==", body));
  const auto opened =
      cipher->open(kSecret, cat("k8s:enc:aescbc:v1:k1:", std::string(16, '\0'), body));
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_EQ(opened->value, R"({"a":1})");
}

TEST_F(EncryptionTest, reads_boxes_that_others_wrote) {
  // By golang.org/x/crypto/nacl/secretbox, with the nonce "abcdefghijklmnopqrstuvwx".
  const std::pair<std::string, const char*> boxes[] = {
      {"", "aLvbkOo5RUOYxvWA/iRcrA=="},
      {R"({"a":1})", "6Q5KDwipo4Fm3vPymmpYvAgm2obNUq4="},
      {std::string(131, '\0'),
       "OAYDjBt3f/8j1cNgg+QlDnMEu6T3Y9OrTL+rfHM/f+fe1uvYun5yNj+gDmDD+g+nbpDLQrPHgy/plxV/OpmpEsYVmz"
       "BmrH9+WDbUbHgxSwQTGeOvReoxH249UpZj8JrSedKtztqDwm576FUJG91vWezUr9PWMK4b+qV7FazUoFHk63+yqw0O"
       "KaxZQYYZ9+QtY4pu"}};
  const auto cipher = made(secrets(keys("secretbox", key("k1", kOld))));
  for (const auto& [value, text] : boxes) {
    std::string box;
    ASSERT_TRUE(base64_decode(text, box));
    const auto opened =
        cipher->open(kSecret, cat("k8s:enc:secretbox:v1:k1:abcdefghijklmnopqrstuvwx", box));
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    EXPECT_EQ(opened->value, value);
  }
  const std::string sealed = *cipher->seal(kSecret, "the value");
  for (std::size_t i = std::string("k8s:enc:secretbox:v1:k1:").size(); i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(cipher->open(kSecret, changed).ok()) << i;
  }
}

TEST_F(EncryptionTest, notices_every_change) {
  const auto cipher = made(secrets(keys("aesgcm", key("k1", kOld))));
  const std::string sealed = *cipher->seal(kSecret, "the value");
  for (std::size_t i = std::string("k8s:enc:aesgcm:v1:k1:").size(); i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(cipher->open(kSecret, changed).ok()) << i;
  }
  EXPECT_FALSE(cipher->open(kSecret, sealed.substr(0, 30)).ok());
  // Moved to another object.
  EXPECT_FALSE(cipher->open("/registry/secrets/default/t", sealed).ok());
  // Another key of that name.
  EXPECT_FALSE(made(secrets(keys("aesgcm", key("k1", kNew))))->open(kSecret, sealed).ok());
}

TEST_F(EncryptionTest, writes_with_the_first_key_and_reads_with_all) {
  const auto plain = made(secrets("{identity: {}}"));
  const auto first = made(secrets(cat(keys("aescbc", key("old", kOld)), ", {identity: {}}")));
  const auto second = made(secrets(keys("aescbc", cat(key("new", kNew), ", ", key("old", kOld)))));
  EXPECT_TRUE(first->open(kSecret, "{}")->stale);
  const std::string sealed = *first->seal(kSecret, "{}");
  EXPECT_FALSE(first->open(kSecret, sealed)->stale);
  EXPECT_EQ(second->open(kSecret, sealed)->value, "{}");
  EXPECT_TRUE(second->open(kSecret, sealed)->stale);
  EXPECT_THAT(*second->seal(kSecret, "{}"), StartsWith("k8s:enc:aescbc:v1:new:"));
  // What cannot be read says why, and shows nothing of it.
  EXPECT_THAT(second->open(kSecret, "{}").error().message(), HasSubstr("add identity: {}"));
  EXPECT_EQ(plain->open(kSecret, sealed).error().message(),
            "is encrypted as \"k8s:enc:aescbc:v1:old:\", a key that --encryption-provider-config "
            "does not have");
  EXPECT_FALSE(plain->open(kMap, sealed).ok());
}

TEST_F(EncryptionTest, knows_resources_by_their_names) {
  const auto sealed_by = [&](const std::string& name, std::string_view at) {
    const auto cipher = made(cat("resources: [{resources: ['", name, "'], providers: [",
                                 keys("aescbc", key("k", kOld)), "]}]"));
    return cipher && cipher->seal(at, "x")->starts_with("k8s:enc:");
  };
  EXPECT_TRUE(sealed_by("configmaps", kMap));
  EXPECT_FALSE(sealed_by("configmaps", kSecret));
  EXPECT_TRUE(sealed_by("*.", kSecret));
  EXPECT_TRUE(sealed_by("*.*", "/registry/deployments/default/d"));
  EXPECT_TRUE(sealed_by("deployments.apps", "/registry/deployments/default/d"));
  EXPECT_TRUE(sealed_by("*.apps", "/registry/deployments/default/d"));
  EXPECT_FALSE(sealed_by("*.apps", kSecret));
  EXPECT_TRUE(sealed_by("foos.example.com", "/registry/example.com/foos/default/f"));
  EXPECT_FALSE(sealed_by("foos.example.com", "/registry/example.com/bars/default/f"));
}

TEST_F(EncryptionTest, refuses_a_configuration_that_would_not_do) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "resources: Required value: at least one entry is needed"},
      {secrets("{kms: {name: k}}"),
       "resources[0].providers[0]: Unsupported value: \"kms\": supported values: "
       "\"aescbc\", \"aesgcm\", \"identity\", \"secretbox\""},
      {secrets(keys("secretbox", key("k", "MDEyMzQ1Njc4OWFiY2RlZg=="))),
       "resources[0].providers[0].secretbox.keys[0].secret: Invalid value: must be 32 bytes in "
       "base64"},
      {secrets(keys("aescbc", key("k", "c2hvcnQ="))),
       "resources[0].providers[0].aescbc.keys[0].secret: Invalid value: must be 16, 24 or 32 bytes "
       "in base64"},
      {secrets(keys("aescbc", cat(key("k", kOld), ", ", key("k", kNew)))),
       "resources[0].providers[0].aescbc.keys[1].name: Duplicate value: \"k\""},
      {"resources: [{resources: [secret], providers: [{identity: {}}]}]",
       "resources[0].resources[0]: Invalid value: \"secret\": must be a resource as PLURAL or "
       "PLURAL.GROUP, *.GROUP, *. for the core group or *.* for all"},
      {"resources: [{resources: [secrets], providers: []}]",
       "resources[0].providers: Required value: at least one provider is needed"},
      {"resources: [{resources: [secrets], provider: [{identity: {}}]}]",
       "[resources[0].provider: Forbidden: unknown field, resources[0].providers: Required value: "
       "at least one provider is needed]"},
  };
  for (const auto& [text, message] : cases) {
    const auto out = make(text);
    ASSERT_FALSE(out.ok()) << text;
    EXPECT_EQ(out.error().message(), message);
    EXPECT_EQ(out.error().message().find(kOld), std::string::npos);
  }
}

TEST_F(EncryptionTest, leaves_no_plain_text_in_the_file_whatever_was_there) {
  std::string pattern = "/tmp/dibs-enc-XXXXXX";
  const std::string folder = ::mkdtemp(pattern.data());
  const std::string marker(200, 'Q');
  const auto contents = [&] {
    std::string all;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream in(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(in), {});
    }
    return all;
  };
  const auto open = [&](AtRestPtr at_rest) {
    store::StoreOptions options;
    options.folder = folder;
    options.at_rest = std::move(at_rest);
    return store::open_store("sqlite", options);
  };
  const auto old_key = made(secrets(cat(keys("aesgcm", key("old", kOld)), ", {identity: {}}")));
  {
    auto store = *open(nullptr);
    ASSERT_TRUE(store->commit({{std::string(kSecret), share(marker), 0}}).ok());
    ASSERT_TRUE(store->commit({{std::string(kMap), share("{}"), 0}}).ok());
  }
  EXPECT_THAT(contents(), HasSubstr(marker));
  {
    auto store = *open(old_key);
    EXPECT_THAT(contents(), testing::Not(HasSubstr(marker)));
    ASSERT_TRUE(store->commit({{"/registry/secrets/default/t", share(marker), 0}}).ok());
  }
  EXPECT_THAT(contents(), testing::Not(HasSubstr(marker)));
  {
    auto store =
        *open(made(secrets(keys("aesgcm", cat(key("new", kNew), ", ", key("old", kOld))))));
    EXPECT_EQ(text_of(*store->get(kSecret)), marker);
    EXPECT_EQ(text_of(*store->get("/registry/secrets/default/t")), marker);
  }
  EXPECT_THAT(contents(), testing::Not(HasSubstr("v1:old:")));
  EXPECT_THAT(contents(), HasSubstr("k8s:enc:aesgcm:v1:new:"));
  const auto refused = open(nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(),
              HasSubstr("is encrypted: give the --encryption-provider-config"));
  EXPECT_FALSE(open(old_key).ok());
  // A refusal changes nothing.
  EXPECT_TRUE(open(made(secrets(keys("aesgcm", key("new", kNew))))).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace dibs::server
