// Distances of vectors of floats, summed as floats in the order of stripes-inl.h.

#ifndef LANES_SIMD_DISTANCE_H_
#define LANES_SIMD_DISTANCE_H_

#include <cstddef>

namespace lanes {
namespace simd {

// The sum of left[i] * right[i].
float dot(const float* left, const float* right, size_t dimensions) noexcept;
// The sum of (left[i] - right[i])^2.
float l2_squared(const float* left, const float* right, size_t dimensions) noexcept;
// The sum of values[i]^2.
float norm_squared(const float* values, size_t dimensions) noexcept;

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_DISTANCE_H_
