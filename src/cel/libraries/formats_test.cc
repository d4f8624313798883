#include "cel/libraries/formats.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "cel/kubernetes.h"

namespace dibs::cel {
namespace {

const Environment& environment() {
  static const auto* const made = new Environment(kubernetes_environment());
  return *made;
}

/// The problems, one per line.
std::string problems(std::string_view format, std::string_view text) {
  const std::string source =
      cat("format.", format, "().validate(", quoted(text), ").orValue([]).join('\\n')");
  const Compilation made = environment().compile(source);
  if (made.program == nullptr) return format_issues(source, made.issues);
  return std::string(made.program->evaluate({}).value.text());
}

TEST(Formats, name_what_is_wrong) {
  const std::string label =
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
      "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
      "used "
      "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
  const std::string subdomain =
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
      "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
      "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
  const std::string old_label =
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
      "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
      "'abc-123', "
      "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
  const std::string key =
      "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
      "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
      "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
  const struct {
    std::string_view format;
    std::string text;
    std::string wanted;
  } cases[] = {
      {"dns1123Label", "my-name", ""},
      {"dns1123Label", "My-Name", label},
      {"dns1123Label", "a.b", "must not contain dots"},
      {"dns1123Label", "", label},
      {"dns1123Label", std::string(64, 'a'), "must be no more than 63 characters"},
      {"dns1123LabelPrefix", "my-", ""},
      {"dns1123Label", "my-", label},
      {"dns1123Subdomain", "a.example.com", ""},
      {"dns1123Subdomain", "a..b", subdomain},
      {"dns1123Subdomain", std::string(254, 'a'), "must be no more than 253 characters"},
      {"dns1123SubdomainPrefix", "a.b-", ""},
      {"dns1035Label", "a1", ""},
      {"dns1035Label", "1a", old_label},
      {"dns1035LabelPrefix", "a-", ""},
      {"qualifiedName", "example.com/MyName", ""},
      {"qualifiedName", "/a", "prefix part must be non-empty"},
      {"qualifiedName", "A.com/a", cat("prefix part ", subdomain)},
      {"qualifiedName", "a.com/", cat("name part must be non-empty\nname part ", key)},
      {"qualifiedName", "a/b/c",
       cat("a valid label key ", key,
           " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")},
      {"labelValue", "", ""},
      {"labelValue", "-a",
       "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
       "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
       "'my_value',  "
       "or '12345', regex used for validation is "
       "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
      {"uri", "http://example.com", ""},
      {"uri", "not a uri", "parse \"not a uri\": invalid URI for request"},
      {"uuid", "123E4567-e89b-12d3-a456-426614174000", ""},
      {"uuid", "123e4567", "does not match the UUID format"},
      {"byte", "aGVsbG8=", ""},
      {"byte", "aGVsbG8", "invalid base64"},
      {"byte", "", "invalid base64"},
      {"date", "2024-02-29", ""},
      {"date", "2023-02-29", "invalid date"},
      {"datetime", "2021-01-01T00:00:00Z", ""},
      {"datetime", "2021-01-01T00:00:00.25+01:00", ""},
      {"datetime", "2021-01-01T24:00:00Z", "invalid datetime"},
      {"datetime", "2021-01-01", "invalid datetime"},
  };
  for (const auto& test : cases)
    EXPECT_EQ(problems(test.format, test.text), test.wanted) << test.format << " " << test.text;
}

TEST(Formats, are_found_by_name_and_cost_by_pattern) {
  const struct {
    std::string_view expression;
    bool wanted;
    std::uint64_t cost;
  } cases[] = {
      {"format.named('uuid').hasValue()", true, 2},
      {"format.named('nope').hasValue()", false, 2},
      {"!format.uuid().validate('x').hasValue()", false, 1 + 1 * 18 + 1 + 1},
      {"format.uuid() == format.named('uuid').value()", true, 1 + 1 + 1 + 1},
      {"format.uuid() == format.byte()", false, 1 + 1 + 1},
      {"type(format.uuid()) == type(format.byte())", true, 1 + 1 + 1 + 1 + 1},
  };
  for (const auto& test : cases) {
    const Compilation made = environment().compile(test.expression);
    ASSERT_NE(made.program, nullptr) << format_issues(test.expression, made.issues);
    const Evaluation evaluated = made.program->evaluate({});
    EXPECT_EQ(evaluated.value.is_true(), test.wanted) << test.expression;
    EXPECT_EQ(evaluated.cost, test.cost) << test.expression;
  }
}

}  // namespace
}  // namespace dibs::cel
