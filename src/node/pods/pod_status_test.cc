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

}  // namespace
}  // namespace dibs::node
