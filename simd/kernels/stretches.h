// Stretches: consecutive rows that belong together. They are described by their starts: stretch k
// is rows starts[k] to starts[k + 1], so there is one more start than there are stretches.

#ifndef LANES_SIMD_STRETCHES_H_
#define LANES_SIMD_STRETCHES_H_

#include "kernels/numbers.h"

namespace lanes {
namespace simd {

// Cuts rows wherever a value's bits differ from the value before. Returns the number of stretches
// and writes their starts, without the end of the last one. With more than `most` stretches it
// stops: it then returns a greater number and has written at most `most` starts.
size_t cut_stretches(const uint16_t* values, size_t rows, size_t most, uint32_t* starts) noexcept;
size_t cut_stretches(const uint32_t* values, size_t rows, size_t most, uint32_t* starts) noexcept;
size_t cut_stretches(const uint64_t* values, size_t rows, size_t most, uint32_t* starts) noexcept;

// The number of values before the first that is less than `low` or greater than `high`.
size_t count_within(const int64_t* values, size_t rows, int64_t low, int64_t high) noexcept;

// sums[k] = the sum of the selected rows of stretch k, row i of the lane in stripe i % 16: see stripes-inl.h.
void stretch_sums(const float* values, const uint64_t* selection, const uint32_t* starts, size_t stretches, float* sums) noexcept;
void stretch_sums(const double* values, const uint64_t* selection, const uint32_t* starts, size_t stretches, double* sums) noexcept;
// Floats summed as doubles.
void stretch_sums_wide(const float* values, const uint64_t* selection, const uint32_t* starts, size_t stretches,
                   double* sums) noexcept;

// best[groups[k]] = the least (greatest) of best[groups[k]] and the values of stretch k, the last of those that are equal. NaN is
// greatest.
#define LANES_DECLARE(T, Suffix)                                                                           \
  void stretch_minimum(const T* values, const uint32_t* starts, const uint32_t* groups, size_t stretches, T* best) noexcept; \
  void stretch_maximum(const T* values, const uint32_t* starts, const uint32_t* groups, size_t stretches, T* best) noexcept;
LANES_NUMBERS(LANES_DECLARE)
#undef LANES_DECLARE

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_STRETCHES_H_
