#include "server/node_usage.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::server {
namespace {

constexpr std::size_t kAtOnce = 16;
// Of one node: what it says is kept, and it may say anything.
constexpr std::size_t kMostContainers = 20'000;
// Longer than the time between two questions of an autoscaler.
constexpr Duration kKeptFor = std::chrono::minutes(2);
// A container that has just begun is measured from its beginning, unless that is too short.
constexpr Duration kShortestStart = std::chrono::seconds(10);

struct Line {
  std::string_view name;
  std::map<std::string, std::string, std::less<>> labels = {};
  double value = 0;
  std::optional<Time> at = {};
};

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0)
    return std::nullopt;
  return value;
}

/// What stands between the braces. False where it is broken.
bool read_labels(std::string_view& text, std::map<std::string, std::string, std::less<>>& labels) {
  while (!text.empty() && text.front() != '}') {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string name(trim(text.substr(0, equals)));
    text.remove_prefix(equals + 1);
    if (text.empty() || text.front() != '"') return false;
    std::string value;
    std::size_t i = 1;
    for (; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      value += text[i];
    }
    if (i >= text.size()) return false;
    labels[name] = std::move(value);
    text.remove_prefix(i + 1);
    if (!text.empty() && text.front() == ',') text.remove_prefix(1);
  }
  if (text.empty()) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<Line> read_line(std::string_view text) {
  text = trim(text);
  if (text.empty() || text.front() == '#') return std::nullopt;
  Line out;
  const auto end = text.find_first_of("{ ");
  if (end == std::string_view::npos) return std::nullopt;
  out.name = text.substr(0, end);
  text.remove_prefix(end);
  if (text.front() == '{') {
    text.remove_prefix(1);
    if (!read_labels(text, out.labels)) return std::nullopt;
  }
  text = trim(text);
  const auto blank = text.find(' ');
  const auto value = number(text.substr(0, blank));
  if (!value) return std::nullopt;
  out.value = *value;
  if (blank == std::string_view::npos) return out;
  constexpr double kLatest = 9e12;  // milliseconds, in nanoseconds still a 64-bit number
  const auto millis = number(trim(text.substr(blank)));
  if (!millis || *millis > kLatest) return std::nullopt;
  out.at = Time{static_cast<std::int64_t>(*millis) * 1'000'000};
  return out;
}

std::uint64_t whole(double value) {
  constexpr double kMost = 9e18;
  return static_cast<std::uint64_t>(std::min(value, kMost));
}

/// Two samples, of which the second is the newest.
struct Pair {
  std::optional<UsageSample> before = {};
  UsageSample last = {};

  void take(const UsageSample& next, Duration resolution) {
    if (last.at.nanoseconds != 0 && next.at <= last.at) return;
    const bool again =
        last.at.nanoseconds == 0 || next.cpu_nanos < last.cpu_nanos || next.started > last.at;
    if (!again) {
      before = last;
    } else {
      before.reset();
      const Duration age = next.at - next.started;
      if (next.started.nanoseconds != 0 && age >= kShortestStart && age <= resolution)
        before = UsageSample{next.started, next.started, 0, 0};
    }
    last = next;
  }

  std::optional<UsageRate> rate() const {
    if (!before) return std::nullopt;
    const Duration span = last.at - before->at;
    const double grown = static_cast<double>(last.cpu_nanos - before->cpu_nanos);
    return UsageRate{last.at, span, whole(grown * 1e9 / static_cast<double>(span.count())),
                     last.memory};
  }
};

struct Known {
  Pair node = {};
  std::map<std::string, std::map<std::string, Pair, std::less<>>, std::less<>> pods = {};
};

}  // namespace

NodeSamples read_resource_metrics(std::string_view text, Time now) {
  NodeSamples out;
  std::size_t containers = 0;
  while (!text.empty()) {
    // Line by line: a list of them could be sixteen times as long as the text.
    const auto end = std::min(text.find('\n'), text.size() - 1);
    const auto line = read_line(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
    if (!line) continue;
    const bool cpu = line->name.ends_with("_cpu_usage_seconds_total");
    const bool memory = line->name.ends_with("_memory_working_set_bytes");
    const bool start = line->name == "container_start_time_seconds";
    if (!cpu && !memory && !start) continue;
    UsageSample* sample = nullptr;
    if (line->name.starts_with("node_")) {
      if (!out.node) out.node.emplace();
      sample = &*out.node;
    } else if (line->name.starts_with("container_")) {
      const auto label = [&](const char* name) {
        const auto found = line->labels.find(name);
        return found == line->labels.end() ? std::string() : found->second;
      };
      const std::string pod = cat(label("namespace"), '/', label("pod"));
      const std::string name = label("container");
      if (containers == kMostContainers) {
        const auto known = out.pods.find(pod);
        if (known == out.pods.end() || !known->second.contains(name)) continue;
      }
      const auto [container, is_new] = out.pods[pod].try_emplace(name);
      containers += is_new ? 1 : 0;
      sample = &container->second;
    } else {
      continue;
    }
    if (cpu) {
      sample->cpu_nanos = whole(line->value * 1e9);
      sample->at = line->at.value_or(now);
    }
    if (memory) sample->memory = whole(line->value);
    if (start) sample->started = Time{static_cast<std::int64_t>(whole(line->value * 1e9))};
  }
  return out;
}

struct NodeUsage::State : std::enable_shared_from_this<NodeUsage::State> {
  State(runtime::Runtime& world, Duration every, Sources from)
      : runtime(world), resolution(every), sources(std::move(from)) {}

  runtime::Runtime& runtime;
  const Duration resolution;
  const Sources sources;
  Mutex mutex;
  bool stopped DIBS_GUARDED_BY(mutex) = false;
  bool looking DIBS_GUARDED_BY(mutex) = false;
  Time asked DIBS_GUARDED_BY(mutex) = {};
  int rounds DIBS_GUARDED_BY(mutex) = 0;
  std::deque<std::string> waiting DIBS_GUARDED_BY(mutex);  // of this round
  std::size_t under_way DIBS_GUARDED_BY(mutex) = 0;
  std::map<std::string, Known, std::less<>> known DIBS_GUARDED_BY(mutex);

  void touch() DIBS_REQUIRES(mutex) {
    asked = runtime.clock.now();
    if (looking || stopped) return;
    looking = true;
    rounds = 0;
    runtime.executor.post([self = shared_from_this()] { self->begin(); });
  }

  bool is_stopped() {
    const MutexLock lock(mutex);
    return stopped;
  }

  void begin() {
    if (is_stopped()) return;
    std::vector<std::string> nodes = sources.nodes();
    std::sort(nodes.begin(), nodes.end());
    std::vector<std::string> next;
    {
      const MutexLock lock(mutex);
      if (stopped) return;
      std::erase_if(known, [&](const auto& entry) {
        return !std::binary_search(nodes.begin(), nodes.end(), entry.first);
      });
      waiting.assign(nodes.begin(), nodes.end());
      next = go_on();
    }
    ask(next);
  }

  /// The nodes to ask now; without any, and without one that is still to answer, the round ends.
  /// Under the lock that the last answer was counted under: of two answers only one is the last.
  std::vector<std::string> go_on() DIBS_REQUIRES(mutex) {
    std::vector<std::string> next;
    while (!waiting.empty() && under_way < kAtOnce) {
      next.push_back(std::move(waiting.front()));
      waiting.pop_front();
      ++under_way;
    }
    if (next.empty() && under_way == 0) end_round();
    return next;
  }

  void ask(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) {
      sources.fetch(node, [self = shared_from_this(), node](Result<std::string> text) {
        // Whoever brings it has more to do than to read it.
        self->runtime.executor.post(
            [self, node, text = std::move(text)] { self->take(node, text); });
      });
    }
  }

  void end_round() DIBS_REQUIRES(mutex) {
    ++rounds;
    if (runtime.clock.now() - asked > std::max(kKeptFor, 3 * resolution)) {
      looking = false;
      known.clear();
      return;
    }
    runtime.timers.after(rounds == 1 ? resolution / 3 : resolution, [self = shared_from_this()] {
      self->runtime.executor.post([self] { self->begin(); });
    });
  }

  void take(const std::string& node, const Result<std::string>& text) {
    if (!text.ok()) log::debug("node not measured", {{"node", node}, {"error", text.error()}});
    NodeSamples samples;
    if (text.ok()) samples = read_resource_metrics(*text, runtime.clock.now());
    std::vector<std::string> next;
    {
      const MutexLock lock(mutex);
      --under_way;
      if (stopped) return;
      if (!samples.node) {
        known.erase(node);
      } else {
        Known& entry = known[node];
        entry.node.take(*samples.node, resolution);
        std::erase_if(entry.pods,
                      [&](const auto& pod) { return !samples.pods.contains(pod.first); });
        for (const auto& one_pod : samples.pods) {
          const auto& containers = one_pod.second;
          auto& pairs = entry.pods[one_pod.first];
          std::erase_if(pairs, [&](const auto& one) { return !containers.contains(one.first); });
          for (const auto& [name, sample] : containers) {
            if (sample.at.nanoseconds != 0) pairs[name].take(sample, resolution);
          }
        }
      }
      next = go_on();
    }
    ask(next);
  }
};

NodeUsage::NodeUsage(runtime::Runtime& runtime, Duration resolution, Sources sources)
    : state_(std::make_shared<State>(runtime, resolution, std::move(sources))) {}

NodeUsage::~NodeUsage() { stop(); }

void NodeUsage::stop() {
  const MutexLock lock(state_->mutex);
  state_->stopped = true;
}

std::optional<UsageRate> NodeUsage::node(const std::string& name) {
  const MutexLock lock(state_->mutex);
  state_->touch();
  const auto found = state_->known.find(name);
  return found == state_->known.end() ? std::nullopt : found->second.node.rate();
}

std::map<std::string, UsageRate> NodeUsage::containers(const std::string& node,
                                                       std::string_view name_space,
                                                       std::string_view pod) {
  const MutexLock lock(state_->mutex);
  state_->touch();
  const auto found = state_->known.find(node);
  if (found == state_->known.end()) return {};
  const auto of_pod = found->second.pods.find(cat(name_space, '/', pod));
  if (of_pod == found->second.pods.end()) return {};
  std::map<std::string, UsageRate> out;
  for (const auto& [name, pair] : of_pod->second) {
    if (const auto rate = pair.rate()) out.emplace(name, *rate);
  }
  return out;
}

}  // namespace dibs::server
