#include "kernels/arithmetic.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arithmetic.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

template <Arithmetic kOperator, class V>
HWY_INLINE V Apply(V left, V right) {
  if constexpr (kOperator == Arithmetic::Add) return hn::Add(left, right);
  if constexpr (kOperator == Arithmetic::Subtract) return hn::Sub(left, right);
  if constexpr (kOperator == Arithmetic::Multiply) return hn::Mul(left, right);
  if constexpr (kOperator == Arithmetic::Divide) return hn::Div(left, right);
}

// An operand is a column or a constant.
template <typename T>
struct Constant {
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, size_t) const {
    return hn::Set(d, value);
  }
  HWY_INLINE void Tail(size_t, size_t) {}
  T value;
};

template <Arithmetic kOperator, typename T, class Left, class Right>
HWY_INLINE void ApplyAll(Left left, Right right, size_t rows, T* out) {
  const hn::ScalableTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  const size_t whole = rows / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    hn::StoreU(Apply<kOperator>(left.Load(d, i), right.Load(d, i)), d, out + i);
  }
  if (whole == rows) return;
  left.Tail(whole, rows - whole);
  right.Tail(whole, rows - whole);
  alignas(64) T last[kLanes];
  hn::Store(Apply<kOperator>(left.Load(d, 0), right.Load(d, 0)), d, last);
  memcpy(out + whole, last, (rows - whole) * sizeof(T));
}

template <typename T, class Left, class Right>
HWY_INLINE void Choose(Left left, Right right, size_t rows, Arithmetic arithmetic, T* out) {
  switch (arithmetic) {
    case Arithmetic::Add:
      return ApplyAll<Arithmetic::Add>(left, right, rows, out);
    case Arithmetic::Subtract:
      return ApplyAll<Arithmetic::Subtract>(left, right, rows, out);
    case Arithmetic::Multiply:
      return ApplyAll<Arithmetic::Multiply>(left, right, rows, out);
    case Arithmetic::Divide:
      return ApplyAll<Arithmetic::Divide>(left, right, rows, out);
  }
}

#define LANES_DEFINE(T, Suffix)                                                                                        \
  void Arithmetic##Suffix(const T* left, const T* right, size_t rows, Arithmetic arithmetic, T* out) {                 \
    Choose(Values<T>(left), Values<T>(right), rows, arithmetic, out);                                                  \
  }                                                                                                                    \
  void ArithmeticConstant##Suffix(const T* values, T constant, size_t rows, Arithmetic arithmetic, T* out) {           \
    Choose(Values<T>(values), Constant<T>{constant}, rows, arithmetic, out);                                           \
  }                                                                                                                    \
  void ConstantArithmetic##Suffix(T constant, const T* values, size_t rows, Arithmetic arithmetic, T* out) {           \
    Choose(Constant<T>{constant}, Values<T>(values), rows, arithmetic, out);                                           \
  }
LANES_FLOATS(LANES_DEFINE)
#undef LANES_DEFINE

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanes {
namespace simd {

#define LANES_DISPATCH(T, Suffix)                                                                                      \
  HWY_EXPORT(Arithmetic##Suffix);                                                                                      \
  HWY_EXPORT(ArithmeticConstant##Suffix);                                                                              \
  HWY_EXPORT(ConstantArithmetic##Suffix);                                                                              \
  void arithmetic(const T* left, const T* right, size_t rows, Arithmetic arithmetic, T* out) noexcept {                \
    HWY_DYNAMIC_DISPATCH(Arithmetic##Suffix)(left, right, rows, arithmetic, out);                                      \
  }                                                                                                                    \
  void arithmetic_constant(const T* values, T constant, size_t rows, Arithmetic arithmetic, T* out) noexcept {         \
    HWY_DYNAMIC_DISPATCH(ArithmeticConstant##Suffix)(values, constant, rows, arithmetic, out);                         \
  }                                                                                                                    \
  void constant_arithmetic(T constant, const T* values, size_t rows, Arithmetic arithmetic, T* out) noexcept {         \
    HWY_DYNAMIC_DISPATCH(ConstantArithmetic##Suffix)(constant, values, rows, arithmetic, out);                         \
  }
LANES_FLOATS(LANES_DISPATCH)
#undef LANES_DISPATCH

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
