// Images from registries, by skopeo.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/image_reference.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/runtime/image_record.h"
#include "runtime/files.h"

namespace dibs::node {
namespace {

using json::Value;

/// Text as logs quote it.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '\\' && i + 1 < text.size();
    if (escaped) ++i;
    out.push_back(escaped && (text[i] == 'n' || text[i] == 't') ? ' ' : text[i]);
  }
  return out;
}

/// Nobody was there to ask; anything else is an answer.
bool nobody_answered(std::string_view cause) {
  for (const std::string_view sign : {"dial tcp", "proxyconnect tcp", "TLS handshake timeout",
                                      "i/o timeout", "no such host", "connection refused"}) {
    if (cause.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

/// Whose turn it is to pull an image. The file is there while somebody pulls; who did the work
/// writes the outcome into it and takes its name away, so whoever waited for it finds the outcome
/// in what he holds, and whoever comes later makes a new one.
class PullTurn {
 public:
  static Result<PullTurn> wait(const std::string& path) {
    while (true) {
      DIBS_TRY(runtime::Fd fd, wait_for_lock(path));
      PullTurn turn(path, std::move(fd));
      struct stat held = {};
      struct stat named = {};
      const bool is_named = ::fstat(turn.fd_.get(), &held) == 0 &&
                            ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino;
      // Without a name and without an outcome: who had it could not write.
      if (is_named || held.st_size > 0) return turn;
    }
  }

  /// Of who had the turn before; null: it is ours.
  Value outcome() const {
    std::string text(1 << 16, '\0');
    const ssize_t got = ::pread(fd_.get(), text.data(), text.size(), 0);
    if (got <= 0) return {};
    auto value = json::parse(std::string_view(text).substr(0, static_cast<std::size_t>(got)));
    return value.ok() ? std::move(value).value() : Value();
  }

  void end(const Value& outcome) {
    const std::string text = json::write(outcome);
    const ssize_t put = ::pwrite(fd_.get(), text.data(), text.size(), 0);
    if (put != static_cast<ssize_t>(text.size())) (void)::ftruncate(fd_.get(), 0);
    ::unlink(path_.c_str());
  }

 private:
  PullTurn(std::string path, runtime::Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  runtime::Fd fd_;
};

}  // namespace

Result<StoredImage> ImageStore::fetch(const std::string& name, const std::string& place,
                                      const PullLogin& login) {
  DIBS_TRY(const ImageReference reference, parse_image_reference(name));
  const std::string full = reference.text();
  // What stands before "failed to do request" is how other runtimes say it.
  const auto failure = [&](std::string_view cause, bool unreachable) {
    const std::string message = cat("failed to pull and unpack image ", dibs::quoted(full),
                                    ": failed to resolve image: failed to do request: ", cause);
    if (!unreachable) return Error::invalid(message);
    return Error::unavailable(
        cat(message, "; without a registry, import it: dibs image import FILE ", name));
  };
  if (runtime::find_program("skopeo").empty()) return failure("skopeo is not installed", true);
  const TemporaryFolder target(place);
  // A tag beside a digest says nothing more, and skopeo refuses both.
  const std::string source =
      reference.digest.empty() ? full : cat(reference.repository, "@", reference.digest);
  const std::string registry = reference.repository.substr(0, reference.repository.find('/'));
  const auto& insecure = options_.insecure_registries;
  const bool plain = std::find(insecure.begin(), insecure.end(), registry) != insecure.end();
  // Always a file of our own: logins of whoever runs this program are not those of every pod.
  const std::string logins = place + ".auth";
  Value auths = Value::object();
  if (!login.auth.empty()) auths.set(registry, Value::object({{"auth", login.auth}}));
  DIBS_CHECK(
      runtime::system_files().write(logins, json::write(Value::object({{"auths", auths}})), 0600));
  auto copied = runtime::run(
      {.argv = {"skopeo", "--insecure-policy", "--command-timeout", "10m", "copy", "--quiet",
                "--src-authfile", logins, cat("--src-tls-verify=", plain ? "false" : "true"),
                "docker://" + source, cat("oci:", target.path(), ":pulled")}});
  (void)runtime::system_files().remove(logins).ok();
  if (!copied.ok()) return failure(copied.error().message(), false);
  if (copied->status.code != 0) {
    std::string_view cause = trim(copied->err);
    if (const auto at = cause.find("msg=\""); at != std::string_view::npos) {
      cause.remove_prefix(at + 5);
      if (cause.ends_with('"')) cause.remove_suffix(1);
    }
    return failure(unescape(cause), nobody_answered(cause));
  }
  DIBS_TRY(auto images,
           import(target.path(), full,
                  {ImageOrigin::registry, login.auth.empty() ? "" : digest_of(login.auth)}));
  return std::move(images.front());
}

Result<StoredImage> ImageStore::pull(const std::string& name, const PullLogin& login) {
  DIBS_TRY(const ImageReference reference, parse_image_reference(name));
  DIBS_CHECK(make_private_folder(folder_ + "/pulls"));
  // Nobody takes the outcome of another's login for his own.
  const std::string place =
      cat(folder_, "/pulls/", digest_of(cat(reference.text(), '\n', login.auth)).substr(7, 32));
  DIBS_TRY(PullTurn turn, PullTurn::wait(place + ".lock"));
  if (const Value before = turn.outcome(); !before.is_null()) {
    if (before.contains("error")) {
      const std::string message = before["error"].str();
      return before["unreachable"].as_bool() ? Error::unavailable(message)
                                             : Error::invalid(message);
    }
    DIBS_TRY(auto found, find(before["id"].str()));
    if (!found) return Error::conflict(cat("image ", dibs::quoted(name), " was removed again"));
    found->name = reference.text();
    return std::move(*found);
  }
  auto fetched = fetch(name, place, login);
  turn.end(fetched.ok()
               ? Value::object({{"id", fetched->info.id}})
               : Value::object({{"error", fetched.error().message()},
                                {"unreachable", fetched.error().code() == Code::unavailable}}));
  return fetched;
}

}  // namespace dibs::node
