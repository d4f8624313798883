// Any bytes as an expression in the environment of a release, which the first byte chooses: what is
// refused has an issue within the text, what is accepted has a program, and both parsers agree.
#include <map>
#include <string>

#include "base/release.h"
#include "cel/kubernetes.h"
#include "cel/libraries/extensions.h"
#include "cel/operations.h"
#include "cel/parse/lexer.h"
#include "cel/parse/syntax_errors.h"
#include "fuzz/targets.h"

namespace dibs::fuzz {

namespace {

constexpr int kOldest = 26;

const cel::Environment& environment(int minor) {
  static auto* const made = new std::map<int, cel::Environment>;
  const auto found = made->find(minor);
  if (found != made->end()) return found->second;
  cel::Environment fresh = cel::kubernetes_environment(minor);
  cel::add_bindings(fresh);
  fresh.variable("a", {});
  fresh.variable("m", cel::Type::parse("map(string, list(int))"));
  fresh.object("kubernetes.Thing", {{"name", cel::TypeKind::string}});
  fresh.variable("o", {cel::TypeKind::object, "kubernetes.Thing"});
  return made->emplace(minor, std::move(fresh)).first->second;
}

std::optional<std::uint64_t> bound(const cel::ValuePath& path) {
  return path.size() > 1 ? std::optional<std::uint64_t>(path.size() * 10) : std::nullopt;
}

}  // namespace

int fuzz_cel_compile(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const int minor = kOldest + data[0] % (kNewestRelease - kOldest + 1);
  const std::string source(reinterpret_cast<const char*>(data + 1), size - 1);
  const cel::Compilation made = environment(minor).compile(source, bound);
  require((made.program == nullptr) == !made.issues.empty(), "there is a program or an issue");
  std::vector<cel::Issue> issues;
  const std::vector<cel::Token> tokens = cel::tokenize(source, issues);
  cel::report_syntax_errors(source, tokens, issues);
  require(made.program == nullptr || issues.empty(), "what compiles has no syntax error");
  const std::size_t length = cel::code_points(source);
  for (const cel::Issue& issue : made.issues) {
    require(!issue.message.empty(), "an issue has a message");
    require(issue.position == cel::kNoPosition || issue.position <= length,
            "an issue is within the text");
  }
  require(cel::format_issues(source, made.issues).empty() == made.issues.empty(),
          "issues can be shown");
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_cel_compile)
