#include "cli/plan.h"

#include <algorithm>
#include <filesystem>
#include <istream>
#include <map>

#include "api/schema/features.h"
#include "base/strings.h"
#include "cli/plan_cluster.h"
#include "cli/process.h"
#include "cli/run_scheduler.h"
#include "cli/select_input.h"
#include "cli/top_devices.h"
#include "cli/values.h"
#include "cli/why_story.h"
#include "client/https_transport.h"
#include "json/parse.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

using json::Value;

bool is_owned_by(const Value& object, std::string_view uid) {
  const auto owners = object["metadata"]["ownerReferences"].items();
  return std::any_of(owners.begin(), owners.end(), [&](const Value& owner) {
    return owner["controller"].as_bool() && owner["uid"].as_string() == uid;
  });
}

bool makes_pods(std::string_view kind) {
  constexpr std::string_view kKinds[] = {"Deployment", "ReplicaSet", "StatefulSet",
                                         "DaemonSet",  "Job",        "ReplicationController"};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

std::string key_of(const Value& object) {
  return cat(client::namespace_of(object), "/", client::name_of(object));
}

/// "2 devices of it": gpu-0, gpu-1 of pool node-1 (gpu.example.com).
std::string devices_text(const Value& claim) {
  std::map<std::string, std::vector<std::string>> pools;
  for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
    pools[cat("pool ", result["pool"].as_string(), " (", result["driver"].as_string(), ")")]
        .push_back(result["device"].str());
  }
  std::vector<std::string> made;
  for (auto& [pool, names] : pools) {
    std::sort(names.begin(), names.end(), comes_before);
    made.push_back(cat(join(names, ", "), " of ", pool));
  }
  return join(made, "; ");
}

class Planner {
 public:
  Planner(PlanInput input, PlanCluster& cluster) : input_(std::move(input)), cluster_(cluster) {}

  Result<PlanOutcome> run() {
    std::vector<Value> applied;
    for (const auto& [where, document] : input_.documents) {
      auto object = cluster_.apply(document, input_.name_space);
      if (!object.ok()) return object.error().within(where);
      if (object->is_null()) {
        append(made_.errors, "dibs plan: ", where, ": ", document["apiVersion"].as_string(), " ",
               document["kind"].as_string(), " is left out: pods do not come of it here\n");
        continue;
      }
      applied.push_back(std::move(*object));
    }
    cluster_.settle();
    FetchScope scope;
    scope.workloads = true;
    DIBS_TRY(input_.world.objects, fetch_objects(cluster_.client(), scope));
    input_.world.now = cluster_.now();
    for (const Value& object : applied) tell(object);
    for (const std::string& key : cluster_.evicted()) {
      page_.line(0, cat("pod ", key, " would be evicted to make room"));
    }
    page_.gap();
    page_.line(0, cat(run_, run_ == 1 ? " pod" : " pods", " would run, ", wait_, " would wait"));
    made_.status = wait_ == 0 ? 0 : 1;
    Value evicted = Value::array();
    for (const std::string& key : cluster_.evicted()) evicted.push(key);
    const Value document = Value::object({{"kind", "Plan"},
                                          {"pods", std::move(pods_)},
                                          {"evicted", std::move(evicted)},
                                          {"running", run_},
                                          {"waiting", wait_}});
    made_.output =
        input_.as_json ? cat(json::write_pretty(document), "\n") : std::string(page_.text());
    return std::move(made_);
  }

 private:
  const WhyObjects& objects() const { return input_.world.objects; }

  void tell(const Value& object) {
    const std::string_view kind = object["kind"].as_string();
    if (kind == "Pod") {
      const Value* pod =
          find_object(objects().pods, client::namespace_of(object), client::name_of(object));
      if (pod != nullptr) tell_pod_of(*pod, cat("pod ", key_of(object)), "");
      return;
    }
    if (!makes_pods(kind)) return;
    std::vector<const Value*> pods;
    for (const Value& pod : objects().pods) {
      if (is_of(pod, object)) pods.push_back(&pod);
    }
    std::sort(pods.begin(), pods.end(), [](const Value* a, const Value* b) {
      // Those that found a place first, since names of most are drawn by lot.
      const bool x = (*a)["spec"]["nodeName"].is_string();
      const bool y = (*b)["spec"]["nodeName"].is_string();
      if (x != y) return x;
      const auto on_x = (*a)["spec"]["nodeName"].as_string();
      const auto on_y = (*b)["spec"]["nodeName"].as_string();
      if (on_x != on_y) return comes_before(on_x, on_y);
      return comes_before(client::name_of(*a), client::name_of(*b));
    });
    const std::string owner = cat(to_lower(kind), " ", key_of(object));
    std::size_t number = 0;
    for (const Value* pod : pods) {
      tell_pod_of(*pod, cat("pod ", ++number, " of ", owner), owner);
    }
    const Value* now = nullptr;
    for (const Value& one : objects().workloads) {
      if (one["metadata"]["uid"] == object["metadata"]["uid"]) now = &one;
    }
    const Hindrance hindered = now == nullptr ? Hindrance() : hindered_workload(input_.world, *now);
    if (!hindered) return;
    ++wait_;
    page_.line(0, cat(owner, " ", hindered.text));
    pods_.push(Value::object({{"of", owner},
                              {"state", "Waiting"},
                              {"reason", hindered.reason},
                              {"message", hindered.text}}));
  }

  /// Its own, or that of a ReplicaSet of it.
  bool is_of(const Value& pod, const Value& owner) const {
    const std::string_view uid = client::uid_of(owner);
    if (is_owned_by(pod, uid)) return true;
    const auto& all = objects().workloads;
    return std::any_of(all.begin(), all.end(), [&](const Value& one) {
      return is_owned_by(one, uid) && is_owned_by(pod, client::uid_of(one));
    });
  }

  void tell_pod_of(const Value& pod, const std::string& name, const std::string& owner) {
    const std::string node = pod["spec"]["nodeName"].str();
    Value document = Value::object(
        {{"namespace", client::namespace_of(pod)}, {"name", client::name_of(pod)}, {"of", owner}});
    if (node.empty()) {
      ++wait_;
      const WhyStory story = cli::tell_pod(input_.world, pod);
      std::string text = story.brief;
      constexpr std::string_view kPending = "is pending: ";
      if (text.starts_with(kPending)) text = text.substr(kPending.size());
      page_.line(0, cat(name, " would wait: ", text));
      document.set("state", "Waiting");
      document.set("reason", story.document["reason"]);
      document.set("message", text);
      pods_.push(std::move(document));
      return;
    }
    ++run_;
    page_.line(0, cat(name, " would go to ", node));
    Value claims = Value::array();
    for (const std::string& claim_name : claim_names(pod, input_.world.release)) {
      const Value* claim = find_object(objects().claims, client::namespace_of(pod), claim_name);
      if (claim == nullptr) continue;
      const std::string devices = devices_text(*claim);
      if (!devices.empty()) page_.line(2, devices);
      claims.push(claim_document(*claim));
    }
    document.set("state", "Placed");
    document.set("node", node);
    document.set("claims", std::move(claims));
    pods_.push(std::move(document));
  }

  PlanInput input_;
  PlanCluster& cluster_;
  WhyPage page_;
  Value pods_ = Value::array();
  std::size_t run_ = 0;
  std::size_t wait_ = 0;
  PlanOutcome made_;
};

/// Files, and those directly in folders.
Result<std::vector<std::string>> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> made;
  for (const std::string& path : paths) {
    std::error_code code;
    if (path == "-" || !std::filesystem::is_directory(path, code)) {
      made.push_back(path);
      continue;
    }
    const std::size_t before = made.size();
    for (const auto& entry : std::filesystem::directory_iterator(path, code)) {
      const std::string extension = entry.path().extension();
      if (extension == ".yaml" || extension == ".yml" || extension == ".json") {
        made.push_back(entry.path());
      }
    }
    if (made.size() == before) {
      return Error::bad_request(cat(path, ": has no files .yaml, .yml or .json"));
    }
    std::sort(made.begin() + static_cast<std::ptrdiff_t>(before), made.end());
  }
  return made;
}

Result<> add_document(const std::string& where, Value document, PlanInput& to) {
  if (!document["kind"].is_string() || !document["apiVersion"].is_string()) {
    return Error::bad_request(cat(where, ": apiVersion and kind are wanted"));
  }
  to.documents.emplace_back(where, std::move(document));
  return success();
}

Result<> read_files(const std::vector<std::string>& paths, std::istream& input, PlanInput& to) {
  DIBS_TRY(const auto files, files_of(paths));
  for (const std::string& file : files) {
    DIBS_TRY(auto documents, read_documents(file, input));
    for (auto& [where, document] : documents) {
      if (document.is_null()) continue;
      if (document["kind"].as_string() != "List") {
        DIBS_CHECK(add_document(where, std::move(document), to));
        continue;
      }
      std::size_t number = 0;
      for (const Value& item : document["items"].items()) {
        DIBS_CHECK(add_document(cat(where, ": items[", number++, "]"), item, to));
      }
    }
  }
  if (to.documents.empty()) return Error::bad_request("the files have no objects");
  return success();
}

/// What admission asks for, where it may be read.
std::vector<Value> fetch_more(client::Client& client, std::vector<std::string>& refused) {
  std::vector<Value> made;
  const client::Gvr resources[] = {{"scheduling.k8s.io", "v1", "priorityclasses"},
                                   {"node.k8s.io", "v1", "runtimeclasses"},
                                   {"", "v1", "resourcequotas"},
                                   {"", "v1", "limitranges"}};
  for (const client::Gvr& gvr : resources) {
    auto listed = client.list(gvr, "");
    if (listed.ok()) {
      made.insert(made.end(), listed->items.begin(), listed->items.end());
    } else if (listed.error().code() == Code::forbidden) {
      refused.push_back(cat(gvr.resource, " (", listed.error().message(), ")"));
    }
  }
  return made;
}

/// Workloads that are there already: their pods would be replaced.
void leave_out_replaced(PlanInput& input) {
  std::vector<std::string> uids;
  for (const auto& [where, document] : input.documents) {
    const auto name_space = client::namespace_of(document).empty()
                                ? std::string_view(input.name_space)
                                : client::namespace_of(document);
    for (const Value& one : input.world.objects.workloads) {
      if (one["kind"] == document["kind"] && client::name_of(one) == client::name_of(document) &&
          client::namespace_of(one) == name_space && makes_pods(one["kind"].as_string())) {
        uids.emplace_back(client::uid_of(one));
      }
    }
  }
  // Of a Deployment they are its ReplicaSets'.
  for (std::size_t i = 0; i < uids.size(); ++i) {
    for (const Value& one : input.world.objects.workloads) {
      if (is_owned_by(one, uids[i])) uids.emplace_back(client::uid_of(one));
    }
  }
  std::vector<std::string> gone;
  std::erase_if(input.world.objects.pods, [&](const Value& pod) {
    if (std::none_of(uids.begin(), uids.end(),
                     [&](const std::string& uid) { return is_owned_by(pod, uid); })) {
      return false;
    }
    gone.emplace_back(client::uid_of(pod));
    return true;
  });
  std::erase_if(input.world.objects.claims, [&](const Value& claim) {
    return std::any_of(gone.begin(), gone.end(),
                       [&](const std::string& uid) { return is_owned_by(claim, uid); });
  });
}

/// What the command line says, before any cluster is asked.
Result<PlanInput> read_input(const PlanFlags& flags, std::istream& in) {
  PlanInput input;
  DIBS_CHECK(read_files(flags.files, in, input));
  DIBS_TRY(const api::Features gates, parse_gates(flags.release, flags.feature_gates, "--release"));
  WhyWorld& world = input.world;
  DIBS_TRY(world.configuration,
           read_scheduler_config(flags.config, gates, runtime::system_files()));
  world.features = alloc::Features::from_gates(gates);
  world.release = gates.minor();
  input.release = flags.release;
  input.feature_gates = flags.feature_gates;
  input.as_json = flags.output == "json";
  return input;
}

Result<PlanOutcome> answer(const PlanFlags& flags, PlanInput input) {
  runtime::Files& files = runtime::system_files();
  WhyWorld& world = input.world;
  DIBS_TRY(const client::Access access, find_access(flags.kubeconfig, flags.context));
  input.name_space = flags.name_space.empty() ? access.default_namespace : flags.name_space;
  std::vector<std::string> refused;
  {
    runtime::RealRuntime runtime;
    DIBS_TRY(const auto transport, client::make_https_transport(access, files, runtime.runtime()));
    client::Client client(*transport);
    FetchScope scope;
    scope.name_space = input.name_space;
    scope.workloads = true;
    scope.storage = true;
    DIBS_TRY(world.objects, fetch_objects(client, scope));
    refused = world.objects.refused;
    if (world.objects.blind) {
      return Error::forbidden(cat("nothing can be planned without ", join(refused, ", ")));
    }
    input.more = fetch_more(client, refused);
    world.now = runtime.runtime().clock.now();
  }
  leave_out_replaced(input);
  DIBS_TRY(PlanOutcome made, make_plan(std::move(input)));
  for (const std::string& text : refused) {
    append(made.errors, "dibs plan: told without ", text, "\n");
  }
  return made;
}

}  // namespace

Result<PlanOutcome> make_plan(PlanInput input) {
  std::erase_if(input.world.objects.pods, [](const Value& pod) {
    const auto phase = pod["status"]["phase"].as_string();
    return phase == "Succeeded" || phase == "Failed" ||
           pod["metadata"]["deletionTimestamp"].is_string();
  });
  DIBS_TRY(const auto cluster, PlanCluster::start(input));
  return Planner(std::move(input), *cluster).run();
}

PlanOutcome plan(const PlanFlags& flags, std::istream& input) {
  const auto failed = [](int status, const Error& error) {
    return PlanOutcome{status, "", cat("dibs plan: ", error.message(), "\n")};
  };
  auto read = read_input(flags, input);
  if (!read.ok()) return failed(2, read.error());
  auto made = answer(flags, std::move(*read));
  return made.ok() ? std::move(*made) : failed(1, made.error());
}

}  // namespace dibs::cli
