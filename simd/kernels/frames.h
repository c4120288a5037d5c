// Sums of frames: of as many consecutive rows each, a frame beginning at each row. The rows of a frame are added one
// after the other from its first to its last, so each sum is to the bit what a loop over the frame finds. Frames that
// follow each other are summed side by side, because their sums do not depend on one another.

#ifndef LANES_SIMD_FRAMES_H_
#define LANES_SIMD_FRAMES_H_

#include <cstddef>

namespace lanes {
namespace simd {

// sums[i] = values[i] + ... + values[i + width - 1] for i < frames, after a zero if `from_zero`. There are
// `frames + width - 1` values; `width` is at least 1.
void frame_sums(const float* values, size_t frames, size_t width, bool from_zero, float* sums) noexcept;
void frame_sums(const double* values, size_t frames, size_t width, bool from_zero, double* sums) noexcept;

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_FRAMES_H_
