// The vectors of the language's own conformance suite.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "base/strings.h"
#include "cel/environment.h"
#include "cel/libraries/extensions.h"
#include "cel/operations.h"
#include "cel/test_support.h"
#include "cel/testing/spec_libraries.h"
#include "json/parse.h"

namespace dibs::cel {
namespace {

/// Tests that need what this engine does not have, by file/section/name.
const std::set<std::string>& left_out() {
  static const std::set<std::string> names = {
      // The milliseconds of a duration are all of them here, as in Kubernetes.
      "timestamps/duration_converters/get_milliseconds",
      // Nor does Kubernetes take an address of version 4 that is mapped into version 6.
      "network_ext/ipv4/ipv4_equals_ipv6",
      "network_ext/ipv4/ipv4_not_equals_ipv6",
  };
  return names;
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

Value read_value(const json::Value& spec) {
  const std::string tag = spec["t"].str();
  const json::Value& v = spec["v"];
  if (tag == "bool") return Value::boolean(v.as_bool());
  if (tag == "int") return Value::integer(std::stoll(v.str()));
  if (tag == "uint") return Value::uinteger(std::stoull(v.str()));
  if (tag == "double") {
    const std::uint64_t bits = std::stoull(spec["bits"].str(), nullptr, 16);
    double number;
    std::memcpy(&number, &bits, sizeof number);
    return Value::real(number);
  }
  if (tag == "string") return Value::string(v.str());
  if (tag == "bytes") return Value::bytes(from_hex(spec["hex"].as_string()));
  if (tag == "type") return Value::type(v.str());
  if (tag == "timestamp")
    return Value::timestamp(std::stoll(spec["seconds"].str()),
                            static_cast<std::uint32_t>(spec["nanos"].as_int()));
  if (tag == "duration")
    return Value::duration(std::stoll(spec["seconds"].str()) * 1'000'000'000 +
                           spec["nanos"].as_int());
  if (tag == "list") {
    std::vector<Value> items;
    for (const json::Value& item : v.items()) items.push_back(read_value(item));
    return Value::list(std::move(items));
  }
  if (tag == "map") {
    MapBuilder builder;
    for (const json::Value& entry : v.items())
      builder.add(read_value(entry[0]), read_value(entry[1]));
    return builder.build();
  }
  return Value::null();
}

Type read_type(const json::Value& spec) {
  const std::string kind = spec["k"].str();
  if (kind == "list") return Type::list(read_type(spec["elem"]));
  if (kind == "map") return Type::map(read_type(spec["key"]), read_type(spec["value"]));
  if (kind == "type") return Type::of_type(spec.contains("of") ? read_type(spec["of"]) : Type());
  if (kind == "param") return {TypeKind::parameter, spec["name"].str()};
  if (kind == "abstract") {
    std::vector<Type> parameters;
    for (const json::Value& parameter : spec["params"].items())
      parameters.push_back(read_type(parameter));
    return {TypeKind::opaque, spec["name"].str(), std::move(parameters)};
  }
  return Type::parse(kind);
}

/// Equal as the suite wants it: kinds agree, NaN matches NaN.
bool same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::real:
      return std::memcmp(&a, &b, 8) == 0 ||
             (a.as_real() != a.as_real() && b.as_real() != b.as_real());
    case Kind::list: {
      if (a.as_list().size() != b.as_list().size()) return false;
      for (std::size_t i = 0; i < a.as_list().size(); ++i) {
        if (!same(a.as_list().at(i), b.as_list().at(i))) return false;
      }
      return true;
    }
    case Kind::map: {
      if (a.as_map().size() != b.as_map().size()) return false;
      for (std::size_t i = 0; i < a.as_map().size(); ++i) {
        Value other;
        if (!b.as_map().find(a.as_map().key_at(i), other) || !same(a.as_map().value_at(i), other))
          return false;
      }
      return true;
    }
    default:
      return equal(a, b).is_true();
  }
}

std::string show(const Value& value) {
  if (value.is(Kind::list)) {
    std::string out = "[";
    for (std::size_t i = 0; i < value.as_list().size(); ++i)
      append(out, i == 0 ? "" : ", ", show(value.as_list().at(i)));
    return out + "]";
  }
  return cat(value.type_name(), " ",
             value.is_error() ? std::string(value.text()) : show_key(value));
}

Environment suite_environment() {
  Environment made = Environment::standard();
  add_strings(made);
  add_math(made);
  add_encoders(made);
  add_optionals(made);
  add_bindings(made);
  add_two_variable_macros(made);
  add_network(made);
  made.options.parser.blocks = true;
  made.options.parser.quoted_fields = true;
  return made;
}

/// Empty when the test holds, else what is wrong.
std::string run(const json::Value& test) {
  Environment environment = suite_environment();
  environment.options.container = test["container"].str();
  environment.options.unchecked = test["disable_check"].as_bool();
  environment.options.parser.macros = !test["disable_macros"].as_bool();
  for (const json::Value& declared : test["type_env"].items()) {
    if (declared["kind"].as_string() == "ident") {
      environment.variable(declared["name"].str(), read_type(declared["type"]));
      continue;
    }
    for (const json::Value& spec : declared["overloads"].items()) {
      Overload overload;
      overload.receiver = spec["instance"].as_bool();
      for (const json::Value& parameter : spec["params"].items())
        overload.parameters.push_back(read_type(parameter));
      overload.result = read_type(spec["result"]);
      for (const Type& parameter : overload.parameters) overload.matches.emplace_back(parameter);
      environment.overload(declared["name"].as_string(), std::move(overload));
    }
  }
  for (const auto& [name, bound] : test["bindings"].members()) {
    if (environment.find_variable(std::string(name)) < 0)
      environment.variable(std::string(name), {});
  }
  std::vector<Value> variables(environment.variables());
  for (const auto& [name, bound] : test["bindings"].members()) {
    variables[static_cast<std::size_t>(environment.find_variable(std::string(name)))] =
        bound.contains("value") ? read_value(bound["value"]) : Value::error("given");
  }

  const json::Value& expect = test["expect"];
  const std::string kind = expect["kind"].str();
  const bool wants_error = kind == "error" || kind == "any_error";
  const std::string source = test["expr"].str();
  const Compilation compiled = environment.compile(source);
  if (compiled.program == nullptr) return wants_error ? "" : format_issues(source, compiled.issues);
  if (kind == "typed" && !(compiled.type == read_type(expect["type"])))
    return cat("type ", compiled.type.str(), ", wanted ", read_type(expect["type"]).str());
  if (test["check_only"].as_bool()) return "";
  const Evaluation made = compiled.program->evaluate(variables);
  if (wants_error) return made.value.is_error() ? "" : cat("no error but ", show(made.value));
  if (!expect.contains("value")) return "";
  if (same(made.value, read_value(expect["value"]))) return "";
  return cat("got ", show(made.value), ", wanted ", show(read_value(expect["value"])));
}

TEST(Conformance, language_suite) {
  const std::filesystem::path folder = conformance_folder();
  if (folder.empty()) GTEST_SKIP() << "no conformance data";
  std::map<std::string, std::string> counts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const auto parsed = json::parse(read_file(entry.path()));
    ASSERT_TRUE(parsed.ok()) << entry.path();
    const std::string name = entry.path().stem().string();
    int passed = 0;
    int total = 0;
    for (const json::Value& section : (*parsed)["sections"].items()) {
      for (const json::Value& test : section["tests"].items()) {
        if (test["needs_proto"].as_bool()) continue;
        const std::string id = cat(name, "/", section["name"].str(), "/", test["name"].str());
        if (left_out().contains(id)) continue;
        ++total;
        const std::string wrong = run(test);
        if (wrong.empty()) ++passed;
        EXPECT_EQ(wrong, "") << id << "\n" << test["expr"].str();
      }
    }
    if (total > 0) counts[name] = cat(passed, " of ", total);
  }
  for (const auto& [name, count] : counts) std::printf("%-16s %s\n", name.c_str(), count.c_str());
}

}  // namespace
}  // namespace dibs::cel
