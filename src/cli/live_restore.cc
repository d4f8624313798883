#include "cli/live_restore.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/strings.h"
#include "cli/place.h"
#include "client/client.h"
#include "json/parse.h"
#include "net/gzip.h"
#include "server/backup.h"
#include "server/stored.h"

namespace dibs::cli {
namespace {

constexpr std::size_t kMostOfError = 64 * 1024;
/// Others' writes wait, but one that was on its way may come in after the first reading.
constexpr int kPasses = 10;
/// A server that is restarted, or an etcd that chooses a leader, is waited for.
constexpr int kTries = 60;
constexpr auto kTryEvery = std::chrono::seconds(1);

constexpr std::string_view kNodes = "/registry/minions/";

bool comes_first(std::string_view key) {
  return key.starts_with("/registry/apiextensions.k8s.io/customresourcedefinitions/") ||
         key.starts_with("/registry/namespaces/");
}

/// Of this very server, and not of the cluster that was backed up.
bool is_servers_own(std::string_view key) {
  return server::is_left_alone(key) || key == "/registry/services/endpoints/default/kubernetes" ||
         key == "/registry/endpointslices/default/kubernetes";
}

/// One answer as it comes: to `take` line by line, or into an error.
class Answer {
 public:
  explicit Answer(const std::function<Result<>(server::BackupEntry&)>& take) : take_(take) {}

  void opened(int status) { status_ = status; }
  void data(std::string_view bytes) {
    if (failed_) return;
    if (status_ != 200) {
      if (text_.size() < kMostOfError) text_ += bytes;
      return;
    }
    lines_.add(bytes);
    if (auto taken = take_lines(); !taken.ok()) failed_ = taken.error();
  }
  Result<> end(const Result<>& outcome) {
    if (failed_) return *failed_;
    if (status_ != 0 && status_ != 200) {
      const auto body = json::parse(text_);
      if (body.ok() && body->is_object()) return client::status_error(*body, status_);
      return Error::unavailable(cat("the server answers ", status_, ": is it a dibs server?"));
    }
    DIBS_CHECK(outcome);
    auto whole = reader_.end();
    if (!whole.ok()) return whole.error().within("the server's answer");
    return success();
  }

 private:
  Result<> take_lines() {
    while (true) {
      DIBS_TRY(const auto line, lines_.take());
      if (!line) return success();
      auto entry = reader_.line(*line);
      if (!entry.ok()) return entry.error().within("the server's answer");
      DIBS_CHECK(take_(*entry));
    }
  }

  const std::function<Result<>(server::BackupEntry&)>& take_;
  int status_ = 0;
  std::string text_;
  LineBuffer lines_;
  server::BackupReader reader_;
  std::optional<Error> failed_;
};

}  // namespace

Result<> read_server(client::Transport& transport,
                     const std::function<Result<>(server::BackupEntry&)>& take) {
  Answer answer(take);
  Mutex mutex;
  CondVar ended;
  std::optional<Result<>> outcome;
  client::StreamHandlers handlers;
  handlers.opened = [&](const net::Response& head) { answer.opened(head.status); };
  handlers.data = [&](std::string_view bytes) { answer.data(bytes); };
  handlers.ended = [&](const Result<>& how) {
    const MutexLock lock(mutex);
    outcome = how;
    ended.notify_all();
  };
  const auto stream = transport.open_stream(
      client::make_request("GET", std::string(server::kBackupPath)), std::move(handlers));
  MutexLock lock(mutex);
  ended.wait(lock, [&] { return outcome.has_value(); });
  return answer.end(*outcome);
}

Result<json::Value> LiveRestore::post(const std::string& query, std::string body) {
  for (int tries = 1;; ++tries) {
    auto request =
        client::make_request("POST", cat(server::kRestorePath, "?id=", id_, "&step=", query));
    request.body = body;
    request.headers.add("Content-Type", "application/x-ndjson");
    request.headers.add("Content-Encoding", "gzip");
    auto response = transport_.send(std::move(request));
    auto answer = response.ok() ? client::read_answer(*response)
                                : Result<json::Value>(std::move(response).error());
    if (answer.ok()) return answer;
    const Code code = answer.error().code();
    const bool passes = code == Code::unavailable || code == Code::timeout ||
                        code == Code::too_many_requests || code == Code::server_timeout;
    if (!passes || tries == kTries) return answer;
    std::this_thread::sleep_for(kTryEvery);
  }
}

Result<store::Revision> LiveRestore::begin() {
  DIBS_TRY(const auto answer, post("begin&overwrite=true", net::gzip("")));
  began_at_ = answer["revision"].as_int();
  return began_at_;
}

Result<> LiveRestore::abandon() {
  DIBS_CHECK(begin());
  DIBS_CHECK(post("end", net::gzip("")));
  return success();
}

Result<store::FillCount> LiveRestore::run(
    const std::function<void(const store::FillProgress&)>& progress) {
  progress_ = progress;
  DIBS_CHECK(begin());
  store::FillCount count;
  for (int pass = 1;; ++pass) {
    DIBS_TRY(const Difference left, difference());
    if (left.size() == 0) break;
    if (pass > kPasses) {
      return Error::unavailable(
          cat(left.size(), " objects are written by others again and again: run it once more"));
    }
    count.written += left.first_puts.size() + left.puts.size();
    count.removed += left.removals.size() + left.last_removals.size();
    DIBS_CHECK(write(left));
  }
  DIBS_CHECK(post("end", net::gzip("")));
  return count;
}

Result<LiveRestore::Difference> LiveRestore::difference() {
  Difference out;
  unreadable_.clear();
  DIBS_CHECK(backup_.rewind());
  store::Item wanted;
  DIBS_TRY(bool has_wanted, backup_.next(wanted));
  const auto up_to = [&](const std::string* key) -> Result<> {
    while (has_wanted && (key == nullptr || wanted.key < *key)) {
      DIBS_CHECK(judge(&wanted, nullptr, out));
      DIBS_TRY(has_wanted, backup_.next(wanted));
    }
    return success();
  };
  DIBS_CHECK(read_server(transport_, [&](server::BackupEntry& entry) -> Result<> {
    const auto* is = std::get_if<store::Item>(&entry);
    if (is == nullptr) return success();
    DIBS_CHECK(up_to(&is->key));
    const bool both = has_wanted && wanted.key == is->key;
    DIBS_CHECK(judge(both ? &wanted : nullptr, is, out));
    if (both) {
      DIBS_TRY(has_wanted, backup_.next(wanted));
    }
    return success();
  }));
  DIBS_CHECK(up_to(nullptr));
  return out;
}

Result<> LiveRestore::judge(const store::Item* wanted, const store::Item* is, Difference& out) {
  const std::string& key = wanted != nullptr ? wanted->key : is->key;
  if (is_servers_own(key)) return success();
  if (wanted == nullptr) {
    (comes_first(key) ? out.last_removals : out.removals).push_back(key);
    return success();
  }
  if (is != nullptr && wanted->value == is->value) return success();
  auto object = server::read_object(key, wanted->value);
  if (!object.ok()) {
    unreadable_.push_back(key);
    return success();
  }
  Put put{key, backup_.place()};
  if (is != nullptr) {
    const auto now = json::parse(is->value);
    if (now.ok() && *now == *object) return success();
    // Another object under the name: whoever watches sees the one go and the other come.
    if (now.ok() && (*now)["metadata"]["uid"] != (*object)["metadata"]["uid"]) {
      out.removals.push_back(key);
    } else if (now.ok() && key.starts_with(kNodes)) {
      // What a node says of itself is newer than what it said then.
      json::Value merged = *object;
      merged.set("status", (*now)["status"]);
      if (merged == *now) return success();
      put.instead = server::encode_stored(merged);
    }
  }
  (comes_first(key) ? out.first_puts : out.puts).push_back(std::move(put));
  return success();
}

Result<> LiveRestore::write(const Difference& difference) {
  done_ = 0;
  all_ = difference.size();
  DIBS_CHECK(remove(difference.removals));
  DIBS_CHECK(put(difference.first_puts));
  DIBS_CHECK(put(difference.puts));
  return remove(difference.last_removals);
}

Result<> LiveRestore::remove(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) DIBS_CHECK(add_change(key, nullptr));
  return flush();
}

Result<> LiveRestore::put(const std::vector<Put>& puts) {
  for (const Put& one : puts) {
    DIBS_TRY(const store::Item item, backup_.at(one.place));
    if (item.key != one.key) return Error::unavailable("the backup was changed while it was read");
    DIBS_CHECK(add_change(one.key, one.instead.empty() ? &item.value : &one.instead));
  }
  return flush();
}

Result<> LiveRestore::add_change(const std::string& key, const std::string* value) {
  if (changes_ == store::kGroupOps ||
      (changes_ > 0 && value != nullptr && body_.size() + value->size() > store::kGroupBytes)) {
    DIBS_CHECK(flush());
  }
  body_ += "{\"key\":";
  json::write_string(body_, key);
  if (value == nullptr) {
    body_ += ",\"deleted\":true";
  } else {
    server::append_bytes_member(body_, *value);
  }
  body_ += "}\n";
  ++changes_;
  return success();
}

Result<> LiveRestore::flush() {
  if (changes_ == 0) return success();
  done_ += std::exchange(changes_, 0);
  DIBS_CHECK(post("change", net::gzip(std::exchange(body_, {}))));
  if (progress_) progress_({"changes", done_, all_});
  return success();
}

}  // namespace dibs::cli
