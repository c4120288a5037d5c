// The merge compares each of N left rows l.. (a vector) with each of N right rows r..:
//
//   passed = [r, r, ...]
//   while N left and N right rows remain:
//     out[l..] = passed += how many of right[r..] come before each of left[l..]
//     if the last of right[r..] comes before the last of left[l..] then r += N else l += N, passed = [r, r, ...]
//   row by row from there on
//
// How the lanes interleave is not predictable, so the step has no branch: then its speed is bound by the chain of load, compare
// and add from one step to the next. Two chains, each over half of the left rows, run in turns and hide that. They run without a
// check for as many steps as even a chain that only ever takes from one side has rows.

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

// What a merge has before it.
struct Chain {
  size_t left;
  size_t left_end;
  size_t right;
  size_t right_end;

  HWY_INLINE size_t SafeRows() const {
    const size_t lefts = left_end - left;
    const size_t rights = right_end - right;
    return lefts < rights ? lefts : rights;
  }
};

template <bool kInclusive>
struct Merge {
  using D = hn::CappedTag<int64_t, 4>;
  static constexpr size_t kLanes = hn::MaxLanes(D());

  const int64_t* left;
  const int64_t* right;
  uint32_t* out;

  // -1 where a right row comes before left rows; if rows of the same time do, 0 there and -1 elsewhere.
  static HWY_INLINE hn::Vec<D> Signs(int64_t right_row, hn::Vec<D> lefts) {
    const auto one = hn::Set(D(), right_row);
    return hn::VecFromMask(D(), kInclusive ? hn::Gt(one, lefts) : hn::Gt(lefts, one));
  }

  // Takes kLanes rows of one side; `passed` is of the left rows that are next.
  HWY_INLINE void Step(Chain& chain, hn::Vec<D>& passed) const {
    const D d;
    const auto lefts = hn::LoadU(d, left + chain.left);
    auto signs = Signs(right[chain.right], lefts);
    for (size_t i = 1; i < kLanes; ++i) signs = hn::Add(signs, Signs(right[chain.right + i], lefts));
    passed = kInclusive ? hn::Add(passed, hn::Add(signs, hn::Set(d, int64_t{kLanes}))) : hn::Sub(passed, signs);
    const hn::Rebind<uint64_t, D> wide;
    const hn::Rebind<uint32_t, D> narrow;
    hn::StoreU(hn::TruncateTo(narrow, hn::BitCast(wide, passed)), narrow, out + chain.left);
    const bool before = ComesBefore<kInclusive>(right[chain.right + kLanes - 1], left[chain.left + kLanes - 1]);
    chain.right += kLanes * static_cast<size_t>(before);
    chain.left += kLanes * static_cast<size_t>(!before);
    const auto same_lefts = hn::MaskFromVec(hn::Set(d, -static_cast<int64_t>(before)));
    passed = hn::IfThenElse(same_lefts, passed, hn::Set(d, static_cast<int64_t>(chain.right)));
  }

  // Row by row.
  HWY_INLINE void Finish(Chain& chain) const {
    for (size_t steps = chain.SafeRows(); steps != 0; steps = chain.SafeRows()) {
      for (; steps != 0; --steps) {
        const bool before = ComesBefore<kInclusive>(right[chain.right], left[chain.left]);
        out[chain.left] = static_cast<uint32_t>(chain.right);
        chain.right += static_cast<size_t>(before);
        chain.left += static_cast<size_t>(!before);
      }
    }
    for (; chain.left < chain.left_end; ++chain.left) out[chain.left] = static_cast<uint32_t>(chain.right);
  }
  HWY_INLINE void Finish(Chain& chain, hn::Vec<D> passed) const {
    for (size_t steps = chain.SafeRows() / kLanes; steps != 0; steps = chain.SafeRows() / kLanes) {
      for (; steps != 0; --steps) Step(chain, passed);
    }
    // The first of the left rows that remain has perhaps not passed all right rows that were taken.
    chain.right = static_cast<size_t>(hn::GetLane(passed));
    Finish(chain);
  }
};

// With more right rows for each left row than this, each left row is searched for.
constexpr size_t kRightRowsPerLeftMax = 32;
// Fewer left rows are merged row by row.
constexpr size_t kLeftRowsMin = 32;

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
  using M = Merge<kInclusive>;
  const M merge{left, right, out};
  if (left_rows < kLeftRowsMin) {
    Chain whole{0, left_rows, 0, right_rows};
    merge.Finish(whole);
    return;
  }
  // The right rows of the first chain end where those of the second begin: no left row of it goes further.
  const size_t half = left_rows / 2;
  const size_t middle = CountBeforeIn<kInclusive>(right, right_rows, left[half]);
  Chain a{0, half, 0, middle};
  Chain b{half, left_rows, middle, right_rows};
  auto a_passed = hn::Zero(typename M::D());
  auto b_passed = hn::Set(typename M::D(), static_cast<int64_t>(middle));
  for (;;) {
    const size_t rows = a.SafeRows() < b.SafeRows() ? a.SafeRows() : b.SafeRows();
    if (rows < M::kLanes) break;
    for (size_t steps = rows / M::kLanes; steps != 0; --steps) {
      merge.Step(a, a_passed);
      merge.Step(b, b_passed);
    }
  }
  merge.Finish(a, a_passed);
  merge.Finish(b, b_passed);
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
