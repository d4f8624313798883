// Random operations against a model that keeps every state whole.

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/strings.h"
#include "store/stores.h"
#include "store/test_rebased_store.h"
#include "store/test_support.h"

namespace dibs::store {
namespace {

struct Entry {
  std::string value;
  Revision created = 0;
  Revision modified = 0;
};
using State = std::map<std::string, Entry>;

class Model {
 public:
  /// The revision, or nothing on conflict.
  std::optional<Revision> commit(const std::vector<Op>& ops) {
    State next = states_.back();
    const auto revision = static_cast<Revision>(states_.size());
    std::string events;
    for (const Op& op : ops) {
      auto found = next.find(op.key);
      const Revision current = found == next.end() ? 0 : found->second.modified;
      if (op.expected && *op.expected != current) return std::nullopt;
      if (!op.value && current == 0) continue;
      if (!events.empty()) events += ' ';
      events += cat(revision, !op.value ? '-' : current == 0 ? '+' : '~', op.key);
      if (!op.value) {
        next.erase(found);
      } else {
        events += "=" + *op.value;
        const Revision created = current == 0 ? revision : found->second.created;
        next[op.key] = {*op.value, created, revision};
      }
    }
    if (events.empty()) return revision - 1;
    states_.push_back(std::move(next));
    events_.push_back(std::move(events));
    return revision;
  }

  Revision revision() const { return static_cast<Revision>(states_.size()) - 1; }
  const State& at(Revision revision) const { return states_[static_cast<std::size_t>(revision)]; }
  std::string events_above(Revision from) const {
    std::string out;
    for (auto r = static_cast<std::size_t>(from); r < events_.size(); ++r) {
      out += (out.empty() ? "" : " ") + events_[r];
    }
    return out;
  }

 private:
  std::vector<State> states_{State()};
  std::vector<std::string> events_;
};

void expect_same(const Store& store, const Model& model, Revision at, const std::string& prefix,
                 const std::string& from, std::size_t limit) {
  Commons commons;
  Listing want;
  for (const auto& [key, entry] : model.at(at)) {
    if (!key.starts_with(prefix) || key < from) continue;
    if (limit != 0 && want.records.size() == limit) {
      want.more = true;
      ++want.remaining;
      continue;
    }
    want.records.push_back(
        std::make_shared<const Record>(commons, key, entry.value, entry.created, entry.modified));
  }
  auto got = store.range({prefix, from, limit, at == model.revision() ? 0 : at});
  ASSERT_TRUE(got.ok()) << got.error().message();
  ASSERT_EQ(testing::show(*got), testing::show(want)) << "at " << at;
  for (std::size_t i = 0; i < want.records.size(); ++i) {
    ASSERT_EQ(got->records[i]->created, want.records[i]->created);
    ASSERT_EQ(got->records[i]->modified, want.records[i]->modified);
  }
  ASSERT_EQ(got->more, want.more);
  ASSERT_EQ(got->remaining, want.remaining);
  ASSERT_EQ(got->revision, at);
}

class StoreModel : public ::testing::TestWithParam<std::tuple<StoreKind, int>> {
 protected:
  void SetUp() override {
    if (!testing::can_open(std::get<0>(GetParam()))) GTEST_SKIP() << testing::kNoEtcd;
  }
  std::unique_ptr<Store> open() {
    auto opened = testing::open_for_suite(
        std::get<0>(GetParam()), {.folder = directory_.path(), .first_revision = 1}, numbers_);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return std::move(opened).value();
  }
  testing::TemporaryDirectory directory_;
  const std::shared_ptr<testing::RebasedStore::Numbers> numbers_ =
      std::make_shared<testing::RebasedStore::Numbers>();
};

INSTANTIATE_TEST_SUITE_P(Seeds, StoreModel,
                         ::testing::Combine(::testing::ValuesIn(store_kinds()),
                                            ::testing::Range(0, 3)),
                         [](const auto& info) {
                           return cat(std::get<0>(info.param).name, std::get<1>(info.param));
                         });

TEST_P(StoreModel, agrees) {
  const bool durable = std::get<0>(GetParam()).durable;
  std::mt19937 random(static_cast<unsigned>(std::get<1>(GetParam())));
  auto below = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  // Enough keys that blocks of the index split and melt.
  auto key = [&] { return cat("/", static_cast<char>('a' + below(3)), "/", below(900)); };
  const int many = static_cast<int>(std::min<std::size_t>(300, std::get<0>(GetParam()).max_ops));
  auto store = open();
  Model model;
  std::unique_ptr<Watch> watcher;
  Revision watched = 0;
  auto start_watch = [&](Revision from) {
    auto opened = store->watch("", from, [] {});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    watcher = std::move(opened).value();
    watched = from;
  };
  auto drain_watch = [&] {
    std::string events;
    const std::string want = model.events_above(watched);
    while (true) {
      auto some = watcher->next(static_cast<std::size_t>(1 + below(50)), &watched);
      ASSERT_TRUE(some.ok()) << some.error().message();
      if (some->empty()) break;
      events += (events.empty() ? "" : " ") + testing::show(*some);
    }
    ASSERT_EQ(events, want);
    ASSERT_EQ(watched, model.revision());
  };
  start_watch(0);

  for (int step = 0; step < 800; ++step) {
    const int what = below(100);
    if (what < 75) {
      std::map<std::string, Op> ops;
      // Now and then many at once.
      const int count = below(40) == 0 ? many : 1 + below(3);
      for (int i = 0; i < count; ++i) {
        Op op;
        op.key = key();
        if (below(100) < (step / 300 % 2 == 0 ? 75 : 30)) op.value = share(std::to_string(step));
        if (count < 4 && below(3) == 0) {
          auto found = model.at(model.revision()).find(op.key);
          const bool exists = found != model.at(model.revision()).end();
          op.expected = below(5) == 0 ? below(20) : exists ? found->second.modified : 0;
        }
        ops[op.key] = op;
      }
      std::vector<Op> list;
      for (auto& [name, op] : ops) list.push_back(op);
      const auto want = model.commit(list);
      auto got = store->commit(list);
      ASSERT_EQ(got.ok(), want.has_value());
      if (want) {
        ASSERT_EQ(*got, *want);
      } else {
        ASSERT_EQ(got.error().code(), Code::conflict);
      }
    } else if (what < 90) {
      const Revision oldest = store->compacted();
      const Revision at = oldest + below(static_cast<int>(model.revision() - oldest) + 1);
      if (at == 0) continue;
      const std::string prefix =
          below(2) == 0 ? "" : cat("/", static_cast<char>('a' + below(3)), "/");
      const std::string from = below(2) == 0 || prefix.empty() ? "" : cat(prefix, below(900));
      expect_same(*store, model, at, prefix, from,
                  static_cast<std::size_t>(below(3) == 0 ? 0 : below(200)));
      if (HasFatalFailure()) return;
    } else if (what < 96) {
      drain_watch();
      if (HasFatalFailure()) return;
      if (below(4) == 0) {
        start_watch(store->compacted() +
                    below(static_cast<int>(model.revision() - store->compacted()) + 1));
      }
    } else if (what < 98) {
      drain_watch();
      const Revision oldest = store->compacted();
      ASSERT_TRUE(
          store->compact(oldest + below(static_cast<int>(model.revision() - oldest) + 1)).ok());
    } else if (durable) {
      drain_watch();
      const Revision compacted = store->compacted();
      watcher.reset();
      store.reset();
      store = open();
      ASSERT_EQ(store->revision(), model.revision());
      ASSERT_LE(store->compacted(), compacted);
      start_watch(compacted);
      drain_watch();
    }
    if (HasFatalFailure()) return;
    ASSERT_EQ(store->count(""), model.at(model.revision()).size());
  }
}

}  // namespace
}  // namespace dibs::store
