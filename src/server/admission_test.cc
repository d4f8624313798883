// The chain of admission plugins, and the steps of a write around it.
#include "server/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "runtime/sim_runtime.h"
#include "server/builtin_resources.h"
#include "server/objects.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::config_map;
using testing::ElementsAre;

/// Notes what it is asked and how what it took ends, and refuses when told so.
class Recorder : public AdmissionPlugin {
 public:
  Recorder(std::string name, std::vector<std::string>& log, bool refuses = false)
      : name_(std::move(name)), log_(log), refuses_(refuses) {}
  std::string_view name() const override { return name_; }
  Result<> mutate(Write&) override {
    log_.push_back(cat("mutate ", name_));
    return success();
  }
  Result<TicketPtr> allocate(Write&) override {
    log_.push_back(cat("allocate ", name_));
    return std::make_unique<Noted>(*this);
  }
  Result<> validate(const Write&) override {
    log_.push_back(cat("validate ", name_));
    if (refuses_) return Error::forbidden("no");
    return success();
  }

 private:
  struct Noted : Ticket {
    explicit Noted(Recorder& owner) : owner_(owner) {}
    ~Noted() override { owner_.log_.push_back(cat("end ", owner_.name_)); }
    Recorder& owner_;
  };

  std::string name_;
  std::vector<std::string>& log_;
  bool refuses_;
};

TEST(AdmissionChain, asks_in_order_until_one_refuses) {
  std::vector<std::string> log;
  AdmissionChain chain;
  chain.add(std::make_unique<Recorder>("a", log));
  chain.add(std::make_unique<Recorder>("b", log, true));
  chain.add(std::make_unique<Recorder>("c", log));
  Context context;
  Resource resource;
  Write write(context, resource, Verb::create);

  EXPECT_TRUE(chain.mutate(write).ok());
  EXPECT_THAT(log, ElementsAre("mutate a", "mutate b", "mutate c"));
  log.clear();
  EXPECT_FALSE(chain.validate(write).ok());
  EXPECT_THAT(log, ElementsAre("validate a", "validate b"));
}

/// The steps of writes, as a plugin sees them.
class Steps : public testing::Test {
 protected:
  Steps() {
    auto builtin = builtin_resources(Options{});
    EXPECT_TRUE(builtin.ok());
    context_.resources = make_resource_set(*builtin, {}, 1);
    context_.resource = context_.resources->find("", "v1", "configmaps");
    context_.info.name_space = "default";
    context_.info.name = "a";
  }

  void add_plugin(bool refuses = false) {
    admission_.add(std::make_unique<Recorder>("p", log_, refuses));
  }

  Write write(Verb verb) {
    Write out(context_, *context_.resource, verb);
    out.make = [](const Value* existing) -> Result<Wanted> {
      Value object = existing ? *existing : config_map("a");
      object.mut("data").set("changed", existing ? "again" : "once");
      return Wanted{std::move(object)};
    };
    return out;
  }

  std::vector<std::string> log_;
  runtime::SimRuntime sim_;
  std::unique_ptr<store::Store> store_ = store::make_memory_store();
  AdmissionChain admission_;
  Objects objects_{sim_.runtime(), *store_, admission_};
  Context context_;
};

TEST_F(Steps, end_what_was_taken_once_whatever_is_written) {
  add_plugin();

  for (Verb verb : {Verb::create, Verb::put, Verb::remove}) {
    log_.clear();
    Write one = write(verb);
    EXPECT_TRUE(objects_.run(one).ok());
    EXPECT_EQ(std::count(log_.begin(), log_.end(), "allocate p"), 1);
    EXPECT_EQ(std::count(log_.begin(), log_.end(), "end p"), 1);
    EXPECT_EQ(log_.back(), "end p");
  }
}

TEST_F(Steps, end_what_was_taken_when_the_write_is_refused) {
  add_plugin(true);
  Write one = write(Verb::create);

  EXPECT_FALSE(objects_.run(one).ok());

  EXPECT_THAT(log_, ElementsAre("mutate p", "allocate p", "validate p", "end p"));
}

TEST_F(Steps, hold_what_was_taken_until_the_store_has_answered) {
  add_plugin();
  Write one = write(Verb::create);

  ASSERT_TRUE(objects_.prepare(one).ok());
  ASSERT_TRUE(one.op);
  EXPECT_EQ(log_.back(), "validate p");
  auto over = objects_.settle(one, store_->commit({*one.op}));

  EXPECT_TRUE(over.ok() && *over);
  EXPECT_EQ(log_.back(), "end p");
  EXPECT_EQ(one.written()["metadata"]["resourceVersion"].str(), cat(store_->revision()));
}

TEST_F(Steps, begin_again_after_a_lost_race) {
  Write first = write(Verb::create);
  ASSERT_TRUE(objects_.run(first).ok());
  add_plugin();
  Write one = write(Verb::patch);
  ASSERT_TRUE(objects_.prepare(one).ok());
  Write other = write(Verb::remove);
  ASSERT_TRUE(objects_.run(other).ok());
  log_.clear();

  auto over = objects_.settle(one, store_->commit({*one.op}));

  ASSERT_TRUE(over.ok());
  EXPECT_FALSE(*over);
  EXPECT_THAT(log_, ElementsAre("end p"));
  EXPECT_EQ(objects_.prepare(one).error().code(), Code::not_found);
}

TEST_F(Steps, take_nothing_from_a_dry_run) {
  add_plugin();
  context_.dry_run = true;
  Write one = write(Verb::create);

  EXPECT_TRUE(objects_.run(one).ok());

  EXPECT_EQ(log_.back(), "end p");
  EXPECT_EQ(store_->revision(), 0U);
}

}  // namespace
}  // namespace dibs::server
