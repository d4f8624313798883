#pragma once
// The controller of a classic driver that gives out boxes, at each release whose ways differ.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "driver/controller.h"
#include "driver/test_boxes.h"

namespace dibs::driver {

class ControllerTest : public testing::TestWithParam<const char*> {
 public:
  test::ControllerWorld world{GetParam()};
  test::Boxes boxes;

  std::unique_ptr<Controller> start() {
    auto controller =
        Controller::start(boxes, world.environment(), {.driver_name = std::string(test::kDriver)});
    EXPECT_TRUE(controller.ok());
    world.settle();
    EXPECT_TRUE((*controller)->is_working());
    return std::move(controller).value();
  }
};

inline std::string name_of_release(const testing::TestParamInfo<const char*>& info) {
  const std::string name = info.param;
  return name.empty() ? "newest" : "as_" + name.substr(2);
}

}  // namespace dibs::driver
