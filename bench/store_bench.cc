// The store: durable writes in groups, reads, watch fan-out.
//
// DIBS_BENCH_DIR names the directory for the files: on a RAM disk the durable numbers mean little.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/strings.h"
#include "store/memory_store.h"
#include "store/sqlite_store.h"

namespace dibs::store {
namespace {

struct Directory {
  Directory() {
    const char* base = std::getenv("DIBS_BENCH_DIR");
    path = cat(base != nullptr ? base : "/var/tmp", "/dibs-store-bench-XXXXXX");
    if (::mkdtemp(path.data()) == nullptr) std::abort();
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path;
};

std::unique_ptr<Store> open(const Directory& directory) {
  auto store = open_sqlite_store({.path = directory.path + "/store.db"});
  if (!store.ok()) std::abort();
  return std::move(store).value();
}

Op put(std::string key, const SharedBytes& value) { return {std::move(key), value, {}}; }

void run_writers(benchmark::State& state, Store& store, std::size_t value_size) {
  const auto writers = static_cast<int>(state.range(0));
  const auto value = share(std::string(value_size, 'x'));
  constexpr int kPerRound = 20000;
  for (auto _ : state) {
    std::atomic<int> next = 0;
    std::vector<std::thread> threads;
    for (int w = 0; w < writers; ++w) {
      threads.emplace_back([&] {
        const int total = writers == 1 ? 500 : kPerRound;
        for (int i = 0; (i = next++) < total;) {
          if (!store.commit({put(cat("/registry/pods/default/pod-", i % 5000), value)}).ok())
            std::abort();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    state.SetItemsProcessed(state.items_processed() + (writers == 1 ? 500 : kPerRound));
  }
}

void durable_put(benchmark::State& state) {
  Directory directory;
  auto store = open(directory);
  run_writers(state, *store, static_cast<std::size_t>(state.range(1)));
}
BENCHMARK(durable_put)
    ->ArgNames({"writers", "bytes"})
    ->Args({1, 1000})
    ->Args({32, 1000})
    ->Args({128, 300})
    ->Args({128, 1000})
    ->Args({256, 1000})
    ->Args({128, 4000})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void memory_put(benchmark::State& state) {
  auto store = make_memory_store();
  run_writers(state, *store, 1000);
}
BENCHMARK(memory_put)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

/// One transaction of many operations, each a group by itself: what a thread costs apart.
void durable_put_of_many(benchmark::State& state) {
  Directory directory;
  auto store = open(directory);
  const auto value = share(std::string(1000, 'x'));
  int key = 0;
  for (auto _ : state) {
    std::vector<Op> ops;
    for (int i = 0; i < state.range(0); ++i)
      ops.push_back(put(cat("/registry/pods/default/pod-", key++ % 5000), value));
    if (!store->commit(std::move(ops)).ok()) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(durable_put_of_many)->Arg(128)->Arg(512)->UseRealTime();

std::unique_ptr<Store>& filled() {
  static std::unique_ptr<Store> store = [] {
    auto made = make_memory_store();
    const auto value = share(std::string(1000, 'x'));
    for (int i = 0; i < 100'000; i += 1000) {
      std::vector<Op> ops;
      for (int k = 0; k < 1000; ++k)
        ops.push_back(put(cat("/registry/pods/ns-", (i + k) % 100, "/pod-", i + k), value));
      if (!made->commit(std::move(ops)).ok()) std::abort();
    }
    return made;
  }();
  return store;
}

void get(benchmark::State& state) {
  auto& store = filled();
  std::vector<std::string> keys;
  for (int i = 0; i < 100'000; i += 7)
    keys.push_back(cat("/registry/pods/ns-", i % 100, "/pod-", i));
  std::size_t at = static_cast<std::size_t>(state.thread_index()) * 1000;
  for (auto _ : state) benchmark::DoNotOptimize(store->get(keys[at++ % keys.size()]));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(get)->ThreadRange(1, 4)->UseRealTime();

void get_while_writing(benchmark::State& state) {
  Directory directory;
  auto store = open(directory);
  const auto value = share(std::string(1000, 'x'));
  for (int i = 0; i < 1000; ++i) (void)store->commit({put(cat("/k/", i), value)});
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) (void)store->commit({put(cat("/k/", i % 1000), value)});
  });
  int i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(store->get(cat("/k/", i++ % 1000)));
  stop = true;
  writer.join();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(get_while_writing)->UseRealTime();

void list(benchmark::State& state) {
  auto& store = filled();
  for (auto _ : state) {
    auto listing = store->range(
        {.prefix = "/registry/pods/", .limit = static_cast<std::size_t>(state.range(0))});
    benchmark::DoNotOptimize(listing);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(list)->Arg(500)->Arg(10000)->Unit(benchmark::kMicrosecond);

void count(benchmark::State& state) {
  auto& store = filled();
  for (auto _ : state) benchmark::DoNotOptimize(store->count("/registry/pods/"));
}
BENCHMARK(count);

/// One write until each of the watchers was woken and has its event.
void watch_fan_out(benchmark::State& state) {
  auto store = make_memory_store();
  std::atomic<std::int64_t> woken = 0;
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < state.range(0); ++i) {
    watches.push_back(std::move(store->watch("/registry/pods/", 0, [&] { ++woken; })).value());
    (void)watches.back()->next(1);
  }
  const auto value = share(std::string(1000, 'x'));
  int i = 0;
  for (auto _ : state) {
    woken = 0;
    (void)store->commit({put(cat("/registry/pods/default/pod-", i++ % 100), value)});
    if (woken != state.range(0)) std::abort();
    for (auto& watch : watches) {
      if (watch->next(10)->size() != 1) std::abort();
      (void)watch->next(10);
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(watch_fan_out)->Arg(1)->Arg(1000)->Unit(benchmark::kMicrosecond);

void reopen(benchmark::State& state) {
  Directory directory;
  {
    auto store = open(directory);
    const auto value = share(std::string(1000, 'x'));
    for (int i = 0; i < 100'000; i += 1000) {
      std::vector<Op> ops;
      for (int k = 0; k < 1000; ++k)
        ops.push_back(put(cat("/registry/pods/ns-", (i + k) % 100, "/pod-", i + k), value));
      if (!store->commit(std::move(ops)).ok()) std::abort();
    }
  }
  for (auto _ : state) open(directory);
}
BENCHMARK(reopen)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dibs::store
