#include "kernels/frames.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/frames.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

// The frames of `kVectors` vectors: enough that additions do not wait for each other, and few enough for registers.
template <size_t kVectors, typename T>
HWY_INLINE void FramesSideBySide(const T* values, size_t width, bool from_zero, T* sums) {
  const hn::ScalableTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  hn::Vec<decltype(d)> all[kVectors];
  for (size_t k = 0; k < kVectors; ++k) {
    const auto first = hn::LoadU(d, values + k * kLanes);
    all[k] = from_zero ? hn::Add(hn::Zero(d), first) : first;
  }
  for (size_t step = 1; step < width; ++step) {
    for (size_t k = 0; k < kVectors; ++k) {
      all[k] = hn::Add(all[k], hn::LoadU(d, values + step + k * kLanes));
    }
  }
  for (size_t k = 0; k < kVectors; ++k) hn::StoreU(all[k], d, sums + k * kLanes);
}

template <typename T>
HWY_INLINE void FrameSums(const T* values, size_t frames, size_t width, bool from_zero, T* sums) {
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  constexpr size_t kVectors = 8;
  size_t i = 0;
  for (; i + kVectors * kLanes <= frames; i += kVectors * kLanes) {
    FramesSideBySide<kVectors>(values + i, width, from_zero, sums + i);
  }
  for (; i + kLanes <= frames; i += kLanes) FramesSideBySide<1>(values + i, width, from_zero, sums + i);
  for (; i < frames; ++i) {
    T sum = from_zero ? T{0} + values[i] : values[i];
    for (size_t step = 1; step < width; ++step) sum += values[i + step];
    sums[i] = sum;
  }
}

void FrameSumsF32(const float* values, size_t frames, size_t width, bool from_zero, float* sums) {
  FrameSums(values, frames, width, from_zero, sums);
}
void FrameSumsF64(const double* values, size_t frames, size_t width, bool from_zero, double* sums) {
  FrameSums(values, frames, width, from_zero, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanes {
namespace simd {

HWY_EXPORT(FrameSumsF32);
HWY_EXPORT(FrameSumsF64);

void frame_sums(const float* values, size_t frames, size_t width, bool from_zero, float* sums) noexcept {
  HWY_DYNAMIC_DISPATCH(FrameSumsF32)(values, frames, width, from_zero, sums);
}
void frame_sums(const double* values, size_t frames, size_t width, bool from_zero, double* sums) noexcept {
  HWY_DYNAMIC_DISPATCH(FrameSumsF64)(values, frames, width, from_zero, sums);
}

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
