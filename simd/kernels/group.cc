#include "kernels/group.h"

#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/group.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/stripes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

// Whether the 64 rows are of one group. Most blocks of unsorted lanes are told by their ends.
HWY_INLINE bool IsOneGroup(const uint32_t* groups) {
  if (groups[0] != groups[kWordRows - 1]) return false;
  const hn::ScalableTag<uint32_t> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<uint32_t>());
  const auto first = hn::Set(d, groups[0]);
  auto difference = hn::Zero(d);
  for (size_t i = 0; i < kWordRows; i += kLanes) {
    difference = hn::Or(difference, hn::Xor(first, hn::LoadU(d, groups + i)));
  }
  return hn::AllTrue(d, hn::Eq(difference, hn::Zero(d)));
}

// Calls `block(at, group)` for each block of one group, and `row(i)` for each selected row of the others, in row order.
template <class Row, class Block>
HWY_INLINE void VisitGroups(const uint32_t* groups, size_t rows, const uint64_t* selection, Row row, Block block) {
  for (size_t at = 0; at < rows; at += kWordRows) {
    const size_t here = rows - at < kWordRows ? rows - at : kWordRows;
    uint64_t word = selection == nullptr ? kAllRows : selection[at / kWordRows];
    if (here < kWordRows) word &= TailMask(here);
    if (word == kAllRows) {
      if (IsOneGroup(groups + at)) {
        block(at, groups[at]);
      } else {
        for (size_t i = at; i < at + kWordRows; ++i) row(i);
      }
      continue;
    }
    for (; word != 0; word &= word - 1) row(at + static_cast<size_t>(__builtin_ctzll(word)));
  }
}

void GroupCount(const uint32_t* groups, size_t rows, const uint64_t* selection, uint64_t* counts) {
  VisitGroups(
      groups, rows, selection, [=](size_t i) HWY_ATTR { ++counts[groups[i]]; },
      [=](size_t, uint32_t group) HWY_ATTR { counts[group] += kWordRows; });
}

template <typename T, typename Sum>
HWY_INLINE void GroupSum(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, Sum* sums,
                         uint64_t* counts) {
  VisitGroups(
      groups, rows, selection,
      [=](size_t i) HWY_ATTR {
        sums[groups[i]] += static_cast<Sum>(values[i]);
        ++counts[groups[i]];
      },
      [=](size_t at, uint32_t group) HWY_ATTR {
        Sum sum = 0;
        if constexpr (hwy::IsFloat<T>()) {
          Stripes<Sum> stripes;
          if constexpr (std::is_same<T, Sum>()) {
            stripes.All(Values<T>(values), at);
          } else {
            stripes.All(WideValues(values), at);
          }
          sum = stripes.Total();
        } else {
          for (size_t i = at; i < at + kWordRows; ++i) sum += static_cast<Sum>(values[i]);
        }
        sums[group] += sum;
        counts[group] += kWordRows;
      });
}

// Unsigned, because it may wrap.
void GroupSumI16(const uint32_t* groups, const int16_t* values, size_t rows, const uint64_t* selection, int64_t* sums,
                 uint64_t* counts) {
  GroupSum(groups, values, rows, selection, reinterpret_cast<uint64_t*>(sums), counts);
}
void GroupSumI32(const uint32_t* groups, const int32_t* values, size_t rows, const uint64_t* selection, int64_t* sums,
                 uint64_t* counts) {
  GroupSum(groups, values, rows, selection, reinterpret_cast<uint64_t*>(sums), counts);
}
void GroupSumU32(const uint32_t* groups, const uint32_t* values, size_t rows, const uint64_t* selection, int64_t* sums,
                 uint64_t* counts) {
  GroupSum(groups, values, rows, selection, reinterpret_cast<uint64_t*>(sums), counts);
}
void GroupSumF32(const uint32_t* groups, const float* values, size_t rows, const uint64_t* selection, float* sums,
                 uint64_t* counts) {
  GroupSum(groups, values, rows, selection, sums, counts);
}
void GroupSumF64(const uint32_t* groups, const double* values, size_t rows, const uint64_t* selection, double* sums,
                 uint64_t* counts) {
  GroupSum(groups, values, rows, selection, sums, counts);
}
void GroupSumWide(const uint32_t* groups, const float* values, size_t rows, const uint64_t* selection, double* sums,
                  uint64_t* counts) {
  GroupSum(groups, values, rows, selection, sums, counts);
}
void GroupSumLong(const uint32_t* groups, const int64_t* values, size_t rows, const uint64_t* selection, uint64_t* sums,
                  uint64_t* counts) {
  GroupSum(groups, values, rows, selection, reinterpret_cast<unsigned __int128*>(sums), counts);
}

// Whether a < b, NaN being greatest.
template <typename T>
HWY_INLINE bool IsLess(T a, T b) {
  if constexpr (hwy::IsFloat<T>()) return (a < b) | ((a == a) & (b != b));
  return a < b;
}

template <typename T, bool kGreatest>
HWY_INLINE T Better(T best, T value) {
  return (kGreatest ? IsLess(value, best) : IsLess(best, value)) ? best : value;
}

template <typename T, bool kGreatest>
HWY_INLINE void GroupExtreme(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, T* best) {
  VisitGroups(
      groups, rows, selection,
      [=](size_t i) HWY_ATTR { best[groups[i]] = Better<T, kGreatest>(best[groups[i]], values[i]); },
      [=](size_t at, uint32_t group) HWY_ATTR {
        T extreme = best[group];
        for (size_t i = at; i < at + kWordRows; ++i) extreme = Better<T, kGreatest>(extreme, values[i]);
        best[group] = extreme;
      });
}

#define LANES_DEFINE(T, Suffix)                                                                                        \
  void GroupMinimum##Suffix(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, T* best) { \
    GroupExtreme<T, false>(groups, values, rows, selection, best);                                                     \
  }                                                                                                                    \
  void GroupMaximum##Suffix(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, T* best) { \
    GroupExtreme<T, true>(groups, values, rows, selection, best);                                                      \
  }
LANES_NUMBERS(LANES_DEFINE)
#undef LANES_DEFINE

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanes {
namespace simd {

HWY_EXPORT(GroupCount);
void group_count(const uint32_t* groups, size_t rows, const uint64_t* selection, uint64_t* counts) noexcept {
  HWY_DYNAMIC_DISPATCH(GroupCount)(groups, rows, selection, counts);
}

#define LANES_DISPATCH(name, Function, T, Sum)                                                           \
  HWY_EXPORT(Function);                                                                                  \
  void name(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, Sum* sums,  \
            uint64_t* counts) noexcept {                                                                 \
    HWY_DYNAMIC_DISPATCH(Function)(groups, values, rows, selection, sums, counts);                       \
  }
LANES_DISPATCH(group_sum, GroupSumI16, int16_t, int64_t)
LANES_DISPATCH(group_sum, GroupSumI32, int32_t, int64_t)
LANES_DISPATCH(group_sum, GroupSumU32, uint32_t, int64_t)
LANES_DISPATCH(group_sum, GroupSumF32, float, float)
LANES_DISPATCH(group_sum, GroupSumF64, double, double)
LANES_DISPATCH(group_sum_wide, GroupSumWide, float, double)
LANES_DISPATCH(group_sum_long, GroupSumLong, int64_t, uint64_t)
#undef LANES_DISPATCH

#define LANES_DISPATCH(T, Suffix)                                                                          \
  HWY_EXPORT(GroupMinimum##Suffix);                                                                        \
  HWY_EXPORT(GroupMaximum##Suffix);                                                                        \
  void group_minimum(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection,      \
                     T* best) noexcept {                                                                   \
    HWY_DYNAMIC_DISPATCH(GroupMinimum##Suffix)(groups, values, rows, selection, best);                     \
  }                                                                                                        \
  void group_maximum(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection,      \
                     T* best) noexcept {                                                                   \
    HWY_DYNAMIC_DISPATCH(GroupMaximum##Suffix)(groups, values, rows, selection, best);                     \
  }
LANES_NUMBERS(LANES_DISPATCH)
#undef LANES_DISPATCH

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
