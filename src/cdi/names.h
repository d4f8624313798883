#pragma once
// How devices are named: `vendor/class=device`, for example `gpu.example.com/gpu=gpu-0`.
//
// A spec file has one kind, `vendor/class`; the name of a device is unique within it. Messages are
// those of the library that other runtimes use.

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs::cdi {

struct QualifiedName {
  std::string vendor = {};
  std::string class_name = {};
  std::string device = {};
};

std::string qualified_name(std::string_view vendor, std::string_view class_name,
                           std::string_view device);
Result<QualifiedName> parse_qualified_name(std::string_view name);

struct Kind {
  std::string vendor = {};
  std::string class_name = {};
};

/// Splits `vendor/class`; without both parts the vendor is empty and the class the whole text.
Kind split_kind(std::string_view kind);

Result<> check_vendor(std::string_view vendor);
Result<> check_class(std::string_view class_name);
Result<> check_device(std::string_view device);
/// Keys are qualified names as in Kubernetes, 256 KiB in all. `owner` stands before the message.
Result<> check_annotations(std::string_view owner,
                           const std::map<std::string, std::string>& annotations);

}  // namespace dibs::cdi
