// The algebra of selection bitmaps. Words are written whole, the bits past the last row zero; when read, those bits do not
// matter. `out` may be one of the inputs.

#ifndef LANES_SIMD_COMBINE_H_
#define LANES_SIMD_COMBINE_H_

#include <cstddef>
#include <cstdint>

namespace lanes {
namespace simd {

void and_words(const uint64_t* left, const uint64_t* right, size_t rows, uint64_t* out) noexcept;
// The rows of `left` that are not in `right`.
void and_not_words(const uint64_t* left, const uint64_t* right, size_t rows, uint64_t* out) noexcept;
void or_words(const uint64_t* left, const uint64_t* right, size_t rows, uint64_t* out) noexcept;
void not_words(const uint64_t* words, size_t rows, uint64_t* out) noexcept;

// The number of selected rows.
uint64_t count_ones(const uint64_t* words, size_t rows) noexcept;
// The number of rows that are selected in both.
uint64_t count_ones_and(const uint64_t* left, const uint64_t* right, size_t rows) noexcept;

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_COMBINE_H_
