#include "base/image_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs {
namespace {

using testing::HasSubstr;

struct NameCase {
  const char* given;
  const char* expected;
};

TEST(ImageReference, is_completed) {
  const std::string digest = "sha256:" + std::string(64, 'a');
  for (const auto& [given, expected] : std::vector<NameCase>{
           {"busybox", "docker.io/library/busybox:latest"},
           {"busybox:1.36", "docker.io/library/busybox:1.36"},
           {"team/app", "docker.io/team/app:latest"},
           {"docker.io/busybox", "docker.io/library/busybox:latest"},
           {"index.docker.io/busybox", "docker.io/library/busybox:latest"},
           {"localhost/x", "localhost/x:latest"},
           {"reg.example.com:5000/a/b__c:v1.0_x-y", "reg.example.com:5000/a/b__c:v1.0_x-y"},
           {"[::1]:5000/a", "[::1]:5000/a:latest"},
           {"a__b/c-d.e", "docker.io/a__b/c-d.e:latest"},
       }) {
    const auto reference = parse_image_reference(given);
    ASSERT_TRUE(reference.ok()) << given << ": " << reference.error().message();
    EXPECT_EQ(reference->text(), expected);
  }
  EXPECT_EQ(parse_image_reference("a@" + digest)->text(), "docker.io/library/a@" + digest);
  EXPECT_EQ(parse_image_reference("a:1@" + digest)->text(), "docker.io/library/a:1@" + digest);
  EXPECT_TRUE(parse_image_reference("a@sha512:" + std::string(128, 'A')).ok());
}

TEST(ImageReference, says_what_is_wrong) {
  for (const auto& [given, expected] : std::vector<NameCase>{
           {"Not A Name",
            "invalid reference format: repository name (library/Not A Name) must be lowercase"},
           {"", "invalid reference format"},
           {"a b", "invalid reference format"},
           {"a:", "invalid reference format"},
           {"a@sha256:12", "invalid reference format"},
           {"a//b", "invalid reference format"},
           {"a..b", "invalid reference format"},
           {"a._b", "invalid reference format"},
           {"-a", "invalid reference format"},
           {"reg:port/a", "invalid reference format"},
       }) {
    const auto reference = parse_image_reference(given);
    ASSERT_FALSE(reference.ok()) << given;
    EXPECT_EQ(reference.error().message(), expected);
  }
  EXPECT_THAT(parse_image_reference(std::string(64, 'a')).error().message(),
              HasSubstr("cannot specify 64-byte hexadecimal strings"));
}

}  // namespace
}  // namespace dibs
