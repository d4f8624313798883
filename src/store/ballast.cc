#include "store/ballast.h"

namespace dibs::store {

bool Ballast::take() {
  held_ = bytes_ > 0 && disk_.allocate(path_, bytes_);
  return held_;
}

bool Ballast::release() {
  held_ = false;
  return bytes_ > 0 && disk_.remove(path_);
}

}  // namespace dibs::store
