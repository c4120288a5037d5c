#include "kernels/distance.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/stripes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

float Dot(const float* left, const float* right, size_t dimensions) {
  return StripedSum<float>(Products<float>(left, right), dimensions, nullptr);
}
float L2Squared(const float* left, const float* right, size_t dimensions) {
  return StripedSum<float>(SquaredDifferences<float>(left, right), dimensions, nullptr);
}
float NormSquared(const float* values, size_t dimensions) {
  return StripedSum<float>(Squares<Values<float>>(values), dimensions, nullptr);
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanes {
namespace simd {

HWY_EXPORT(Dot);
HWY_EXPORT(L2Squared);
HWY_EXPORT(NormSquared);

float dot(const float* left, const float* right, size_t dimensions) noexcept {
  return HWY_DYNAMIC_DISPATCH(Dot)(left, right, dimensions);
}
float l2_squared(const float* left, const float* right, size_t dimensions) noexcept {
  return HWY_DYNAMIC_DISPATCH(L2Squared)(left, right, dimensions);
}
float norm_squared(const float* values, size_t dimensions) noexcept {
  return HWY_DYNAMIC_DISPATCH(NormSquared)(values, dimensions);
}

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
