// Grouped aggregates: row i belongs to group `groups[i]`, and the accumulators are indexed by group. They are added to, so
// the caller begins with zeros (extremes: with what any value beats), and may go on with the next rows of a lane.
//
// Rows are added one after the other in row order, with one exception that makes sorted lanes fast: a block of 64 rows (rows
// 64 j to 64 j + 63), all selected and all of one group, is summed first, floats in the order of stripes-inl.h, and its sum
// is added. So the order depends on the rows alone, never on the target.

#ifndef LANES_SIMD_GROUP_H_
#define LANES_SIMD_GROUP_H_

#include "kernels/numbers.h"

namespace lanes {
namespace simd {

// counts[g] += the number of rows.
void group_count(const uint32_t* groups, size_t rows, const uint64_t* selection, uint64_t* counts) noexcept;

// sums[g] += value and, unless `counts` is null, counts[g] += 1. Integer sums wrap.
#define LANES_DECLARE(T, Sum)                                                                                \
  void group_sum(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, Sum* sums, \
                 uint64_t* counts) noexcept;
LANES_DECLARE(int16_t, int64_t)
LANES_DECLARE(int32_t, int64_t)
LANES_DECLARE(uint32_t, int64_t)
LANES_DECLARE(float, float)
LANES_DECLARE(double, double)
#undef LANES_DECLARE
// Floats summed as doubles.
void group_sum_wide(const uint32_t* groups, const float* values, size_t rows, const uint64_t* selection, double* sums,
                    uint64_t* counts) noexcept;
// int64 values to 128-bit sums, each two words, low word first, aligned to 16 bytes.
void group_sum_long(const uint32_t* groups, const int64_t* values, size_t rows, const uint64_t* selection, uint64_t* sums,
                    uint64_t* counts) noexcept;

// best[g] = the least (greatest) of best[g] and the value, the value if they are equal. NaN is greatest.
#define LANES_DECLARE(T, Suffix)                                                                                       \
  void group_minimum(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, T* best) noexcept; \
  void group_maximum(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, T* best) noexcept;
LANES_NUMBERS(LANES_DECLARE)
#undef LANES_DECLARE

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_GROUP_H_
