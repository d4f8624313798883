#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "drivers/nvidia/fake/testing/fake_machine.h"
#include "drivers/nvidia/nvml/library.h"

namespace dibs::drivers::nvidia::nvml {
namespace {

using fake::FakeMachine;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

template <typename T>
T must(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.error().message();
  return result.ok() ? std::move(*result) : T();
}

struct Watch {
  explicit Watch(std::string_view name, std::string_view faults = "") : machine(name) {
    machine.faults(faults);
    library = must(Library::open(FakeMachine::library()));
    uuids = must(library->gpu_uuids());
    events = must(library->watch(uuids));
  }

  FakeMachine machine;
  std::unique_ptr<Library> library;
  std::vector<std::string> uuids;
  std::unique_ptr<EventSet> events;
};

TEST(Events, say_nothing_where_nothing_happens) {
  const Watch watch("l4");
  EXPECT_EQ(must(watch.events->wait(1ms)), std::nullopt);
  EXPECT_THAT(watch.events->unwatched(), IsEmpty());
}

TEST(Events, tell_an_xid_with_the_instance_it_struck) {
  const Watch watch("dgx-h100");
  watch.machine.faults("events: [{gpu: 2, xid: 31, gpuInstance: 9, computeInstance: 0}]");

  const auto event = must(watch.events->wait(10s));

  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, EventKind::xid);
  EXPECT_EQ(event->data, 31U);
  EXPECT_EQ(event->gpu_uuid, watch.uuids[2]);
  EXPECT_EQ(event->gpu_instance, 9U);
  EXPECT_EQ(event->compute_instance, 0U);
}

TEST(Events, tell_errors_of_memory_that_strike_the_whole_gpu) {
  const Watch watch("l4");
  watch.machine.faults("events: [{gpu: 1, doubleBitEcc: true}, {gpu: 1, singleBitEcc: true}]");

  const auto first = must(watch.events->wait(10s));
  const auto second = must(watch.events->wait(10s));

  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->kind, EventKind::ecc_double);
  EXPECT_EQ(first->gpu_instance, std::nullopt);
  EXPECT_EQ(second->kind, EventKind::ecc_single);
}

TEST(Events, tell_each_once) {
  const Watch watch("l4");
  watch.machine.faults("events: [{gpu: 0, xid: 48}]");
  ASSERT_TRUE(must(watch.events->wait(10s)).has_value());

  EXPECT_EQ(must(watch.events->wait(1ms)), std::nullopt);
  watch.machine.faults("events: [{gpu: 0, xid: 48}, {gpu: 0, xid: 48, id: again}]");
  EXPECT_TRUE(must(watch.events->wait(10s)).has_value());
  EXPECT_EQ(must(watch.events->wait(1ms)), std::nullopt);
}

TEST(Events, do_not_tell_what_was_before) {
  const Watch watch("l4", "events: [{gpu: 0, xid: 48}]");
  EXPECT_EQ(must(watch.events->wait(1ms)), std::nullopt);
}

TEST(Events, wake_who_waits) {
  const Watch watch("l4");
  std::thread other([&] { watch.machine.faults("events: [{gpu: 0, xid: 79}]"); });

  const auto event = must(watch.events->wait(60s));
  other.join();

  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->data, 79U);
}

TEST(Events, tell_the_xid_of_a_gpu_before_its_loss) {
  const Watch watch("l4");
  watch.machine.faults("gpus: [{gpu: 0, lost: true}]\nevents: [{gpu: 0, xid: 79}]");

  const auto event = must(watch.events->wait(10s));
  const auto lost = watch.events->wait(10s);

  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->gpu_uuid, watch.uuids[0]);
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(code_of(lost.error()), Code::gpu_is_lost);
}

TEST(Events, name_the_gpus_that_are_not_watched) {
  const Watch watch("l4", "gpus: [{gpu: 0, lost: true}]");
  ASSERT_THAT(watch.uuids, SizeIs(1));

  const auto set = must(watch.library->watch({"GPU-none", watch.uuids[0]}));

  ASSERT_THAT(set->unwatched(), SizeIs(1));
  EXPECT_EQ(set->unwatched()[0].first, "GPU-none");
}

TEST(Events, outlive_the_library) {
  Watch watch("l4");
  watch.library = nullptr;
  watch.machine.faults("events: [{gpu: 0, xid: 13}]");

  EXPECT_TRUE(must(watch.events->wait(10s)).has_value());
}

}  // namespace
}  // namespace dibs::drivers::nvidia::nvml
