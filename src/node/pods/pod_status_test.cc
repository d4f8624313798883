#include "node/pods/pod_status.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "json/test_text.h"
#include "node/pods/pod_images.h"

namespace dibs::node {
namespace {

using json::test::from_text;

TEST(StatusPatch, says_only_what_is_new) {
  const json::Value pod = from_text("{'metadata': {'uid': 'u'}}");
  const json::Value before = from_text(
      "{'phase': 'Pending', 'message': 'm', 'podIPs': [{'ip': '10.0.0.1'}],"
      "'conditions': [{'type': 'Ready', 'status': 'False'}, {'type': 'Initialized', 'status': "
      "'True'}, {'type': 'x/y', 'status': 'True'}]}");
  const json::Value after = from_text(
      "{'phase': 'Running', 'podIPs': [{'ip': '10.0.0.2'}],"
      "'conditions': [{'type': 'Ready', 'status': 'True'}, {'type': 'Initialized', 'status': "
      "'True'}, {'type': 'x/y', 'status': 'False'}]}");

  EXPECT_EQ(status_patch(pod, before, after),
            from_text("{'metadata': {'uid': 'u'}, 'status': {'phase': 'Running', 'message': null,"
                      "'conditions': [{'type': 'Ready', 'status': 'True'}],"
                      "'podIPs': [{'ip': '10.0.0.2'}, {'$patch': 'delete', 'ip': '10.0.0.1'}]}}"));
  EXPECT_TRUE(status_patch(pod, after, after).is_null());
}

TEST(ImageNames, are_judged_as_everywhere) {
  for (const char* good :
       {"busybox", "busybox:1.36", "docker.io/library/busybox:1.36", "a/b/c", "localhost:5000/x:y",
        "registry.example.com:443/team/app@sha256:"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "a__b/c-d.e"}) {
    EXPECT_EQ(image_name_fault(good), "") << good;
  }
  EXPECT_EQ(image_name_fault("Not A Name"),
            "invalid reference format: repository name (library/Not A Name) must be lowercase");
  EXPECT_EQ(image_name_fault("a b"), "invalid reference format");
  EXPECT_EQ(image_name_fault("x:"), "invalid reference format");
  EXPECT_EQ(image_name_fault("a..b"), "invalid reference format");
}

}  // namespace
}  // namespace dibs::node
