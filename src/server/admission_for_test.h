#pragma once
// A whole server, whose admission plugins are asked by what is sent to it.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "server/test_support.h"

namespace dibs::server {

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest() { api.add_account("default"); }

  json::Value make_pod(const json::Value& pod) {
    test::Reply made = api.post(test::kPods, pod);
    EXPECT_EQ(made.status, 201) << made.text;
    return made.body;
  }
  void make(std::string target, std::string_view object) {
    test::Reply made = api.post(std::move(target), test::from_text(object));
    EXPECT_EQ(made.status, 201) << made.text;
  }

  test::TestServer api;
};

}  // namespace dibs::server
