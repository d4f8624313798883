#include "node/pods/certificate_state.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "json/test_text.h"

namespace dibs::node {
namespace {

using json::Value;
using json::test::from_text;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Phase = CertificateState::Phase;

constexpr const char* kPem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

Time start() { return *parse_rfc3339("2026-03-01T12:00:00Z"); }

/// Answered now, for an hour, to be renewed after 40 minutes.
Value issued() {
  Value request = from_text(R"({'metadata': {'name': 'req-1', 'namespace': 'ns'}, 'status': {
    'conditions': [{'type': 'Issued', 'status': 'True'}],
    'beginRefreshAt': '2026-03-01T12:40:00Z', 'notAfter': '2026-03-01T13:00:00Z'}})");
  request.mut("status").set("certificateChain", cat("words\n", kPem));
  return request;
}

Value refused(const std::string& type) {
  return from_text(
      cat("{'metadata': {'name': 'req-1', 'namespace': 'ns'}, 'status': {'conditions': "
          "[{'type': '",
          type, "', 'status': 'True', 'reason': 'No', 'message': 'not you'}]}}"));
}

CertificateState fresh() {
  CertificateState state;
  note_requested(state, "req-1", "KEY\n");
  note_answer(state, issued(), minutes(1));
  return state;
}

std::vector<std::string> reasons(std::vector<CertificateNote> notes) {
  std::vector<std::string> out;
  for (auto& note : notes) out.push_back(std::move(note.reason));
  return out;
}

TEST(CertificateState, waits_for_the_answer_to_its_request) {
  CertificateState state;
  EXPECT_TRUE(state.wants_request(start()));
  EXPECT_EQ(state.get().error().message(), "credential bundle is not issued yet");

  note_requested(state, "req-1", "KEY\n");
  EXPECT_FALSE(state.wants_request(start()));
  EXPECT_FALSE(note_answer(state, from_text("{'status': {}}"), {}));
  EXPECT_EQ(state.phase, Phase::waiting);
  EXPECT_EQ(state.get().error().message(), "credential bundle is not issued yet");

  EXPECT_FALSE(note_answer(state, issued(), {}));
  EXPECT_EQ(state.phase, Phase::fresh);
  EXPECT_EQ(state.get()->key, "KEY\n");
  EXPECT_EQ(state.get()->chain, kPem);
}

TEST(CertificateState, is_renewed_in_time_and_gives_out_the_old_one_until_then) {
  CertificateState state = fresh();
  EXPECT_EQ(state.next_look(), start() + minutes(41));
  EXPECT_FALSE(state.wants_request(start() + minutes(40)));
  EXPECT_TRUE(state.wants_request(start() + minutes(41)));

  note_requested(state, "req-2", "NEXT\n");
  EXPECT_EQ(state.phase, Phase::refreshing);
  EXPECT_EQ(state.get()->key, "KEY\n");

  note_answer(state, issued(), {});
  EXPECT_EQ(state.phase, Phase::fresh);
  EXPECT_EQ(state.get()->key, "NEXT\n");
}

TEST(CertificateState, tells_of_a_refusal_once_and_stays_refused) {
  CertificateState state;
  note_requested(state, "req-1", "KEY\n");
  const auto note = note_answer(state, refused("Denied"), {});

  ASSERT_TRUE(note);
  EXPECT_EQ(note->reason, "Denied");
  EXPECT_EQ(note->text,
            "PodCertificateRequest ns/req-1 was denied, reason=\"No\", message=\"not you\"");
  EXPECT_EQ(state.get().error().message(),
            "PodCertificateRequest was permanently denied: reason=\"No\" message=\"not you\"");
  EXPECT_FALSE(note_answer(state, refused("Denied"), {}));
  EXPECT_FALSE(state.wants_request(start() + minutes(60)));

  state = fresh();
  note_requested(state, "req-2", "NEXT\n");
  EXPECT_EQ(note_answer(state, refused("Failed"), {})->text,
            "PodCertificateRequest ns/req-1 failed, reason=\"No\", message=\"not you\"");
  EXPECT_EQ(state.get().error().message(),
            "PodCertificateRequest was permanently failed: reason=\"No\" message=\"not you\"");
  EXPECT_FALSE(state.next_look());
}

TEST(CertificateState, asks_again_a_while_after_its_request_was_lost) {
  CertificateState state;
  note_requested(state, "req-1", "KEY\n");
  note_lost(state, start());
  EXPECT_EQ(state.phase, Phase::initial);
  EXPECT_FALSE(state.wants_request(start()));
  EXPECT_EQ(state.next_look(), start() + seconds(30));
  EXPECT_TRUE(state.wants_request(start() + seconds(30)));

  state = fresh();
  note_requested(state, "req-2", "NEXT\n");
  note_lost(state, start() + minutes(45));
  EXPECT_EQ(state.phase, Phase::fresh);
  EXPECT_EQ(state.get()->key, "KEY\n");
  EXPECT_EQ(state.next_look(), start() + minutes(45) + seconds(30));
}

TEST(CertificateState, is_tried_at_once_where_there_is_none_yet) {
  CertificateState state;
  note_failure(state, start());
  EXPECT_TRUE(state.wants_request(start()));

  state = fresh();
  note_failure(state, start() + minutes(42));
  EXPECT_FALSE(state.wants_request(start() + minutes(42)));
  EXPECT_EQ(state.next_look(), start() + minutes(42) + seconds(30));
}

TEST(CertificateState, is_named_as_the_kubelet_names_it) {
  CertificateState state;
  EXPECT_EQ(state.word(start()), "not_yet_issued");
  note_requested(state, "req-1", "KEY\n");
  EXPECT_EQ(state.word(start()), "not_yet_issued");
  note_answer(state, refused("Denied"), {});
  EXPECT_EQ(state.word(start()), "denied");
  state = fresh();
  EXPECT_EQ(state.word(start()), "fresh");
  EXPECT_EQ(state.word(start() + minutes(52)), "overdue_for_refresh");
  EXPECT_EQ(state.word(start() + minutes(61)), "expired");
}

TEST(CertificateState, tells_what_is_too_old_once) {
  CertificateState state = fresh();
  note_requested(state, "req-2", "NEXT\n");
  EXPECT_EQ(state.next_look(), start() + minutes(51) + seconds(1));
  EXPECT_THAT(reasons(note_age(state, start() + minutes(51))), IsEmpty());
  EXPECT_THAT(reasons(note_age(state, *state.next_look())),
              ElementsAre("CertificateOverdueForRefresh"));
  EXPECT_EQ(state.next_look(), start() + minutes(60) + seconds(1));
  EXPECT_THAT(reasons(note_age(state, *state.next_look())), ElementsAre("CertificateExpired"));
  EXPECT_FALSE(state.next_look());
  EXPECT_THAT(reasons(note_age(state, start() + minutes(90))), IsEmpty());
  EXPECT_EQ(state.get()->key, "KEY\n");
}

}  // namespace
}  // namespace dibs::node
