#include "node/pods/pod_images.h"

#include <algorithm>

#include "base/image_reference.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "node/pods/pod_spec.h"
#include "node/pods/pull_secrets.h"
#include "node/runtime/image_store.h"

namespace dibs::node {
namespace {

using json::Value;

// A problem that goes away only when somebody acts is looked at again after this.
constexpr Duration kLookAgain = std::chrono::seconds(5);

std::string seconds_text(Duration duration) {
  // Milliseconds, as a reader wants them.
  const auto rounded = std::chrono::duration_cast<std::chrono::milliseconds>(duration);
  return format_duration(rounded);
}

}  // namespace

ImageOutcome PodImages::problem(const Value& pod, const Value& container, const std::string& reason,
                                std::string message, Duration again) {
  events_.warning(pod, container["name"].as_string(), "Failed", cat("Error: ", reason));
  ImageOutcome out;
  out.problem = {reason, std::move(message)};
  out.again = again;
  return out;
}

ImageOutcome PodImages::ensure(const Value& pod, const Value& container) {
  const std::string image = container["image"].str();
  const std::string_view name = container["name"].as_string();
  if (const auto reference = parse_image_reference(image); !reference) {
    const std::string message =
        cat("Failed to apply default image tag ", quoted(image), ": couldn't parse image name ",
            quoted(image), ": ", reference.error().message());
    events_.warning(pod, name, "InspectFailed", message);
    return problem(pod, container, "InvalidImageName", message, kLookAgain);
  }
  const std::string_view policy = container["imagePullPolicy"].as_string("IfNotPresent");
  // What is here says nothing of what the registry has now.
  if (policy == "Always") return pull(pod, container);
  auto there = containers_.image_status(image);
  if (!there) {
    const std::string message =
        cat("Failed to inspect image ", quoted(image), ": ", there.error().message());
    events_.warning(pod, name, "InspectFailed", message);
    return problem(pod, container, "ImageInspectError", message, kLookAgain);
  }
  if (there->has_value() && may_use(pod, image, **there)) {
    events_.normal(pod, name, "Pulled",
                   cat("Container image ", quoted(image),
                       " already present on machine and can be accessed by the pod"));
    return {std::move(*there), {}, Duration(0)};
  }
  if (policy == "Never") {
    const std::string message =
        cat("Container image ", quoted(image), " is not present with pull policy of Never");
    events_.warning(pod, name, "ErrImageNeverPull", message);
    return problem(pod, container, "ErrImageNeverPull", message, kLookAgain);
  }
  return pull(pod, container);
}

ImageOutcome PodImages::pull(const Value& pod, const Value& container) {
  const std::string image = container["image"].str();
  const std::string_view name = container["name"].as_string();
  const std::string key = cat(uid_of(pod), "_", image);
  {
    MutexLock lock(mutex_);
    const Duration left = backoff_.left(key, backoff_.last(key), clock_.now());
    if (left.count() > 0) {
      const std::string why = last_failure_[key];
      lock.unlock();
      const std::string message = cat("Back-off pulling image ", quoted(image));
      events_.normal(pod, name, "BackOff", message);
      return problem(pod, container, "ImagePullBackOff", cat(message, ": ", why), left);
    }
  }
  events_.normal(pod, name, "Pulling", cat("Pulling image ", quoted(image)));
  const Duration began = clock_.steady();
  std::vector<PullLogin> shown = logins(pod, image);
  if (shown.empty()) shown.emplace_back();
  Result<ImageInfo> pulled = Error::internal("no login to try");
  for (const auto& login : shown) {
    pulled = containers_.pull_image(image, login);
    if (pulled) break;
  }
  const std::string took = seconds_text(clock_.steady() - began);
  MutexLock lock(mutex_);
  if (!pulled) {
    const Time now = clock_.now();
    backoff_.tried(key, now, now);
    const std::string why = pulled.error().message();
    last_failure_[key] = cat("ErrImagePull: ", why);
    lock.unlock();
    events_.warning(pod, name, "Failed", cat("Failed to pull image ", quoted(image), ": ", why));
    // Soon, so that the status says that it waits.
    return problem(pod, container, "ErrImagePull", why, std::chrono::seconds(1));
  }
  backoff_.forget(key);
  last_failure_.erase(key);
  lock.unlock();
  if (!pulled->stands_in_because.empty()) {
    events_.warning(pod, name, "BuiltinImage",
                    cat("Image ", quoted(image), " was not pulled, the one that comes with dibs ",
                        "stands in for it: ", pulled->stands_in_because));
    return {std::move(pulled).value(), {}, Duration(0)};
  }
  events_.normal(pod, name, "Pulled",
                 cat("Successfully pulled image ", quoted(image), " in ", took, " (", took,
                     " including waiting). Image size: ", pulled->size, " bytes."));
  return {std::move(pulled).value(), {}, Duration(0)};
}

std::vector<PullLogin> PodImages::logins(const Value& pod, const std::string& image) {
  std::vector<Value> secrets;
  std::vector<std::string> missing;
  for (const Value& secret : pod["spec"]["imagePullSecrets"].items()) {
    const std::string name = secret["name"].str();
    auto found = objects_.get(PodObjectKind::secret, std::string(namespace_of(pod)), name);
    if (found) {
      secrets.push_back(std::move(found).value());
    } else {
      missing.push_back(name);
    }
  }
  if (!missing.empty()) {
    events_.warning(pod, "", "FailedToRetrieveImagePullSecret",
                    cat("Unable to retrieve some image pull secrets (", join(missing, ", "),
                        "); attempting to pull the image may not succeed."));
  }
  return pull_logins(image, secrets);
}

bool PodImages::may_use(const Value& pod, const std::string& name, const ImageInfo& image) {
  if (image.logins.empty()) return true;
  for (const auto& login : logins(pod, name)) {
    const std::string digest = digest_of(login.auth);
    if (std::find(image.logins.begin(), image.logins.end(), digest) != image.logins.end()) {
      return true;
    }
  }
  return false;
}

void PodImages::forget_pod(const std::string& pod_uid) {
  const MutexLock lock(mutex_);
  const std::string prefix = pod_uid + "_";
  std::vector<std::string> keys;
  for (auto entry = last_failure_.lower_bound(prefix);
       entry != last_failure_.end() && entry->first.starts_with(prefix); ++entry) {
    keys.push_back(entry->first);
  }
  for (const auto& key : keys) {
    last_failure_.erase(key);
    backoff_.forget(key);
  }
}

}  // namespace dibs::node
