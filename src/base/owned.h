#pragma once
// Owners of what a C library makes: each object is freed by that library's own function. No header
// of the library is needed here.

#include <memory>

namespace dibs {

template <auto free_function>
struct Freed {
  template <typename T>
  void operator()(T* pointer) const {
    free_function(pointer);
  }
};

template <typename T, auto free_function>
using Owned = std::unique_ptr<T, Freed<free_function>>;

}  // namespace dibs
