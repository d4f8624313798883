#include "controllers/endpoints/slice_keeper.h"

#include <charconv>
#include <utility>

#include "base/strings.h"
#include "controllers/endpoints/endpoint_objects.h"
#include "controllers/workload.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

// Changes that others make are looked at together.
constexpr Duration kAfterOthers = std::chrono::seconds(1);
// A write that the informer has not shown by then was undone before it could.
constexpr Duration kLongest = std::chrono::seconds(5);

std::int64_t version_of(const Value& object) {
  const std::string_view text = object["metadata"]["resourceVersion"].as_string();
  std::int64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

std::string service_of(const Value& slice) {
  return client::key_of(namespace_of(slice), label_of(slice, kServiceNameLabel));
}

bool owned_by(const Value& slice, std::string_view uid) {
  for (const Value& owner : slice["metadata"]["ownerReferences"].items())
    if (owner["uid"].as_string() == uid) return true;
  return false;
}

client::WriteOptions writing() {
  client::WriteOptions options;
  options.field_manager = kFieldManager;
  return options;
}

}  // namespace

void SliceWrites::reuse_removed(std::string_view owner_uid) {
  for (std::size_t i = 0; i < remove.size() && !create.empty();) {
    const Value& old = remove[i];
    if (!(old["addressType"] == create.back()["addressType"]) || !owned_by(old, owner_uid)) {
      ++i;
      continue;
    }
    Value slice = std::move(create.back());
    create.pop_back();
    Value& metadata = slice.mut("metadata");
    metadata.erase("generateName");
    metadata.set("name", old["metadata"]["name"]);
    metadata.set("resourceVersion", old["metadata"]["resourceVersion"]);
    update.push_back(std::move(slice));
    remove.erase(remove.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

SliceKeeper::SliceKeeper(Environment& environment, Reconciler& reconciler, std::string manager)
    : environment_(environment),
      reconciler_(reconciler),
      manager_(std::move(manager)),
      slices_(environment.informers.of(kSliceResource, kBySlicesOf, index_slices)) {
  slices_.add_handler({.added =
                           [this](const Value& slice, bool initial) {
                             if (!initial && is_ours(slice)) seen(slice);
                           },
                       .updated =
                           [this](const Value& before, const Value& after) {
                             if (is_ours(after)) seen(after);
                             // Taken from us, or from the Service.
                             if (is_ours(before) && index_slices(before) != index_slices(after))
                               reconciler_.add_after(service_of(before), kAfterOthers);
                           },
                       .removed =
                           [this](const Value& slice) {
                             if (is_ours(slice)) seen_gone(slice);
                           }});
}

bool SliceKeeper::is_ours(const Value& slice) const {
  return label_of(slice, kSliceManagerLabel) == manager_;
}

void SliceKeeper::seen(const Value& slice) {
  const std::string service = service_of(slice);
  {
    const MutexLock lock(mutex_);
    if (const auto found = written_.find(service); found != written_.end()) {
      const auto one = found->second.find(name_of(slice));
      if (one != found->second.end() && one->second.version == version_of(slice)) return;
    }
  }
  reconciler_.add_after(service, kAfterOthers);
}

void SliceKeeper::seen_gone(const Value& slice) {
  const std::string service = service_of(slice);
  {
    const MutexLock lock(mutex_);
    if (const auto found = written_.find(service); found != written_.end()) {
      const auto one = found->second.find(name_of(slice));
      const bool ours = one != found->second.end() && one->second.version == 0;
      if (one != found->second.end()) found->second.erase(one);
      if (ours) return;
    }
  }
  reconciler_.add_after(service, kAfterOthers);
}

std::optional<std::vector<Value>> SliceKeeper::slices_of(const std::string& service) {
  const auto [name_space, name] = client::split_key(service);
  const auto cached = slices_.by_index(kBySlicesOf, slices_key(name_space, name, manager_));
  const Duration now = environment_.runtime.clock.steady();
  const MutexLock lock(mutex_);
  ByName& written = written_[service];
  std::map<std::string_view, std::int64_t> shown;
  std::vector<Value> out;
  for (const Value& slice : cached) {
    shown[name_of(slice)] = version_of(slice);
    const auto ours = written.find(name_of(slice));
    if (is_deleting(slice) || (ours != written.end() && ours->second.version == 0)) continue;
    out.push_back(slice);
  }
  for (auto one = written.begin(); one != written.end();) {
    const auto found = shown.find(one->first);
    const bool there = found != shown.end();
    if (one->second.version == 0 ? there : there && found->second >= one->second.version) {
      ++one;
    } else if (one->second.version != 0 && now - one->second.at < kLongest) {
      return std::nullopt;
    } else {
      one = written.erase(one);
    }
  }
  return out;
}

void SliceKeeper::remember(const std::string& service, const Value& slice, std::int64_t version) {
  const MutexLock lock(mutex_);
  written_[service][std::string(name_of(slice))] = {version, environment_.runtime.clock.steady()};
}

Result<> SliceKeeper::write(const std::string& service, const SliceWrites& writes, bool creating) {
  const std::string name_space = client::split_key(service).first;
  client::Client& api = environment_.client;
  for (const Value& slice : writes.create) {
    if (!creating) break;
    auto made = api.create(kSliceResource, name_space, slice, writing());
    if (!made.ok() && is_namespace_ending(made.error())) return success();
    if (!made.ok()) return made.error();
    remember(service, *made, version_of(*made));
  }
  for (const Value& slice : writes.update) {
    auto written = api.update(kSliceResource, name_space, slice, writing());
    if (!written.ok()) return written.error();
    remember(service, *written, version_of(*written));
  }
  for (const Value& slice : writes.remove) {
    client::DeleteOptions options;
    options.uid = uid_of(slice);
    auto removed = api.remove(kSliceResource, name_space, name_of(slice), options);
    if (!removed.ok() && !is_gone(removed.error())) return removed.error();
    remember(service, slice, 0);
  }
  return success();
}

void SliceKeeper::forget(const std::string& service) {
  const MutexLock lock(mutex_);
  written_.erase(service);
}

}  // namespace dibs::controllers
