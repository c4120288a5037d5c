// Which of the instruction sets that the kernels are compiled for are used.

#ifndef LANES_SIMD_TARGET_H_
#define LANES_SIMD_TARGET_H_

#include <cstddef>
#include <cstdint>

namespace lanes {
namespace simd {

// One bit each, in Highway's numbering, best target lowest: those compiled in that this CPU has.
int64_t supported_targets() noexcept;
// From now on kernels run on the best of `targets`; 0 for the best of all. For tests: of the whole process.
void restrict_targets(int64_t targets) noexcept;
// A name of static storage duration, ending in a zero byte.
const char* target_name(int64_t target) noexcept;

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_TARGET_H_
