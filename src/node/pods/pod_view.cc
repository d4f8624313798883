#include "node/pods/pod_view.h"

#include <algorithm>

#include "node/pods/container_config.h"

namespace dibs::node {
namespace {

std::string label(const Labels& labels, const char* key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::string() : found->second;
}

}  // namespace

void PodView::add(SandboxStatus sandbox) {
  remove_sandbox(sandbox.id);
  sandboxes.push_back(std::move(sandbox));
  std::stable_sort(sandboxes.begin(), sandboxes.end(), [](const auto& a, const auto& b) {
    return a.attempt != b.attempt ? a.attempt > b.attempt : a.created > b.created;
  });
}

void PodView::add(ContainerStatus container) {
  auto& list = containers[container.name];
  std::erase_if(list, [&](const auto& item) { return item.id == container.id; });
  list.push_back(std::move(container));
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.attempt != b.attempt ? a.attempt > b.attempt : a.created > b.created;
  });
}

void PodView::remove_container(const std::string& id) {
  for (auto entry = containers.begin(); entry != containers.end();) {
    std::erase_if(entry->second, [&](const auto& item) { return item.id == id; });
    entry = entry->second.empty() ? containers.erase(entry) : std::next(entry);
  }
}

void PodView::remove_sandbox(const std::string& id) {
  std::erase_if(sandboxes, [&](const auto& item) { return item.id == id; });
}

const SandboxStatus* PodView::sandbox() const {
  return sandboxes.empty() ? nullptr : &sandboxes.front();
}

bool PodView::sandbox_ready() const {
  return !sandboxes.empty() && sandboxes.front().state == SandboxState::ready;
}

const ContainerStatus* PodView::newest(std::string_view name) const {
  const auto found = containers.find(name);
  return found == containers.end() ? nullptr : &found->second.front();
}

const ContainerStatus* PodView::previous(std::string_view name) const {
  const auto found = containers.find(name);
  return found == containers.end() || found->second.size() < 2 ? nullptr : &found->second[1];
}

const ContainerStatus* PodView::current(std::string_view name) const {
  const ContainerStatus* found = newest(name);
  if (found == nullptr || sandboxes.empty()) return nullptr;
  return found->sandbox_id == sandboxes.front().id ? found : nullptr;
}

bool PodView::any_running() const {
  for (const auto& [name, list] : containers) {
    for (const auto& container : list) {
      if (is_live(container)) return true;
    }
  }
  return false;
}

bool is_live(const ContainerStatus& container) {
  return container.state == ContainerState::running || container.state == ContainerState::created;
}

Result<std::map<std::string, PodView>> read_views(ContainerRuntime& runtime) {
  std::map<std::string, PodView> out;
  DIBS_TRY(auto sandboxes, runtime.list_sandboxes());
  std::map<std::string, std::string> uid_of_sandbox;
  for (auto& sandbox : sandboxes) {
    if (sandbox.uid.empty()) continue;
    uid_of_sandbox[sandbox.id] = sandbox.uid;
    out[sandbox.uid].add(std::move(sandbox));
  }
  DIBS_TRY(auto containers, runtime.list_containers());
  for (auto& container : containers) {
    std::string uid = label(container.labels, kPodUidLabel);
    if (uid.empty()) uid = uid_of_sandbox[container.sandbox_id];
    if (!uid.empty()) out[uid].add(std::move(container));
  }
  return out;
}

void refresh(PodView& view, ContainerRuntime& runtime) {
  for (auto sandbox = view.sandboxes.begin(); sandbox != view.sandboxes.end();) {
    // One that has ended does not come back.
    if (sandbox->state == SandboxState::ready) {
      auto status = runtime.sandbox_status(sandbox->id);
      if (status) {
        *sandbox = std::move(status).value();
      } else if (status.error().code() == Code::not_found) {
        sandbox = view.sandboxes.erase(sandbox);
        continue;
      }
    }
    ++sandbox;
  }
  for (auto entry = view.containers.begin(); entry != view.containers.end();) {
    auto& list = entry->second;
    for (auto container = list.begin(); container != list.end();) {
      if (container->state != ContainerState::exited) {
        auto status = runtime.container_status(container->id);
        if (status) {
          *container = std::move(status).value();
        } else if (status.error().code() == Code::not_found) {
          container = list.erase(container);
          continue;
        }
      }
      ++container;
    }
    entry = list.empty() ? view.containers.erase(entry) : std::next(entry);
  }
}

}  // namespace dibs::node
