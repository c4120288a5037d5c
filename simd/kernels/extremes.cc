#include "kernels/aggregate.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/extremes.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/extremes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

#define LANES_DEFINE(T, Suffix)                                                                        \
  bool Minimum##Suffix(const T* values, size_t rows, const uint64_t* selection, T* out) {              \
    return ExtremeOf<T, false>(values, rows, selection, out);                                          \
  }                                                                                                    \
  bool Maximum##Suffix(const T* values, size_t rows, const uint64_t* selection, T* out) {              \
    return ExtremeOf<T, true>(values, rows, selection, out);                                           \
  }
LANES_NUMBERS(LANES_DEFINE)
#undef LANES_DEFINE

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanes {
namespace simd {

#define LANES_DISPATCH(T, Suffix)                                                                      \
  HWY_EXPORT(Minimum##Suffix);                                                                         \
  HWY_EXPORT(Maximum##Suffix);                                                                         \
  bool minimum(const T* values, size_t rows, const uint64_t* selection, T* out) noexcept {             \
    return HWY_DYNAMIC_DISPATCH(Minimum##Suffix)(values, rows, selection, out);                        \
  }                                                                                                    \
  bool maximum(const T* values, size_t rows, const uint64_t* selection, T* out) noexcept {             \
    return HWY_DYNAMIC_DISPATCH(Maximum##Suffix)(values, rows, selection, out);                        \
  }
LANES_NUMBERS(LANES_DISPATCH)
#undef LANES_DISPATCH

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
