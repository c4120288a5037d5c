//! `count(x)` and `count(DISTINCT x)` of a value that a frame [has as a code](Translator::given_code).

use lanes_columnar::aggregate::accumulator::Count;
use lanes_columnar::aggregate::distinct::Distinct;
use lanes_columnar::aggregate::{Aggregate, Argument, Key};
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::value::Value;
use lanes_simd::Comparison;

use super::condition_code;
use super::translate::Translator;

/// The aggregate that counts the rows which pass a filter and have a value, or their distinct values. A frame has the
/// codes at a place.
pub fn aggregate(
    translator: &mut Translator,
    filter: Option<Predicate>,
    place: usize,
    is_distinct: bool,
) -> Aggregate {
    let code = || Value::Joined(NumberType::I64, place);
    let null = translator.scalar(Some(Scalar(condition_code::NULL_VALUE)));
    let null = Value::Scalar(NumberType::I64, null);
    let is_present = Predicate::Compare(Comparison::NotEqual, code(), null);
    let argument = match is_distinct {
        true => Argument::Distinct(Distinct::new(Argument::Nothing, Key::Number(code()))),
        false => Argument::Nothing,
    };
    Aggregate {
        filter: Some(match filter {
            Some(filter) => Predicate::And(vec![filter, is_present]),
            None => is_present,
        }),
        argument,
        accumulator: Box::new(Count::default()),
    }
}
