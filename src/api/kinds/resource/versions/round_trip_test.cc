// Random objects, made from the schemas, through all versions and back.
#include <gtest/gtest.h>

#include <random>

#include "api/kinds/resource/versions/conversion.h"
#include "api/kinds/resource/versions/model.h"
#include "api/kinds/resource/versions/test_support.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kGroup = "resource.k8s.io";
constexpr int kRounds = 60;

/// Objects of a schema with some of its fields, none of them zero.
class RandomObjects {
 public:
  explicit RandomObjects(unsigned seed) : engine_(seed) {}

  Value of(const Schema& schema, int depth = 0) {
    switch (schema.shape) {
      case Shape::object: {
        Value out = Value::object();
        for (const Field& field : schema.fields) {
          bool always = field.zero == Zero::keep && !field.pointer &&
                        field.schema->shape != Shape::list && field.schema->shape != Shape::map;
          if (always || below(3) != 0) out.set(field.name, of(*field.schema, depth + 1));
        }
        return out;
      }
      case Shape::list: {
        Value out = Value::array();
        for (unsigned i = below(3) + 1; i > 0; --i) out.push(of(*schema.element, depth + 1));
        return out;
      }
      case Shape::map: {
        Value out = Value::object();
        for (unsigned i = below(3) + 1; i > 0; --i)
          out.set(cat("key", below(9)), of(*schema.element, depth + 1));
        return out;
      }
      case Shape::string:
        return cat("text", below(1000));
      case Shape::bytes:
        return "YQ==";
      case Shape::boolean:
        return below(4) != 0;
      case Shape::int32:
      case Shape::int64:
        return below(100) + 1;
      case Shape::number:
        return 0.5 + below(100);
      case Shape::quantity:
        return cat(below(100) + 1, "Gi");
      case Shape::int_or_string:
        return below(2) == 0 ? Value("http") : Value(80);
      case Shape::time:
        return "2026-01-02T03:04:05Z";
      case Shape::micro_time:
        return "2026-01-02T03:04:05.000006Z";
      case Shape::duration:
        return "1m0s";
      case Shape::any:
        return Value::object({{"any", below(100)}, {"list", Value::array({1, "x", nullptr})}});
      case Shape::fields_v1:
        return Value::object({{"f:spec", Value::object()}});
    }
    return {};
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(engine_() % n); }
  std::mt19937 engine_;
};

Value normal(const Value& object, const Schema& schema) {
  std::vector<std::string> ignored;
  auto decoded = decode(object, schema, Strictness::strict, ignored);
  EXPECT_TRUE(decoded.ok()) << (decoded.ok() ? "" : decoded.error().message()) << " in "
                            << json::write(object);
  return decoded.ok() ? std::move(decoded).value() : Value();
}

struct Served {
  std::string kind;
  std::string version;
  int release;
};

std::vector<Served> served_in(int release) {
  std::vector<Served> out;
  for (const VersionInfo& version : builtin_catalog(release).group(kGroup)->versions) {
    if (release != 0 && (version.first_release > release ||
                         (version.last_release != 0 && version.last_release < release)))
      continue;
    for (const ResourceInfo& resource : version.resources)
      out.push_back({resource.kind, version.version, release});
  }
  return out;
}

Value random_object(const Served& served, unsigned seed, std::string_view version, int release) {
  const Schema* schema = builtin_schema(kGroup, version, served.kind, release);
  Value object = RandomObjects(seed).of(*schema);
  object.set("kind", served.kind);
  object.set("apiVersion", cat(kGroup, "/", version));
  // Plain values in v1beta1: an explicit false cannot be told from nothing.
  if (object["spec"]["allNodes"].is_boolean() && !object["spec"]["allNodes"].as_bool())
    object.mut("spec").erase("allNodes");
  // A device without a basic part is shown with an empty one.
  bool flat = version == "v1beta1" || version == "v1alpha3";
  if (flat && object["spec"]["devices"].is_array()) {
    for (std::size_t i = 0; i < object["spec"]["devices"].size(); ++i) {
      Value& device = object.mut("spec").mut("devices").mut(i);
      if (!device.contains("basic")) device.set("basic", Value::object());
    }
  }
  return normal(object, *schema);
}

class RoundTrip : public ::testing::TestWithParam<int> {};

TEST_P(RoundTrip, ServedObjectsComeBack) {
  for (const Served& served : served_in(GetParam())) {
    Conversion conversion(served.kind, served.version, served.release);
    const Schema* schema = builtin_schema(kGroup, served.version, served.kind, served.release);
    for (unsigned seed = 0; seed < kRounds; ++seed) {
      Value object = random_object(served, seed, served.version, served.release);
      auto stored = conversion.store(object, nullptr);
      ASSERT_TRUE(stored.ok());
      EXPECT_EQ(is_classic(*stored), served.version == "v1alpha2");
      Value shown = conversion.show(*stored);
      ASSERT_TRUE(same(shown, object)) << served.kind << " " << served.version << " seed " << seed;
      ASSERT_TRUE(same(normal(shown, *schema), shown)) << "is not in normal form";
    }
  }
}

TEST_P(RoundTrip, StoredObjectsSurviveAWriteThroughEveryVersion) {
  for (const Served& served : served_in(GetParam())) {
    Conversion conversion(served.kind, served.version, served.release);
    const Schema* schema = builtin_schema(kGroup, served.version, served.kind, served.release);
    for (std::string_view model : {"v1", "v1alpha2"}) {
      if (!builtin_schema(kGroup, model, served.kind)) continue;
      for (unsigned seed = 0; seed < kRounds; ++seed) {
        Value stored = random_object(served, seed, model, 0);
        Value shown = conversion.show(stored);
        ASSERT_TRUE(same(normal(shown, *schema), shown)) << "is not in normal form";
        auto back = conversion.store(shown, &stored);
        ASSERT_TRUE(back.ok()) << back.error().message();
        ASSERT_TRUE(same(*back, stored))
            << served.kind << " " << served.version << " of " << model << " seed " << seed;
        if (!stored.contains("status")) continue;
        back = conversion.store(shown, &stored, true);
        ASSERT_TRUE(back.ok()) << back.error().message();
        ASSERT_TRUE(same((*back)["status"], stored["status"])) << served.version;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Releases, RoundTrip, ::testing::Values(0, 27, 30, 32, 34, 36, 37));

}  // namespace
}  // namespace dibs::api
