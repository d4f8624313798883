#include "base/metrics.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::metrics {

namespace {

enum class Type : std::uint8_t { counter, gauge, histogram };

std::size_t shard_of_thread() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t shard = next.fetch_add(1, std::memory_order_relaxed) % kShards;
  return shard;
}

void add_to(std::atomic<double>& target, double delta) {
  double seen = target.load(std::memory_order_relaxed);
  while (!target.compare_exchange_weak(seen, seen + delta, std::memory_order_relaxed)) {
  }
}

void append_number(std::string& out, double number) {
  if (std::isnan(number)) {
    out += "NaN";
  } else if (std::isinf(number)) {
    out += number > 0 ? "+Inf" : "-Inf";
  } else {
    char buffer[32];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);
  }
}

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '"' && quotes)
      out += "\\\"";
    else
      out += c;
  }
}

std::string_view type_name(Type type) {
  switch (type) {
    case Type::counter:
      return "counter";
    case Type::gauge:
      return "gauge";
    case Type::histogram:
      return "histogram";
  }
  return "untyped";
}

struct Child {
  std::vector<std::string> labels;
  std::unique_ptr<Counter> counter;
  std::unique_ptr<Gauge> gauge;
  std::unique_ptr<Histogram> histogram;
};

}  // namespace

namespace internal {

class FamilyBase {
 public:
  FamilyBase(Type type, std::string_view name, std::string_view help,
             std::vector<std::string> labels, std::vector<double> bounds)
      : type_(type),
        name_(name),
        help_(help),
        labels_(std::move(labels)),
        bounds_(std::move(bounds)) {}

  Type type() const { return type_; }
  void set_function(Samples function) {
    const WriterLock lock(mutex_);
    function_ = std::move(function);
  }
  void clear_gauges() {
    const ReaderLock lock(mutex_);
    for (const auto& [key, child] : children_) child->gauge->set(0);
  }

  Child& child(LabelValues values) {
    assert(values.size() == labels_.size());
    std::string key;
    for (std::string_view value : values) {
      key += value;
      key += '\xff';  // no byte of UTF-8: keeps ("a", "bc") and ("ab", "c") apart
    }
    {
      const ReaderLock lock(mutex_);
      auto found = children_.find(key);
      if (found != children_.end()) return *found->second;
    }
    const WriterLock lock(mutex_);
    std::unique_ptr<Child>& slot = children_[key];
    if (!slot) slot = make_child(values);
    return *slot;
  }

  void expose(std::string& out) const {
    append(out, "# HELP ", name_, ' ');
    append_escaped(out, help_, false);
    append(out, "\n# TYPE ", name_, ' ', type_name(type_), '\n');
    // Called without the lock: it may ask for anything.
    if (const auto function = this->function()) {
      std::vector<Sample> samples = function();
      std::sort(samples.begin(), samples.end(),
                [](const Sample& a, const Sample& b) { return a.labels < b.labels; });
      for (const Sample& one : samples) {
        assert(one.labels.size() == labels_.size());
        sample(out, "", one.labels, "", one.value);
      }
      return;
    }
    const ReaderLock lock(mutex_);
    std::map<std::vector<std::string>, const Child*> sorted;
    for (const auto& [key, child] : children_) sorted.emplace(child->labels, child.get());
    for (const auto& [labels, child] : sorted) {
      if (child->counter) sample(out, "", labels, "", static_cast<double>(child->counter->value()));
      if (child->gauge) sample(out, "", labels, "", child->gauge->value());
      if (child->histogram) expose_histogram(out, *child);
    }
  }

 private:
  Samples function() const {
    const ReaderLock lock(mutex_);
    return function_;
  }

  std::unique_ptr<Child> make_child(LabelValues values) const {
    auto child = std::make_unique<Child>();
    child->labels.assign(values.begin(), values.end());
    switch (type_) {
      case Type::counter:
        child->counter = std::make_unique<Counter>();
        break;
      case Type::gauge:
        child->gauge = std::make_unique<Gauge>();
        break;
      case Type::histogram:
        child->histogram = std::make_unique<Histogram>(bounds_);
        break;
    }
    return child;
  }

  void sample(std::string& out, std::string_view suffix, const std::vector<std::string>& values,
              std::string_view bound, double number) const {
    append(out, name_, suffix);
    if (!values.empty() || !bound.empty()) {
      out += '{';
      for (std::size_t i = 0; i < values.size(); ++i) {
        append(out, i > 0 ? "," : "", labels_[i], "=\"");
        append_escaped(out, values[i], true);
        out += '"';
      }
      if (!bound.empty()) append(out, values.empty() ? "" : ",", "le=\"", bound, '"');
      out += '}';
    }
    out += ' ';
    append_number(out, number);
    out += '\n';
  }

  void expose_histogram(std::string& out, const Child& child) const {
    // The sum is read first and the count is that of the last bucket, so that the three agree even
    // while observations come in.
    double sum = child.histogram->sum();
    std::vector<std::uint64_t> cumulative = child.histogram->cumulative();
    for (std::size_t i = 0; i < cumulative.size(); ++i) {
      std::string bound;
      append_number(bound, i < bounds_.size() ? bounds_[i] : INFINITY);
      sample(out, "_bucket", child.labels, bound, static_cast<double>(cumulative[i]));
    }
    sample(out, "_sum", child.labels, "", sum);
    sample(out, "_count", child.labels, "", static_cast<double>(cumulative.back()));
  }

  const Type type_;
  const std::string name_;
  const std::string help_;
  const std::vector<std::string> labels_;
  const std::vector<double> bounds_;
  mutable SharedMutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<Child>> children_ DIBS_GUARDED_BY(mutex_);
  Samples function_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace internal

void Gauge::add(double delta) { add_to(value_, delta); }

void Counter::add(std::uint64_t n) {
  cells_[shard_of_thread()].count.fetch_add(n, std::memory_order_relaxed);
}

std::uint64_t Counter::value() const {
  std::uint64_t total = 0;
  for (const Cell& cell : cells_) total += cell.count.load(std::memory_order_relaxed);
  return total;
}

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)) {
  for (Cell& cell : cells_) {
    cell.buckets = std::make_unique<std::atomic<std::uint64_t>[]>(bounds_.size() + 1);
  }
}

void Histogram::observe(double value) {
  auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  Cell& cell = cells_[shard_of_thread()];
  cell.buckets[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  add_to(cell.sum, value);
}

std::vector<std::uint64_t> Histogram::cumulative() const {
  std::vector<std::uint64_t> totals(bounds_.size() + 1);
  for (const Cell& cell : cells_) {
    for (std::size_t i = 0; i < totals.size(); ++i) {
      totals[i] += cell.buckets[i].load(std::memory_order_relaxed);
    }
  }
  for (std::size_t i = 1; i < totals.size(); ++i) totals[i] += totals[i - 1];
  return totals;
}

std::uint64_t Histogram::count() const { return cumulative().back(); }

double Histogram::sum() const {
  double total = 0;
  for (const Cell& cell : cells_) total += cell.sum.load(std::memory_order_relaxed);
  return total;
}

template <>
Counter& Family<Counter>::with(LabelValues values) {
  return *base_->child(values).counter;
}

template <>
Gauge& Family<Gauge>::with(LabelValues values) {
  return *base_->child(values).gauge;
}

template <>
void Family<Gauge>::clear() {
  base_->clear_gauges();
}

template <>
Histogram& Family<Histogram>::with(LabelValues values) {
  return *base_->child(values).histogram;
}

struct Registry::State {
  internal::FamilyBase& family(Type type, std::string_view name, std::string_view help,
                               std::vector<std::string> labels, std::vector<double> bounds) {
    const MutexLock lock(mutex);
    auto& slot = families[std::string(name)];
    if (!slot) {
      slot = std::make_unique<internal::FamilyBase>(type, name, help, std::move(labels),
                                                    std::move(bounds));
    }
    assert(slot->type() == type);
    return *slot;
  }

  mutable Mutex mutex;
  std::map<std::string, std::unique_ptr<internal::FamilyBase>> families;
};

Registry::Registry() : state_(std::make_unique<State>()) {}
Registry::~Registry() = default;

CounterFamily Registry::counter(std::string_view name, std::string_view help,
                                std::vector<std::string> labels) {
  return CounterFamily(state_->family(Type::counter, name, help, std::move(labels), {}));
}

GaugeFamily Registry::gauge(std::string_view name, std::string_view help,
                            std::vector<std::string> labels) {
  return GaugeFamily(state_->family(Type::gauge, name, help, std::move(labels), {}));
}

HistogramFamily Registry::histogram(std::string_view name, std::string_view help,
                                    std::vector<double> bounds, std::vector<std::string> labels) {
  return HistogramFamily(
      state_->family(Type::histogram, name, help, std::move(labels), std::move(bounds)));
}

void Registry::gauge_function(std::string_view name, std::string_view help,
                              std::function<double()> value) {
  gauge_function(name, help, {}, [value = std::move(value)] {
    return std::vector<Sample>{{{}, value()}};
  });
}

void Registry::gauge_function(std::string_view name, std::string_view help,
                              std::vector<std::string> labels, Samples samples) {
  state_->family(Type::gauge, name, help, std::move(labels), {}).set_function(std::move(samples));
}

void Registry::counter_function(std::string_view name, std::string_view help,
                                std::vector<std::string> labels, Samples samples) {
  state_->family(Type::counter, name, help, std::move(labels), {}).set_function(std::move(samples));
}

std::string Registry::expose() const {
  std::vector<const internal::FamilyBase*> families;
  {
    const MutexLock lock(state_->mutex);
    for (const auto& [name, family] : state_->families) families.push_back(family.get());
  }
  std::string out;
  for (const internal::FamilyBase* family : families) family->expose(out);
  return out;
}

std::vector<double> exponential_bounds(double start, double factor, std::size_t count) {
  std::vector<double> bounds;
  for (std::size_t i = 0; i < count; ++i, start *= factor) bounds.push_back(start);
  return bounds;
}

}  // namespace dibs::metrics
