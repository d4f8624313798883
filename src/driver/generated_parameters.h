#pragma once
// Parameters that the scheduler understands, made from a vendor's own (release 1.30).
//
// A claim or class may refer to an object of a kind that only the driver knows. Where the scheduler
// allocates (`structuredParameters: true` of the class), it looks for a ResourceClaimParameters or
// ResourceClassParameters whose generatedFrom says that reference. This keeps one for every object
// of such a kind: made, changed and deleted with it, and owned by it.
//
// Objects are named after what they were made from, so several instances may run at once. An object
// that cannot be translated gets an event `Failed`, and nothing stands for it: its claims wait.
// Those that somebody else made are left alone.
//
// Life: start() returns at once, and waits for the kind to be served. Thread-safe.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "driver/object_finder.h"
#include "driver/plugin.h"
#include "json/value.h"

namespace dibs::driver {

struct GeneratedParametersOptions {
  std::string driver_name = {};
  /// Of the vendor's objects.
  ParameterKind kind = {};
  /// For classes, else for claims.
  bool of_classes = false;
  /// Where parameters of classes go that are made from objects without a namespace.
  std::string name_space = "default";
};

/// What is made from a vendor's object, without metadata and generatedFrom: {"shareable",
/// "driverRequests"} for claims, {"vendorParameters", "filters"} for classes. Called by one thread
/// at a time.
using Generate = std::function<Result<json::Value>(const json::Value& vendor)>;

class GeneratedParameters {
 public:
  /// What the environment refers to must outlive it.
  static std::unique_ptr<GeneratedParameters> start(Generate generate, Environment environment,
                                                    GeneratedParametersOptions options);
  /// As stop().
  ~GeneratedParameters();
  GeneratedParameters(const GeneratedParameters&) = delete;
  GeneratedParameters& operator=(const GeneratedParameters&) = delete;

  void stop();

 private:
  GeneratedParameters();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::driver
