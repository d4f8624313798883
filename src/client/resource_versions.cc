#include "client/resource_versions.h"

#include <vector>

#include "api/kinds/resource/versions/conversion.h"
#include "api/kinds/resource/versions/model.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::client {
namespace {

using json::Value;

constexpr std::string_view kGroupPath = "/apis/resource.k8s.io";
constexpr std::string_view kHubPath = "/apis/resource.k8s.io/v1";
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kAsStored = "application/json;as=Stored,application/json";

/// A request for v1 of the group: "/apis/resource.k8s.io/v1", then nothing, '/' or '?'.
bool concerns_hub(std::string_view target) {
  if (!target.starts_with(kHubPath)) return false;
  return target.size() == kHubPath.size() || target[kHubPath.size()] == '/' ||
         target[kHubPath.size()] == '?';
}

/// Of claims, templates and slices, which exist in both models.
bool concerns_two_models(std::string_view target) {
  constexpr std::string_view kNamespaces = "/namespaces/";
  target.remove_prefix(kHubPath.size());
  if (target.starts_with(kNamespaces)) {
    const std::size_t end = target.find('/', kNamespaces.size());
    if (end == std::string_view::npos) return false;
    target.remove_prefix(end);
  }
  if (!target.starts_with('/')) return false;
  target.remove_prefix(1);
  const std::string_view resource = target.substr(0, target.find_first_of("/?"));
  return resource == "resourceclaims" || resource == "resourceclaimtemplates" ||
         resource == "resourceslices";
}

/// "" when the server has none that parts can work with.
std::string best_version(const Value& group) {
  for (std::string_view wanted : {"v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"}) {
    for (const Value& version : group["versions"].items()) {
      if (version["version"].as_string() == wanted) return std::string(wanted);
    }
  }
  return "";
}

/// Between what parts say and the newest version that the server has.
class Converter {
 public:
  explicit Converter(std::string version)
      : version_(std::move(version)), api_version_(cat("resource.k8s.io/", version_)) {}

  Request request(Request request) const {
    const bool writes = request.method == "POST" || request.method == "PUT";
    const auto body = !writes                   ? Result<Value>(Value())
                      : request.value.is_null() ? json::parse(request.body)
                                                : Result<Value>(request.value);
    if (body.ok() && api::is_classic(*body)) return at(std::move(request), "v1alpha2");
    if (version_ == "v1") return as_stored(std::move(request));
    if (converts() && body.ok() && (*body)["apiVersion"].as_string() == "resource.k8s.io/v1") {
      request.body.clear();
      request.value = to_served(*body);
    }
    return at(std::move(request), version_);
  }

  /// False: answers and events are what parts want to see.
  bool converts() const { return version_ != "v1" && version_ != "v1alpha2"; }

  Value to_served(const Value& object) const { return of(object).show(object); }

  /// An object, a list of them, or anything else as it is.
  Value from_served(const Value& object) const {
    if (object["apiVersion"].as_string() != api_version_) return object;
    if (object["items"].is_array()) {
      Value items = Value::array();
      for (const Value& item : object["items"].items()) items.push(one(item, object["kind"]));
      Value list = object;
      list.set("apiVersion", "resource.k8s.io/v1");
      list.set("items", std::move(items));
      return list;
    }
    return one(object, Value());
  }

  Response response(Response response) const {
    if (!converts()) return response;
    if (!response.value.is_null()) {
      response.value = from_served(response.value);
    } else if (const auto parsed = json::parse(response.body); parsed.ok()) {
      response.body = json::write(from_served(*parsed));
    }
    return response;
  }

  /// One line of a watch.
  std::string event(std::string_view line) const {
    auto parsed = json::parse(line);
    if (!parsed.ok()) return std::string(line);
    parsed->set("object", from_served((*parsed)["object"]));
    return json::write(*parsed);
  }

 private:
  static Request at(Request request, std::string_view version) {
    request.target = cat(kGroupPath, "/", version, request.target.substr(kHubPath.size()));
    return request;
  }

  /// Who asks for metadata alone, or for a table, gets that.
  static Request as_stored(Request request) {
    if (request.method == "GET" && request.headers.get("Accept") == kJson &&
        concerns_two_models(request.target)) {
      request.headers.set("Accept", std::string(kAsStored));
    }
    return request;
  }

  /// 1.31 is the only release whose newest version is v1alpha3.
  int release() const { return version_ == "v1alpha3" ? 31 : 0; }

  api::Conversion of(const Value& object) const {
    return {object["kind"].as_string(), version_, release()};
  }

  Value one(const Value& object, const Value& list_kind) const {
    Value whole = object;
    // Items of a list name neither version nor kind.
    if (whole["kind"].is_null() && list_kind.is_string()) {
      std::string_view kind = list_kind.as_string();
      kind.remove_suffix(std::string_view("List").size());
      whole.set("kind", kind);
      whole.set("apiVersion", api_version_);
    }
    auto converted = of(whole).store(whole, nullptr);
    return converted.ok() ? *std::move(converted) : object;
  }

  std::string version_;
  std::string api_version_;
};

using ConverterPtr = std::shared_ptr<const Converter>;  // null: not known

/// What the server was found to have. Shared by requests in flight, which may outlive the
/// transport.
struct State {
  Mutex mutex;
  bool asking DIBS_GUARDED_BY(mutex) = false;
  ConverterPtr converter DIBS_GUARDED_BY(mutex);
  std::vector<std::function<void(ConverterPtr)>> waiting DIBS_GUARDED_BY(mutex);

  /// The answer to a GET of the group. One that says nothing leaves the question open, and those
  /// who waited meet the server's own answer.
  ConverterPtr learn(const Result<Response>& answer) {
    std::vector<std::function<void(ConverterPtr)>> callers;
    ConverterPtr found;
    {
      const MutexLock lock(mutex);
      asking = false;
      if (answer.ok() && answer->status == 200) {
        if (const auto group = json::parse(answer->body); group.ok()) {
          const std::string version = best_version(*group);
          if (!version.empty()) converter = std::make_shared<Converter>(version);
        }
      }
      found = converter;
      callers.swap(waiting);
    }
    for (auto& caller : callers) caller(found);
    return found;
  }
};

/// A stream that may have to wait for the version before it is opened.
struct Opened {
  Mutex mutex;
  bool cancelled DIBS_GUARDED_BY(mutex) = false;
  std::unique_ptr<TransportStream> stream DIBS_GUARDED_BY(mutex);
};

class OpenedStream final : public TransportStream {
 public:
  explicit OpenedStream(std::shared_ptr<Opened> opened) : opened_(std::move(opened)) {}
  ~OpenedStream() override {
    std::unique_ptr<TransportStream> ended;  // outside of the lock: its end may wait for a handler
    const MutexLock lock(opened_->mutex);
    opened_->cancelled = true;
    ended = std::move(opened_->stream);
  }

 private:
  std::shared_ptr<Opened> opened_;
};

/// Takes the lines of a watch, or its events, and hands them on converted.
StreamHandlers converting(ConverterPtr converter, StreamHandlers handlers) {
  auto shared = std::make_shared<StreamHandlers>(std::move(handlers));
  auto rest = std::make_shared<std::string>();
  StreamHandlers made;
  made.opened = shared->opened;
  made.data = [converter, shared, rest](std::string_view bytes) {
    rest->append(bytes);
    std::string out;
    std::size_t from = 0;
    for (std::size_t end; (end = rest->find('\n', from)) != std::string::npos; from = end + 1) {
      append(out, converter->event(std::string_view(*rest).substr(from, end - from)), "\n");
    }
    rest->erase(0, from);
    if (!out.empty() && shared->data) shared->data(out);
  };
  if (shared->event) {
    made.event = [converter, shared](std::string_view type, const Value& object) {
      shared->event(type, converter->from_served(object));
    };
  }
  made.ended = [shared, rest](Result<> outcome) {
    // A refusal comes as one Status without a newline.
    if (!rest->empty() && shared->data) shared->data(*rest);
    if (shared->ended) shared->ended(std::move(outcome));
  };
  return made;
}

class ResourceTransport final : public Transport {
 public:
  explicit ResourceTransport(std::unique_ptr<Transport> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}
  explicit ResourceTransport(Transport& inner) : inner_(inner) {}

  json::Pool& trees() override { return inner_.trees(); }

  Result<Response> send(Request request) override {
    if (!concerns_hub(request.target)) return inner_.send(std::move(request));
    ConverterPtr converter;
    {
      const MutexLock lock(state_->mutex);
      converter = state_->converter;
    }
    if (!converter) converter = state_->learn(inner_.send(question()));
    if (!converter) return inner_.send(std::move(request));
    DIBS_TRY(Response response, inner_.send(converter->request(std::move(request))));
    return converter->response(std::move(response));
  }

  void send_async(Request request, std::function<void(Result<Response>)> done) override {
    if (!concerns_hub(request.target))
      return inner_.send_async(std::move(request), std::move(done));
    when_known([&inner = inner_, request = std::move(request),
                done = std::move(done)](ConverterPtr converter) mutable {
      if (!converter) return inner.send_async(std::move(request), std::move(done));
      inner.send_async(converter->request(std::move(request)),
                       [converter, done = std::move(done)](Result<Response> response) {
                         if (!response.ok()) return done(std::move(response));
                         done(converter->response(std::move(*response)));
                       });
    });
  }

  std::unique_ptr<TransportStream> open_stream(Request request, StreamHandlers handlers) override {
    if (!concerns_hub(request.target)) {
      return inner_.open_stream(std::move(request), std::move(handlers));
    }
    auto opened = std::make_shared<Opened>();
    when_known([&inner = inner_, opened, request = std::move(request),
                handlers = std::move(handlers)](ConverterPtr converter) mutable {
      const MutexLock lock(opened->mutex);
      if (opened->cancelled) return;
      if (converter) request = converter->request(std::move(request));
      if (converter && converter->converts()) handlers = converting(converter, std::move(handlers));
      opened->stream = inner.open_stream(std::move(request), std::move(handlers));
    });
    return std::make_unique<OpenedStream>(opened);
  }

  bool protects_allocations() const override { return inner_.protects_allocations(); }

 private:
  static Request question() { return make_request("GET", std::string(kGroupPath)); }

  void when_known(std::function<void(ConverterPtr)> then) {
    MutexLock lock(state_->mutex);
    if (ConverterPtr converter = state_->converter) {
      lock.unlock();
      return then(std::move(converter));
    }
    state_->waiting.push_back(std::move(then));
    if (std::exchange(state_->asking, true)) return;
    lock.unlock();
    inner_.send_async(question(),
                      [state = state_](const Result<Response>& answer) { state->learn(answer); });
  }

  std::unique_ptr<Transport> owned_;  // null: inner_ is somebody else's
  Transport& inner_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

std::unique_ptr<Transport> make_resource_transport(std::unique_ptr<Transport> inner) {
  return std::make_unique<ResourceTransport>(std::move(inner));
}

std::unique_ptr<Transport> make_resource_transport(Transport& inner) {
  return std::make_unique<ResourceTransport>(inner);
}

}  // namespace dibs::client
