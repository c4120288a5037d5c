// Sorted lanes: where a key is, and how two lanes interleave.

#ifndef LANES_SIMD_SEARCH_H_
#define LANES_SIMD_SEARCH_H_

#include <cstddef>
#include <cstdint>

namespace lanes {
namespace simd {

// Whether no value is less than the one before it.
bool is_sorted(const int64_t* values, size_t rows) noexcept;

// The number of values of a sorted lane that are less than the key, or at most the key if
// `inclusive`.
size_t count_before(const int64_t* values, size_t rows, int64_t key, bool inclusive) noexcept;

// out[i] = count_before(right, right_rows, left[i], inclusive), for two sorted lanes.
void merge_positions(const int64_t* left, size_t left_rows, const int64_t* right, size_t right_rows, bool inclusive,
                     uint32_t* out) noexcept;

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_SEARCH_H_
