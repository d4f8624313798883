// Any bytes as what the store has on its disk, and as the places in listings that clients hand
// back: a value is kept as it is, an object reads back as it was written, encryption undoes itself,
// and what others may have put into an etcd is read whole or not at all.
#include "base/strings.h"
#include "fuzz/targets.h"
#include "json/parse.h"
#include "runtime/sim_runtime.h"
#include "server/builtin_resources.h"
#include "server/encryption.h"
#include "server/etcd_form.h"
#include "server/list_options.h"
#include "server/stored.h"
#include "store/commons.h"

namespace dibs::fuzz {
namespace {

using json::Value;
using AtRestPtr = std::shared_ptr<const store::AtRest>;

constexpr std::string_view kKey = "/registry/secrets/default/s";

void check_object(std::string_view bytes) {
  store::Commons commons;
  json::Pool trees;
  const store::Record record(commons, kKey, bytes, 3, 9);
  require(*record.value == bytes && record.key == kKey, "a value is kept as it is");
  std::string whole, item;
  require(server::append_wire(whole, bytes, "9") == server::append_wire_item(item, bytes, "9"),
          "what goes on the wire goes into a list");
  const auto object = server::decode_stored(record);
  const auto kept = server::decode_kept(record, trees);
  require(object.ok() == kept.ok(), "both forms are of one object");
  if (!object.ok()) return;
  require((*object)["metadata"]["resourceVersion"].as_string() == "9",
          "the version is the store's");
  require(!(*kept)["metadata"].contains("managedFields"), "who keeps it need not know who wrote");
  // As the server would write it.
  const std::string written = server::encode_stored(*object);
  const store::Record second(commons, kKey, written, 3, 10);
  const auto again = server::decode_stored(second);
  require(again.ok(), "what is written reads back");
  require(server::encode_stored(*again) == written, "and is written the same");
  whole.clear();
  require(server::append_wire(whole, written, "10"), "what is written goes on the wire");
  const auto wire = json::parse(whole);
  require(wire.ok() && *wire == *again, "as the object that it is");
}

/// Values that are alike share what they have in common.
void check_values(std::string_view bytes) {
  store::ValuePool pool;
  std::vector<std::unique_ptr<store::ValueBytes>> values;
  std::vector<std::string> texts;
  const std::size_t step = bytes.size() / 4 + 1;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    texts.emplace_back(bytes.substr(at));
    texts.push_back(cat(bytes.substr(0, at), "\"name\":\"", at, "\",", bytes.substr(at)));
  }
  for (const auto& text : texts) {
    values.push_back(std::make_unique<store::ValueBytes>(pool, kKey, text));
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    require(**values[i] == texts[i] && values[i]->size() == texts[i].size(), "a value is kept");
    require(values[i]->head(100) == texts[i].substr(0, 100), "and its beginning");
  }
}

AtRestPtr encryption(std::string_view first) {
  static runtime::SimRuntime sim;
  static const auto resources = *server::builtin_resources({});
  std::string providers;
  for (const std::string_view kind : {"aescbc", "aesgcm", "secretbox"}) {
    const std::string one =
        cat("{", kind,
            ": {keys: [{name: k, secret: ", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}, ");
    providers = kind == first ? one + providers : providers + one;
  }
  auto made = server::make_encryption(
      cat("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n",
          "resources: [{resources: [secrets], providers: [", providers, "{identity: {}}]}]"),
      resources, sim.runtime().random);
  require(made.ok(), "the configuration is one");
  return *made;
}

void check_at_rest(std::string_view bytes) {
  static const AtRestPtr all[] = {encryption("aescbc"), encryption("aesgcm"),
                                  encryption("secretbox")};
  for (const auto& at_rest : all) {
    const auto opened = at_rest->open(kKey, bytes);
    require(opened.ok() || bytes.starts_with(store::kSealed), "what is not sealed is open");
    const auto sealed = at_rest->seal(kKey, bytes);
    require(sealed.ok() && sealed->starts_with(store::kSealed), "a value is sealed");
    const auto again = at_rest->open(kKey, *sealed);
    require(again.ok() && again->value == bytes && !again->stale, "and opens again");
    // Longer than what names the key.
    require(bytes.size() < 32 || sealed->find(bytes) == std::string::npos, "without showing it");
  }
}

/// Beyond the prefix that names the key, so that chance gets to what follows it.
void check_sealed(std::string_view bytes) {
  for (const char* kind : {"aescbc", "aesgcm", "secretbox"}) {
    check_at_rest(cat(store::kSealed, kind, ":v1:k:", bytes));
  }
}

/// As a value of one kind that a kube-apiserver may have written.
void check_shared(std::string_view bytes) {
  static const AtRestPtr form = *server::make_etcd_form({}, nullptr);
  for (const char* key : {"/registry/pods/default/p", "/registry/resourceclaims/default/c",
                          "/registry/a.example/cats/default/tom", "/registry/ranges/serviceips"}) {
    const auto opened = form->open(key, bytes);
    if (!opened.ok()) continue;
    const auto sealed = form->seal(key, opened->value);
    require(sealed.ok(), "what was read can be written");
    const auto again = form->open(key, *sealed);
    require(again.ok() && again->value == opened->value, "and is read the same");
    require(opened->value == bytes || server::looks_stored(opened->value), "in our own form");
  }
}

void check_token(std::string_view text) {
  using server::ContinueToken;
  (void)ContinueToken::decode(std::string(text)).ok();
  const auto token = ContinueToken::decode(base64url_encode(text));
  if (!token.ok()) return;
  require(!token->start.empty() && cat("/", token->start, "/").find("/../") == std::string::npos,
          "a place does not climb");
  const auto again = ContinueToken::decode(token->encode());
  require(again.ok() && again->version == token->version && again->start == token->start,
          "a place reads back");
}

}  // namespace

int fuzz_stored(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      check_object(bytes);
      break;
    case 1:
      check_values(bytes);
      break;
    case 2:
      check_at_rest(bytes);
      break;
    case 3:
      check_sealed(bytes);
      break;
    case 4:
      check_token(bytes);
      break;
    case 5:
      check_shared(bytes);
      break;
  }
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_stored)
