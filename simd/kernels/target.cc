#include "kernels/target.h"

#include "hwy/highway.h"

namespace lanes {
namespace simd {

namespace {
// The targets that a file with dynamic dispatch is compiled for; `hwy::SupportedTargets` knows only what the CPU has.
constexpr int64_t kCompiled = HWY_TARGETS;
}  // namespace

int64_t supported_targets() noexcept {
  hwy::SetSupportedTargetsForTest(0);
  return hwy::SupportedTargets() & kCompiled;
}

void restrict_targets(int64_t targets) noexcept {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

const char* target_name(int64_t target) noexcept { return hwy::TargetName(target); }

}  // namespace simd
}  // namespace lanes
