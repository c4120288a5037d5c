#include "kernels/copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/copy.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

// Writes `vector(i)`, the values of the rows from i on, or `value(i)`, that of row i, where the selection has a bit.
template <typename T, class Vector, class Value>
HWY_INLINE void WriteSelected(size_t rows, const uint64_t* selection, T* out, Vector vector, Value value) {
  const hn::ScalableTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  for (size_t at = 0; at < rows; at += kWordRows) {
    const size_t here = rows - at < kWordRows ? rows - at : kWordRows;
    uint64_t word = selection == nullptr ? kAllRows : selection[at / kWordRows];
    if (here < kWordRows) {
      for (word &= TailMask(here); word != 0; word &= word - 1) {
        const size_t row = at + static_cast<size_t>(__builtin_ctzll(word));
        out[row] = value(row);
      }
    } else if (word == kAllRows) {
      for (size_t i = 0; i < kWordRows; i += kLanes) hn::StoreU(vector(at + i), d, out + at + i);
    } else if (word != 0) {
      for (size_t i = 0; i < kWordRows; i += kLanes) {
        const auto before = hn::LoadU(d, out + at + i);
        hn::StoreU(hn::IfThenElse(MaskAt(d, word, i), vector(at + i), before), d, out + at + i);
      }
    }
  }
}

template <typename T>
HWY_INLINE void CopySelected(const T* values, size_t rows, const uint64_t* selection, T* out) {
  const hn::ScalableTag<T> d;
  WriteSelected(
      rows, selection, out, [=](size_t i) HWY_ATTR { return hn::LoadU(d, values + i); },
      [=](size_t i) HWY_ATTR { return values[i]; });
}

template <typename T>
HWY_INLINE void FillSelected(T value, size_t rows, const uint64_t* selection, T* out) {
  const hn::ScalableTag<T> d;
  WriteSelected(
      rows, selection, out, [=](size_t) HWY_ATTR { return hn::Set(d, value); }, [=](size_t) HWY_ATTR { return value; });
}

#define LANES_DEFINE(T, Suffix)                                                                          \
  void CopySelected##Suffix(const T* values, size_t rows, const uint64_t* selection, T* out) {           \
    CopySelected(values, rows, selection, out);                                                          \
  }                                                                                                      \
  void FillSelected##Suffix(T value, size_t rows, const uint64_t* selection, T* out) {                   \
    FillSelected(value, rows, selection, out);                                                           \
  }
LANES_DEFINE(uint16_t, U16)
LANES_DEFINE(uint32_t, U32)
LANES_DEFINE(uint64_t, U64)
#undef LANES_DEFINE

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanes {
namespace simd {

#define LANES_DISPATCH(T, Suffix)                                                                        \
  HWY_EXPORT(CopySelected##Suffix);                                                                      \
  HWY_EXPORT(FillSelected##Suffix);                                                                      \
  void copy_selected(const T* values, size_t rows, const uint64_t* selection, T* out) noexcept {         \
    HWY_DYNAMIC_DISPATCH(CopySelected##Suffix)(values, rows, selection, out);                            \
  }                                                                                                      \
  void fill_selected(T value, size_t rows, const uint64_t* selection, T* out) noexcept {                 \
    HWY_DYNAMIC_DISPATCH(FillSelected##Suffix)(value, rows, selection, out);                             \
  }
LANES_DISPATCH(uint16_t, U16)
LANES_DISPATCH(uint32_t, U32)
LANES_DISPATCH(uint64_t, U64)
#undef LANES_DISPATCH

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
