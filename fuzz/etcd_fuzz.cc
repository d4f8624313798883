// Any bytes as what an etcd sends: messages of a watch, and answers to a write
// and to a move of the barrier. The state in memory stays whole: revisions go forward, and what
// is told of a write fits to it.
#include "base/strings.h"
#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "proto/etcd.pb.h"
#include "store/etcd/barrier.h"
#include "store/etcd/digest.h"
#include "store/etcd/write.h"
#include "store/mvcc.h"

namespace dibs::fuzz {
namespace {

using namespace dibs::store;

void check_watch(Texts& texts, const etcd::Keys& keys) {
  auto mvcc = std::make_shared<Mvcc>();
  mvcc->start_at(1);
  const etcd::Reader reader(
      mvcc->commons(), nullptr,
      [](const std::string&, const std::string&, Revision) { return etcd::OwnValue(); });
  etcd::ApartNames apart;
  while (!texts.empty()) {
    const std::string_view bytes = texts.next();
    etcdserverpb::WatchResponse message;
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    const Revision before = mvcc->revision();
    etcd::Digest digest({keys, reader, apart, true}, before);
    const bool goes_on = digest.add(message);
    require(digest.reached() >= before, "revisions go forward");
    require(goes_on == digest.fault().empty(), "an end has a reason");
    if (digest.reached() > before) mvcc->apply(digest.take_changes(), digest.reached()).fire();
    if (!goes_on) return;
    const auto all = mvcc->range({});
    require(all.ok() && all->records.size() == mvcc->count(""), "every key is counted");
    for (const auto& record : all->records) {
      require(etcd::Keys::check(record->key).ok(), "keys are under our folders");
      require(record->modified <= mvcc->revision(), "nothing is of the future");
    }
  }
}

void check_answer(std::string_view bytes, const etcd::Keys& keys) {
  etcd::Write write;
  write.ops = {{"/registry/a", share("1"), 7}, {"/registry/b", nullptr, 8}};
  write.barrier = 5;
  require(etcd::seal(write, nullptr).ok(), "values go as they are");
  const etcd::Outcome outcome = etcd::decode(write, keys, bytes);
  if (outcome.kind == etcd::Outcome::Kind::conflict) {
    require(!outcome.conflict.message().empty(), "a conflict is told");
  }
  if (outcome.kind == etcd::Outcome::Kind::behind_barrier) {
    require(outcome.barrier != write.barrier, "it is elsewhere");
  }
}

void check_move(std::string_view bytes) {
  const etcd::Barrier::Moved moved = etcd::Barrier::decode_move(bytes);
  require(!moved.by_this || moved.at == moved.answered, "who moved it knows where it is");
}

}  // namespace

int fuzz_etcd(const std::uint8_t* data, std::size_t size) {
  const etcd::Keys keys("/registry");
  Texts texts(data, size);
  const std::uint8_t what = texts.byte();
  if (what % 3 == 0) check_watch(texts, keys);
  if (what % 3 == 1) check_answer(texts.rest(), keys);
  if (what % 3 == 2) check_move(texts.rest());
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_etcd)
