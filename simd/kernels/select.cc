// Six operators are built from few predicates and an inversion of the finished word: `<>` is not
// `=`, `>=` is not `<`, and `>` is not `<=`. This also orders NaN as PostgreSQL does: an IEEE
// comparison with a NaN is false, so `not (x <= c)` puts NaN above every constant. A NaN constant
// is rare and is handled before the loop. (`Ne` does not find NaNs: with AVX, Highway's `Ne` is
// false for them.)

#include "kernels/select.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

// A reader has `Mask(d, at)`, the rows at..at+Lanes that qualify, and `Tail(at, rows)` like
// `Values`.
template <typename T, class Reader>
HWY_INLINE void WriteWords(size_t rows, uint64_t invert, Reader& reader, uint64_t* out) {
  const hn::ScalableTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  const size_t whole = rows / kWordRows;
  const size_t rest = rows % kWordRows;
  for (size_t block = 0; block < whole; ++block) {
    uint64_t word = 0;
    for (size_t i = 0; i < kWordRows; i += kLanes) {
      word |= BitsOf(d, reader.Mask(d, block * kWordRows + i)) << i;
    }
    out[block] = word ^ invert;
  }
  if (rest == 0) return;
  reader.Tail(whole * kWordRows, rest);
  uint64_t word = 0;
  for (size_t i = 0; i < kWordRows; i += kLanes) word |= BitsOf(d, reader.Mask(d, i)) << i;
  out[whole] = (word ^ invert) & TailMask(rest);
}

HWY_INLINE void Fill(size_t rows, bool value, uint64_t* out) {
  const size_t whole = rows / kWordRows;
  for (size_t block = 0; block < whole; ++block) out[block] = value ? kAllRows : 0;
  if (rows % kWordRows != 0) out[whole] = value ? TailMask(rows % kWordRows) : 0;
}

template <typename T>
struct EqualTo : Values<T> {
  EqualTo(const T* values, T c) : Values<T>(values), constant(c) {}
  template <class D>
  HWY_INLINE hn::Mask<D> Mask(D d, size_t at) const {
    return hn::Eq(this->Load(d, at), hn::Set(d, constant));
  }
  T constant;
};

template <typename T>
struct LessThan : Values<T> {
  LessThan(const T* values, T c) : Values<T>(values), constant(c) {}
  template <class D>
  HWY_INLINE hn::Mask<D> Mask(D d, size_t at) const {
    return hn::Lt(this->Load(d, at), hn::Set(d, constant));
  }
  T constant;
};

// `x <= c` for floats, and its opposite `x > c` for integers, which have no such instruction: see `kAtMostInverts`.
template <typename T>
struct AtMost : Values<T> {
  AtMost(const T* values, T c) : Values<T>(values), constant(c) {}
  template <class D>
  HWY_INLINE hn::Mask<D> Mask(D d, size_t at) const {
    if constexpr (hwy::IsFloat<T>()) {
      return hn::Le(this->Load(d, at), hn::Set(d, constant));
    } else {
      return hn::Lt(hn::Set(d, constant), this->Load(d, at));
    }
  }
  T constant;
};
template <typename T>
constexpr uint64_t kAtMostInverts = hwy::IsFloat<T>() ? 0 : kAllRows;

template <typename T>
struct NotANumber : Values<T> {
  explicit NotANumber(const T* values) : Values<T>(values) {}
  template <class D>
  HWY_INLINE hn::Mask<D> Mask(D d, size_t at) const {
    return hn::IsNaN(this->Load(d, at));
  }
};

// The rows outside low..=high; neither bound is NaN. For floats inside, for integers outside: as `kAtMostInverts`.
template <typename T>
struct Range : Values<T> {
  Range(const T* values, T l, T h) : Values<T>(values), low(l), high(h) {}
  template <class D>
  HWY_INLINE hn::Mask<D> Mask(D d, size_t at) const {
    const auto value = this->Load(d, at);
    if constexpr (hwy::IsFloat<T>()) {
      return hn::And(hn::Le(hn::Set(d, low), value), hn::Le(value, hn::Set(d, high)));
    } else {
      return hn::Or(hn::Lt(value, hn::Set(d, low)), hn::Lt(hn::Set(d, high), value));
    }
  }
  T low;
  T high;
};

template <typename T>
struct Pairs {
  Pairs(const T* l, const T* r) : left(l), right(r) {}
  HWY_INLINE void Tail(size_t at, size_t rows) {
    left.Tail(at, rows);
    right.Tail(at, rows);
  }
  Values<T> left;
  Values<T> right;
};

template <typename T>
struct PairsEqual : Pairs<T> {
  using Pairs<T>::Pairs;
  template <class D>
  HWY_INLINE hn::Mask<D> Mask(D d, size_t at) const {
    const auto a = this->left.Load(d, at);
    const auto b = this->right.Load(d, at);
    if constexpr (hwy::IsFloat<T>()) {
      return hn::Or(hn::Eq(a, b), hn::And(hn::IsNaN(a), hn::IsNaN(b)));
    } else {
      return hn::Eq(a, b);
    }
  }
};

template <typename T>
struct PairsLess : Pairs<T> {
  using Pairs<T>::Pairs;
  template <class D>
  HWY_INLINE hn::Mask<D> Mask(D d, size_t at) const {
    const auto a = this->left.Load(d, at);
    const auto b = this->right.Load(d, at);
    if constexpr (hwy::IsFloat<T>()) {
      return hn::Or(hn::Lt(a, b), hn::And(hn::Eq(a, a), hn::IsNaN(b)));
    } else {
      return hn::Lt(a, b);
    }
  }
};

HWY_INLINE uint64_t Inversion(bool inverted) { return inverted ? kAllRows : 0; }

template <typename T>
HWY_INLINE void CompareAny(const T* values, size_t rows, Comparison comparison, T constant, uint64_t* out) {
  if constexpr (hwy::IsFloat<T>()) {
    if (constant != constant) {
      const bool always = comparison == Comparison::LessOrEqual;
      if (always || comparison == Comparison::Greater) return Fill(rows, always, out);
      const bool inverted = comparison == Comparison::NotEqual || comparison == Comparison::Less;
      NotANumber<T> reader(values);
      return WriteWords<T>(rows, Inversion(inverted), reader, out);
    }
  }
  switch (comparison) {
    case Comparison::Equal:
    case Comparison::NotEqual: {
      EqualTo<T> reader(values, constant);
      return WriteWords<T>(rows, Inversion(comparison == Comparison::NotEqual), reader, out);
    }
    case Comparison::Less:
    case Comparison::GreaterOrEqual: {
      LessThan<T> reader(values, constant);
      return WriteWords<T>(rows, Inversion(comparison == Comparison::GreaterOrEqual), reader, out);
    }
    case Comparison::LessOrEqual:
    case Comparison::Greater: {
      AtMost<T> reader(values, constant);
      return WriteWords<T>(rows, Inversion(comparison == Comparison::Greater) ^ kAtMostInverts<T>, reader, out);
    }
  }
}

template <typename T>
HWY_INLINE void BetweenAny(const T* values, size_t rows, T low, T high, uint64_t* out) {
  if (high != high) return CompareAny(values, rows, Comparison::GreaterOrEqual, low, out);
  if (low != low) return Fill(rows, false, out);
  Range<T> reader(values, low, high);
  WriteWords<T>(rows, kAtMostInverts<T>, reader, out);
}

template <typename T>
HWY_INLINE void ComparePairsAny(const T* left, const T* right, size_t rows, Comparison comparison, uint64_t* out) {
  switch (comparison) {
    case Comparison::Equal:
    case Comparison::NotEqual: {
      PairsEqual<T> reader(left, right);
      return WriteWords<T>(rows, Inversion(comparison == Comparison::NotEqual), reader, out);
    }
    case Comparison::Less:
    case Comparison::GreaterOrEqual: {
      PairsLess<T> reader(left, right);
      return WriteWords<T>(rows, Inversion(comparison == Comparison::GreaterOrEqual), reader, out);
    }
    case Comparison::Greater:
    case Comparison::LessOrEqual: {
      PairsLess<T> reader(right, left);
      return WriteWords<T>(rows, Inversion(comparison == Comparison::LessOrEqual), reader, out);
    }
  }
}

// One row at a time: a gather instruction would make as many loads.
HWY_INLINE uint64_t MemberBits(const uint32_t* codes, size_t rows, const uint64_t* set) {
  uint64_t word = 0;
  for (size_t i = 0; i < rows; ++i) word |= ((set[codes[i] / 64] >> (codes[i] % 64)) & 1) << i;
  return word;
}

void Member(const uint32_t* codes, size_t rows, const uint64_t* set, uint64_t* out) {
  const size_t whole = rows / kWordRows;
  for (size_t block = 0; block < whole; ++block) {
    out[block] = MemberBits(codes + block * kWordRows, kWordRows, set);
  }
  if (rows % kWordRows != 0) out[whole] = MemberBits(codes + whole * kWordRows, rows % kWordRows, set);
}

#define LANES_DEFINE(T, Suffix)                                                                                      \
  void Compare##Suffix(const T* values, size_t rows, Comparison comparison, T constant, uint64_t* out) {             \
    CompareAny<T>(values, rows, comparison, constant, out);                                                          \
  }                                                                                                                  \
  void Between##Suffix(const T* values, size_t rows, T low, T high, uint64_t* out) {                                 \
    BetweenAny<T>(values, rows, low, high, out);                                                                     \
  }                                                                                                                  \
  void ComparePairs##Suffix(const T* left, const T* right, size_t rows, Comparison comparison, uint64_t* out) {      \
    ComparePairsAny<T>(left, right, rows, comparison, out);                                                          \
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

#define LANES_DISPATCH(T, Suffix)                                                                                    \
  HWY_EXPORT(Compare##Suffix);                                                                                       \
  HWY_EXPORT(Between##Suffix);                                                                                       \
  HWY_EXPORT(ComparePairs##Suffix);                                                                                  \
  void compare(const T* values, size_t rows, Comparison comparison, T constant, uint64_t* out) noexcept {            \
    HWY_DYNAMIC_DISPATCH(Compare##Suffix)(values, rows, comparison, constant, out);                                  \
  }                                                                                                                  \
  void between(const T* values, size_t rows, T low, T high, uint64_t* out) noexcept {                                \
    HWY_DYNAMIC_DISPATCH(Between##Suffix)(values, rows, low, high, out);                                             \
  }                                                                                                                  \
  void compare_pairs(const T* left, const T* right, size_t rows, Comparison comparison, uint64_t* out) noexcept {    \
    HWY_DYNAMIC_DISPATCH(ComparePairs##Suffix)(left, right, rows, comparison, out);                                  \
  }
LANES_NUMBERS(LANES_DISPATCH)
#undef LANES_DISPATCH

HWY_EXPORT(Member);
void member(const uint32_t* codes, size_t rows, const uint64_t* set, uint64_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(Member)(codes, rows, set, out);
}

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
