#include "node/pods/pod_images.h"

#include <algorithm>

#include "base/strings.h"
#include "node/pods/pod_spec.h"

namespace dibs::node {
namespace {

using json::Value;

// A problem that goes away only when somebody acts is looked at again after this.
constexpr Duration kLookAgain = std::chrono::seconds(5);

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// Lower-case words with ".", "_", "__" or dashes between them.
bool is_path_component(std::string_view text) {
  if (text.empty() || !is_alphanumeric(text.front()) || !is_alphanumeric(text.back())) return false;
  for (std::size_t i = 0; i < text.size();) {
    if (is_alphanumeric(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && text[end] == text[i]) ++end;
    const std::size_t run = end - i;
    const bool fine =
        text[i] == '-' || (text[i] == '_' && run <= 2) || (text[i] == '.' && run == 1);
    if (!fine || end == text.size() || !is_alphanumeric(text[end])) return false;
    i = end;
  }
  return true;
}

bool is_domain(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon != std::string_view::npos && text.find(']') == std::string_view::npos) {
    const auto port = text.substr(colon + 1);
    if (port.empty() ||
        !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return false;
    }
    text = text.substr(0, colon);
  }
  if (text.empty()) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '[' ||
           c == ']' || c == ':';
  });
}

bool is_tag(std::string_view text) {
  if (text.empty() || text.size() > 128 || text.front() == '.' || text.front() == '-') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-';
  });
}

bool is_digest(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto hex = text.substr(colon + 1);
  return hex.size() >= 32 && std::all_of(hex.begin(), hex.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
         });
}

std::string seconds_text(Duration duration) {
  // Milliseconds, as a reader wants them.
  const auto rounded = std::chrono::duration_cast<std::chrono::milliseconds>(duration);
  return format_duration(rounded);
}

}  // namespace

std::string image_name_fault(const std::string& image) {
  if (image.size() == 64 && std::all_of(image.begin(), image.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      })) {
    return cat("invalid repository name (", image, "), cannot specify 64-byte hexadecimal strings");
  }
  std::string_view domain = "docker.io";
  std::string remote = image;
  if (const auto slash = image.find('/'); slash != std::string::npos) {
    const std::string first = image.substr(0, slash);
    if (first.find_first_of(".:") != std::string::npos || first == "localhost" ||
        to_lower(first) != first) {
      domain = std::string_view(image).substr(0, slash);
      remote = image.substr(slash + 1);
    }
  }
  if (domain == "docker.io" && remote.find('/') == std::string::npos) remote = "library/" + remote;
  std::string_view name = remote;
  std::string_view digest;
  bool has_digest = false;
  if (const auto at = name.find('@'); at != std::string_view::npos) {
    digest = name.substr(at + 1);
    has_digest = true;
    name = name.substr(0, at);
  }
  std::string_view tag;
  bool has_tag = false;
  if (const auto colon = name.find(':'); colon != std::string_view::npos) {
    tag = name.substr(colon + 1);
    has_tag = true;
    name = name.substr(0, colon);
  }
  if (to_lower(name) != name) {
    return cat("invalid reference format: repository name (", name, ") must be lowercase");
  }
  bool fine = is_domain(domain) && (!has_tag || is_tag(tag)) && (!has_digest || is_digest(digest));
  for (const auto part : split(name, '/')) fine = fine && is_path_component(part);
  if (!fine) return "invalid reference format";
  if (domain.size() + 1 + name.size() > 255) {
    return "repository name must not be more than 255 characters";
  }
  return {};
}

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
  if (const std::string fault = image_name_fault(image); !fault.empty()) {
    const std::string message = cat("Failed to apply default image tag ", quoted(image),
                                    ": couldn't parse image name ", quoted(image), ": ", fault);
    events_.warning(pod, name, "InspectFailed", message);
    return problem(pod, container, "InvalidImageName", message, kLookAgain);
  }
  auto there = containers_.image_status(image);
  if (!there) {
    const std::string message =
        cat("Failed to inspect image ", quoted(image), ": ", there.error().message());
    events_.warning(pod, name, "InspectFailed", message);
    return problem(pod, container, "ImageInspectError", message, kLookAgain);
  }
  const std::string_view policy = container["imagePullPolicy"].as_string("IfNotPresent");
  if (there->has_value() && policy != "Always") {
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
    std::unique_lock lock(mutex_);
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
  auto pulled = containers_.pull_image(image);
  const std::string took = seconds_text(clock_.steady() - began);
  std::unique_lock lock(mutex_);
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
  events_.normal(pod, name, "Pulled",
                 cat("Successfully pulled image ", quoted(image), " in ", took, " (", took,
                     " including waiting). Image size: ", pulled->size, " bytes."));
  return {std::move(pulled).value(), {}, Duration(0)};
}

void PodImages::forget_pod(const std::string& pod_uid) {
  std::lock_guard lock(mutex_);
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
