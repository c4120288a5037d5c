// Copies of the selected rows of a lane to their places in another one. Other rows of the output stay as they are.

#ifndef LANES_SIMD_COPY_H_
#define LANES_SIMD_COPY_H_

#include <cstddef>
#include <cstdint>

namespace lanes {
namespace simd {

// out[i] = values[i] for selected rows i.
void copy_selected(const uint16_t* values, size_t rows, const uint64_t* selection, uint16_t* out) noexcept;
void copy_selected(const uint32_t* values, size_t rows, const uint64_t* selection, uint32_t* out) noexcept;
void copy_selected(const uint64_t* values, size_t rows, const uint64_t* selection, uint64_t* out) noexcept;

// out[i] = value for selected rows i.
void fill_selected(uint16_t value, size_t rows, const uint64_t* selection, uint16_t* out) noexcept;
void fill_selected(uint32_t value, size_t rows, const uint64_t* selection, uint32_t* out) noexcept;
void fill_selected(uint64_t value, size_t rows, const uint64_t* selection, uint64_t* out) noexcept;

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_COPY_H_
