// Comparisons of lanes to selection bitmaps: bit i % 64 of word i / 64 is set if row i qualifies.
// Every kernel writes ceil(rows / 64) whole words, with zero bits past the last row.
//
// Floats are ordered as in PostgreSQL: NaN equals NaN and is greater than all other numbers, -0
// equals +0.

#ifndef LANES_SIMD_SELECT_H_
#define LANES_SIMD_SELECT_H_

#include "kernels/numbers.h"

namespace lanes {
namespace simd {

enum class Comparison : uint8_t { Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual };

#define LANES_DECLARE(T, Suffix)                                                                                     \
  /* Row i qualifies if `values[i] operator constant`. */                                                            \
  void compare(const T* values, size_t rows, Comparison comparison, T constant, uint64_t* out) noexcept;             \
  /* Row i qualifies if `low <= values[i] <= high`. */                                                               \
  void between(const T* values, size_t rows, T low, T high, uint64_t* out) noexcept;                                 \
  /* Row i qualifies if `left[i] operator right[i]`. */                                                              \
  void compare_pairs(const T* left, const T* right, size_t rows, Comparison comparison, uint64_t* out) noexcept;
LANES_NUMBERS(LANES_DECLARE)
#undef LANES_DECLARE

// Row i qualifies if bit `codes[i]` of `set` is set. Each code, including codes of rows that do not
// count, has a bit in `set`.
void member(const uint32_t* codes, size_t rows, const uint64_t* set, uint64_t* out) noexcept;

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_SELECT_H_
