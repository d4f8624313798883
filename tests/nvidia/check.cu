// A CUDA program that checks its result, for real.py: y = a * x + y on every device that it sees.
//
//   cuda-check            once
//   cuda-check ARGUMENT…  again and again until SIGTERM, whatever the arguments are: it stands for samples of others, too
//
// Prints "devices N", a line for each, "first kernel MILLISECONDS" since 1970, and "PASSED" or "FAILED: why".
#include <cuda_runtime.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <vector>

#include <unistd.h>

namespace {

constexpr int kCount = 1 << 20;
constexpr float kFactor = 3.0F;
volatile std::sig_atomic_t ended = 0;

__global__ void saxpy(int count, float factor, const float* x, float* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) y[i] = factor * x[i] + y[i];
}

int fail(const char* doing, cudaError_t error) {
  std::printf("FAILED: %s: %s\n", doing, cudaGetErrorString(error));
  return 1;
}

#define CHECK(call)                                                           \
  do {                                                                        \
    const cudaError_t error = (call);                                         \
    if (error != cudaSuccess) return fail(#call, error);                      \
  } while (false)

int run_on(int device) {
  CHECK(cudaSetDevice(device));
  std::vector<float> x(kCount);
  std::vector<float> y(kCount);
  for (int i = 0; i < kCount; ++i) {
    x[i] = static_cast<float>(i % 1000);
    y[i] = static_cast<float>(i % 7);
  }
  const std::vector<float> before = y;
  float* on_x = nullptr;
  float* on_y = nullptr;
  CHECK(cudaMalloc(&on_x, kCount * sizeof(float)));
  CHECK(cudaMalloc(&on_y, kCount * sizeof(float)));
  CHECK(cudaMemcpy(on_x, x.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(on_y, y.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  saxpy<<<(kCount + 255) / 256, 256>>>(kCount, kFactor, on_x, on_y);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  static bool told = false;
  if (!told) {
    told = true;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::printf("first kernel %lld\n",
                static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
  }
  CHECK(cudaMemcpy(y.data(), on_y, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(on_x));
  CHECK(cudaFree(on_y));
  for (int i = 0; i < kCount; ++i) {
    if (y[i] == kFactor * x[i] + before[i]) continue;
    std::printf("FAILED: element %d is %f\n", i, static_cast<double>(y[i]));
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char**) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::signal(SIGTERM, [](int) { ended = 1; });
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  std::printf("devices %d\n", count);
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp is = {};
    CHECK(cudaGetDeviceProperties(&is, i));
    std::printf("device %d: %s, %d multiprocessors, %zu MiB\n", i, is.name, is.multiProcessorCount, is.totalGlobalMem >> 20);
  }
  long rounds = 0;
  do {
    for (int i = 0; i < count; ++i) {
      if (run_on(i) != 0) return 1;
    }
    if (rounds++ == 0) std::printf("PASSED\n");
    if (argc > 1 && ended == 0) usleep(100000);
  } while (argc > 1 && ended == 0);
  if (argc > 1) std::printf("rounds %ld\n", rounds);
  return 0;
}
