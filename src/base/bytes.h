#pragma once
// Immutable bytes shared between a store, caches and connections without a copy.

#include <memory>
#include <string>

namespace dibs {

using SharedBytes = std::shared_ptr<const std::string>;

inline SharedBytes share(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

}  // namespace dibs
