// The merge, for one chain of left rows l.. and right rows r..:
//
//   while left and right rows remain: out[l] = r; if right[r] comes before left[l] then r += 1 else l += 1
//   for the left rows that remain: out[l] = r
//
// How the lanes interleave is not predictable, so the step has no branch: then its speed is bound by the chain of load, compare
// and add from one step to the next. Four chains, each over a quarter of the left rows, run in turns and hide that. They run
// without a check for as many steps as even a chain that only ever takes from one side has rows.

#include "kernels/search.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/search.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

bool IsSorted(const int64_t* values, size_t rows) {
  const hn::ScalableTag<int64_t> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<int64_t>());
  constexpr size_t kStep = 4 * kLanes;
  size_t row = 0;
  for (; row + kStep < rows; row += kStep) {
    auto falls = hn::Lt(hn::LoadU(d, values + row + 1), hn::LoadU(d, values + row));
    for (size_t i = kLanes; i < kStep; i += kLanes) {
      falls = hn::Or(falls, hn::Lt(hn::LoadU(d, values + row + i + 1), hn::LoadU(d, values + row + i)));
    }
    if (!hn::AllFalse(d, falls)) return false;
  }
  for (; row + 1 < rows; ++row) {
    if (values[row + 1] < values[row]) return false;
  }
  return true;
}

template <bool kInclusive>
HWY_INLINE bool ComesBefore(int64_t value, int64_t key) {
  return kInclusive ? value <= key : value < key;
}

template <bool kInclusive>
HWY_INLINE size_t CountBeforeIn(const int64_t* values, size_t rows, int64_t key) {
  size_t first = 0;
  while (rows > 1) {
    const size_t half = rows / 2;
    first += half * static_cast<size_t>(ComesBefore<kInclusive>(values[first + half - 1], key));
    rows -= half;
  }
  return rows == 0 ? 0 : first + static_cast<size_t>(ComesBefore<kInclusive>(values[first], key));
}

size_t CountBefore(const int64_t* values, size_t rows, int64_t key, bool inclusive) {
  return inclusive ? CountBeforeIn<true>(values, rows, key) : CountBeforeIn<false>(values, rows, key);
}

struct Chain {
  size_t left;
  size_t left_end;
  size_t right;
  size_t right_end;

  HWY_INLINE size_t SafeSteps() const {
    const size_t lefts = left_end - left;
    const size_t rights = right_end - right;
    return lefts < rights ? lefts : rights;
  }
};

template <bool kInclusive>
struct Merge {
  const int64_t* left;
  const int64_t* right;
  uint32_t* out;

  HWY_INLINE void Step(Chain& chain) const {
    const bool before = ComesBefore<kInclusive>(right[chain.right], left[chain.left]);
    out[chain.left] = static_cast<uint32_t>(chain.right);
    chain.right += static_cast<size_t>(before);
    chain.left += static_cast<size_t>(!before);
  }
  HWY_INLINE void Finish(Chain& chain) const {
    for (size_t steps = chain.SafeSteps(); steps != 0; steps = chain.SafeSteps()) {
      for (; steps != 0; --steps) Step(chain);
    }
    for (; chain.left < chain.left_end; ++chain.left) out[chain.left] = static_cast<uint32_t>(chain.right);
  }
};

// With more right rows for each left row than this, each left row is searched for.
constexpr size_t kRightRowsPerLeftMax = 32;
// Chains with fewer steps are finished alone.
constexpr size_t kStepsMin = 8;

template <bool kInclusive>
HWY_INLINE void MergePositionsIn(const int64_t* left, size_t left_rows, const int64_t* right, size_t right_rows,
                                 uint32_t* out) {
  if (right_rows / kRightRowsPerLeftMax > left_rows) {
    for (size_t row = 0, from = 0; row < left_rows; ++row) {
      from += CountBeforeIn<kInclusive>(right + from, right_rows - from, left[row]);
      out[row] = static_cast<uint32_t>(from);
    }
    return;
  }
  const Merge<kInclusive> merge{left, right, out};
  const size_t quarter = left_rows / 4;
  if (quarter < kStepsMin) {
    Chain whole{0, left_rows, 0, right_rows};
    merge.Finish(whole);
    return;
  }
  // The right rows of a chain end where those of the next begin: no left row of it goes further.
  // Searched for from there on, they are in order even if the lanes are not.
  const size_t second = CountBeforeIn<kInclusive>(right, right_rows, left[quarter]);
  const size_t third = second + CountBeforeIn<kInclusive>(right + second, right_rows - second, left[2 * quarter]);
  const size_t fourth = third + CountBeforeIn<kInclusive>(right + third, right_rows - third, left[3 * quarter]);
  Chain a{0, quarter, 0, second};
  Chain b{quarter, 2 * quarter, second, third};
  Chain c{2 * quarter, 3 * quarter, third, fourth};
  Chain e{3 * quarter, left_rows, fourth, right_rows};
  for (;;) {
    size_t steps = a.SafeSteps();
    if (b.SafeSteps() < steps) steps = b.SafeSteps();
    if (c.SafeSteps() < steps) steps = c.SafeSteps();
    if (e.SafeSteps() < steps) steps = e.SafeSteps();
    if (steps < kStepsMin) break;
    for (; steps != 0; --steps) {
      merge.Step(a);
      merge.Step(b);
      merge.Step(c);
      merge.Step(e);
    }
  }
  merge.Finish(a);
  merge.Finish(b);
  merge.Finish(c);
  merge.Finish(e);
}

void MergePositions(const int64_t* left, size_t left_rows, const int64_t* right, size_t right_rows, bool inclusive,
                    uint32_t* out) {
  if (inclusive) {
    MergePositionsIn<true>(left, left_rows, right, right_rows, out);
  } else {
    MergePositionsIn<false>(left, left_rows, right, right_rows, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanes {
namespace simd {

HWY_EXPORT(IsSorted);
HWY_EXPORT(CountBefore);
HWY_EXPORT(MergePositions);

bool is_sorted(const int64_t* values, size_t rows) noexcept { return HWY_DYNAMIC_DISPATCH(IsSorted)(values, rows); }
size_t count_before(const int64_t* values, size_t rows, int64_t key, bool inclusive) noexcept {
  return HWY_DYNAMIC_DISPATCH(CountBefore)(values, rows, key, inclusive);
}
void merge_positions(const int64_t* left, size_t left_rows, const int64_t* right, size_t right_rows, bool inclusive,
                     uint32_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(MergePositions)(left, left_rows, right, right_rows, inclusive, out);
}

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
