#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/cron_times.h"
#include "controllers/test_cluster.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using test::TestCluster;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Time at(const std::string& text) { return *parse_rfc3339(text); }

/// Clocks are set to +01:00 at 2026-03-29T01:00Z, back at 2026-10-25T01:00Z.
class SomeZones : public cel::TimeZones {
 public:
  bool offset(std::string_view name, std::int64_t seconds, std::int64_t& offset) const override {
    if (name != "Europe/London") return false;
    const Time time = Time::from_seconds(seconds);
    const bool summer = at("2026-03-29T01:00:00Z") <= time && time < at("2026-10-25T01:00:00Z");
    offset = summer ? 3600 : 0;
    return true;
  }
};

Value cron_job(const std::string& spec, const std::string& status = "",
               const std::string& created = "2026-01-01T00:00:30Z") {
  return from_text(
      cat("{'metadata': {'name': 'c', 'namespace': 'a', 'uid': 'u', "
          "'creationTimestamp': '",
          created, "'}, 'spec': {", spec, "}, 'status': {", status, "}}"));
}

TEST(CronTimes, the_newest_run_that_is_due) {
  struct Case {
    const char* schedule;
    const char* more;    // of the spec
    const char* status;  //
    const char* now;
    const char* run;   // "" for none
    bool too_many;     //
    const char* next;  // from now on
  };
  const std::vector<Case> cases = {
      {"*/5 * * * *", "", "", "2026-01-01T00:04:59Z", "", false, "1.1s"},
      {"*/5 * * * *", "", "", "2026-01-01T00:05:00Z", "2026-01-01T00:05:00Z", false, "5m0.1s"},
      {"*/5 * * * *", "", "", "2026-01-01T00:17:00Z", "2026-01-01T00:15:00Z", false, "3m0.1s"},
      {"*/5 * * * *", "", "'lastScheduleTime': '2026-01-01T00:15:00Z'", "2026-01-01T00:17:00Z", "",
       false, "3m0.1s"},
      {"* * * * *", "", "", "2026-01-01T01:41:00Z", "2026-01-01T01:41:00Z", true, "1m0.1s"},
      {"* * * * *", ", 'startingDeadlineSeconds': 120", "", "2026-01-01T01:41:00Z",
       "2026-01-01T01:41:00Z", false, "1m0.1s"},
      {"0 0 31 * *", "", "", "2026-06-30T00:00:00Z", "2026-05-31T00:00:00Z", false, "744h0m0.1s"},
      {"0 0 30 2 *", "", "", "2026-06-30T00:00:00Z", "", false, ""},
      {"@every 90s", "", "", "2026-01-01T00:02:01Z", "2026-01-01T00:02:00Z", false, "1m29.1s"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(cat(c.schedule, " at ", c.now));
    const Value given = cron_job(cat("'schedule': '", c.schedule, "'", c.more), c.status);
    const auto schedule = api::parse_cron(c.schedule);
    const auto zone = CronZone::of(given, nullptr);

    const CronDue due = due_run(given, *schedule, *zone, at(c.now));
    const auto next = until_next_run(given, *schedule, *zone, at(c.now));

    EXPECT_EQ(due.run ? format_rfc3339(*due.run) : "", c.run);
    EXPECT_EQ(due.too_many, c.too_many);
    EXPECT_EQ(next ? format_duration(*next) : "", c.next);
  }
}

TEST(CronTimes, follow_the_clocks_of_the_zone) {
  struct Case {
    const char* schedule;
    const char* after;
    const char* due;
  };
  const std::vector<Case> cases = {
      {"0 9 * * *", "2026-03-28T09:00:00Z", "2026-03-29T08:00:00Z"},
      {"0 9 * * *", "2026-10-24T08:00:00Z", "2026-10-25T09:00:00Z"},
      // Half past one does not come that day.
      {"30 1 * * *", "2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"},
      // And twice on this one.
      {"30 1 * * *", "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"},
      {"30 1 * * *", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
      {"30 1 * * *", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
      {"0 0 1 1 *", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
  };
  const SomeZones zones;
  const auto zone = CronZone::of(cron_job("'timeZone': 'Europe/London'"), &zones);
  ASSERT_TRUE(zone.ok());
  for (const Case& c : cases) {
    const auto due = next_due(*api::parse_cron(c.schedule), *zone, at(c.after));
    EXPECT_EQ(due ? format_rfc3339(*due) : "", c.due) << c.schedule << " after " << c.after;
  }
  EXPECT_EQ(CronZone::of(cron_job("'timeZone': 'Mars/Base'"), &zones).error().message(),
            "unknown time zone Mars/Base");
}

TEST(CronTimes, the_job_of_a_run) {
  const SomeZones zones;
  const Value given = cron_job(
      "'timeZone': 'Europe/London', 'jobTemplate': {'metadata': {'labels': {'l': 'x'}, "
      "'annotations': {'n': 'y'}}, 'spec': {'parallelism': 2}}");

  const Value job = job_of_run(given, *CronZone::of(given, &zones), at("2026-06-01T08:00:00Z"));

  EXPECT_EQ(job["metadata"]["name"].str(), "c-29671680");
  EXPECT_EQ(job["metadata"]["labels"]["l"].str(), "x");
  EXPECT_EQ(job["metadata"]["annotations"]["n"].str(), "y");
  EXPECT_EQ(job["metadata"]["annotations"][kScheduledAnnotation].str(),
            "2026-06-01T09:00:00+01:00");
  EXPECT_EQ(job["metadata"]["ownerReferences"][0]["uid"].str(), "u");
  EXPECT_EQ(job["spec"]["parallelism"].as_int(), 2);
  EXPECT_EQ(format_rfc1123(at("2026-06-01T08:05:09Z")), "Mon, 01 Jun 2026 08:05:09 +0000");
}

struct CronJobsTest : testing::Test {
  TestCluster cluster;

  CronJobsTest() {
    cluster.add_namespace("a");
    // A little after a full minute.
    const Time now = cluster.sim.runtime().clock.now();
    cluster.settle(Time::from_seconds((now.seconds() / 60 + 1) * 60 + 1) - now);
  }

  void create(const std::string& more, const std::string& schedule = "* * * * *") {
    cluster.create(kCronJobResource, "a",
                   cat("{'metadata': {'name': 'c'}, 'spec': {'schedule': '", schedule,
                       "', 'jobTemplate': {'spec': {'template': {'spec': {'restartPolicy': "
                       "'Never', 'containers': [{'name': 'main', 'image': 'x'}]}}}}",
                       more.empty() ? "" : ", ", more, "}}"));
    cluster.settle();
  }
  Value found() { return cluster.get(kCronJobResource, "a", "c"); }
  std::vector<Value> jobs() { return cluster.list(kJobResource, "a"); }
  std::size_t active() { return found()["status"]["active"].size(); }
  void minutes(int count) { cluster.settle(std::chrono::minutes(count)); }
  void end_all(const std::string& phase) {
    for (const Value& pod : cluster.list(kPods, "a")) {
      if (is_pod_terminal(pod)) continue;
      cluster.patch(kPods, "a", std::string(name_of(pod)),
                    cat("{'status': {'phase': '", phase, "'}}"), "status");
    }
    cluster.settle(std::chrono::seconds(3));
  }
  /// "Type Reason: message" about the CronJob, without numbers of minutes.
  std::vector<std::string> events() {
    std::vector<std::string> out;
    for (const auto& event : cluster.list({"", "v1", "events"}, "a")) {
      if (event["involvedObject"]["kind"].as_string() != "CronJob") continue;
      EXPECT_EQ(event["source"]["component"].str(), "cronjob-controller");
      std::string message = event["message"].str();
      if (const auto dash = message.find("c-"); dash != std::string::npos) {
        const auto end = message.find_first_not_of("0123456789", dash + 2);
        message.replace(dash + 2, end == std::string::npos ? end : end - dash - 2, "N");
      }
      out.push_back(
          cat(event["type"].as_string(), " ", event["reason"].as_string(), ": ", message));
    }
    return out;
  }
};

TEST_F(CronJobsTest, start_a_job_when_it_is_time) {
  create("");
  EXPECT_THAT(jobs(), IsEmpty());

  minutes(1);

  ASSERT_THAT(jobs(), SizeIs(1));
  const Value job = jobs()[0];
  EXPECT_EQ(controller_of(job)["kind"].str(), "CronJob");
  const Value status = found()["status"];
  ASSERT_EQ(status["active"].size(), 1U);
  EXPECT_EQ(status["active"][0]["uid"], job["metadata"]["uid"]);
  EXPECT_EQ(status["active"][0]["kind"].str(), "Job");
  EXPECT_EQ(status["lastScheduleTime"].str(),
            job["metadata"]["annotations"][kScheduledAnnotation].str());
  EXPECT_EQ(name_of(job), job_name_of_run(found(), at(status["lastScheduleTime"].str())));
  EXPECT_THAT(events(), ElementsAre("Normal SuccessfulCreate: Created job c-N"));

  end_all("Succeeded");
  EXPECT_EQ(active(), 0U);
  EXPECT_EQ(found()["status"]["lastSuccessfulTime"], jobs()[0]["status"]["completionTime"]);
  EXPECT_THAT(events(), Contains("Normal SawCompletedJob: Saw completed job: c-N, condition: "
                                 "Complete"));
}

TEST_F(CronJobsTest, the_policy_says_what_becomes_of_runs_that_overlap) {
  struct Case {
    const char* policy;
    std::size_t active;
    const char* event;
  };
  for (const Case& c : std::vector<Case>{
           {"Allow", 3, "Normal SuccessfulCreate: Created job c-N"},
           {"Forbid", 1,
            "Normal JobAlreadyActive: Not starting job because prior execution is running and "
            "concurrency policy is Forbid"},
           {"Replace", 1, "Normal SuccessfulDelete: Deleted job c-N"}}) {
    SCOPED_TRACE(c.policy);
    create(cat("'concurrencyPolicy': '", c.policy, "'"));
    for (int i = 0; i < 3; ++i) minutes(1);

    EXPECT_EQ(active(), c.active);
    EXPECT_THAT(jobs(), SizeIs(c.active));
    EXPECT_THAT(events(), Contains(c.event));

    cluster.remove(kCronJobResource, "a", "c", "Background");
    cluster.settle(std::chrono::seconds(5));
  }
}

TEST_F(CronJobsTest, keep_so_many_that_have_ended) {
  create("'successfulJobsHistoryLimit': 2, 'failedJobsHistoryLimit': 0");
  for (int i = 0; i < 4; ++i) {
    minutes(1);
    end_all("Succeeded");
  }
  EXPECT_THAT(jobs(), SizeIs(2));
  EXPECT_THAT(events(), Contains("Normal SuccessfulDelete: Deleted job c-N"));
}

TEST_F(CronJobsTest, sleep_while_suspended_and_make_up_for_one_run) {
  create("'suspend': true");
  minutes(5);
  EXPECT_THAT(jobs(), IsEmpty());

  cluster.patch(kCronJobResource, "a", "c", "{'spec': {'suspend': false}}");
  cluster.settle();

  EXPECT_THAT(jobs(), SizeIs(1));
}

TEST_F(CronJobsTest, a_run_that_is_too_late_is_left_out) {
  create("'suspend': true, 'startingDeadlineSeconds': 20");
  minutes(1);
  cluster.settle(std::chrono::seconds(40));

  cluster.patch(kCronJobResource, "a", "c", "{'spec': {'suspend': false}}");
  cluster.settle();

  EXPECT_THAT(jobs(), IsEmpty());
}

TEST_F(CronJobsTest, jobs_of_others_and_jobs_that_went_are_told_of) {
  create("");
  minutes(1);
  cluster.remove(kJobResource, "a", std::string(name_of(jobs()[0])), "Background");
  cluster.settle();
  EXPECT_EQ(active(), 0U);
  EXPECT_THAT(events(), Contains("Normal MissingJob: Active job went missing: c-N"));

  Value by_hand = job_of_run(found(), *CronZone::of(found(), nullptr), Time{});
  by_hand.mut("metadata").set("name", "by-hand");
  cluster.create_object(kJobResource, "a", by_hand);
  cluster.settle();
  EXPECT_THAT(events(), Contains("Warning UnexpectedJob: Saw a job that the controller did not "
                                 "create or forgot: by-hand"));
}

}  // namespace
}  // namespace dibs::controllers
