//! An aggregate or a key, from which both the engine's and the twin's answer come.

use crate::aggregate::accumulator::Count;
use crate::aggregate::edge::Edge;
use crate::aggregate::ema::{Ema, Order, TimeSort, Waiting, order_key, step};
use crate::aggregate::extreme::{End, Extreme};
use crate::aggregate::key::{Bucket, Buckets};
use crate::aggregate::logic::Logic;
use crate::aggregate::moments::Moments;
use crate::aggregate::sum::{FloatSum, IntegerResult, IntegerSums};
use crate::aggregate::weighted::Weighted;
use crate::aggregate::{Accumulator, Aggregate, Answer, Argument, Key, KeyValue};
use crate::vector::number::{Number, NumberType, Operation, Scalar};
use crate::vector::tests::lanes::{Cell, TestLanes, item};
use crate::vector::tests::number_tree::{NumberTree, apply, same};
use crate::vector::tests::truth_tree::{TruthTree, order};
use crate::vector::{Evaluation, EvaluationError, Weight, WeightFault};
use crate::with_number;

/// An aggregate.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    Rows,
    Presence(usize),
    Integers(IntegerResult, NumberTree),
    FloatSum(NumberTree),
    Moments(bool, NumberTree),
    Extreme(End, NumberTree),
    Logic(bool, TruthTree),
    Edge(End, NumberTree, NumberTree),
    Weighted(NumberTree, NumberTree),
    Ema(Weight, NumberTree, NumberTree, Option<NumberTree>),
}

/// Rows in memory.
#[derive(Default)]
struct MemorySort(Vec<Waiting>);

impl TimeSort for MemorySort {
    fn put(&mut self, row: Waiting) {
        self.0.push(row);
    }

    fn drain(&mut self, take: &mut dyn FnMut(Waiting)) {
        self.0.sort_by_key(|row| (row.time.is_none(), row.time));
        self.0.drain(..).for_each(take);
    }
}

impl Wanted {
    /// The engine's aggregate.
    pub(super) fn build(&self, filter: Option<&TruthTree>) -> Aggregate {
        self.build_for(filter, false)
    }

    /// The engine's aggregate. If it `sorts`, it does not expect rows in any order.
    pub(super) fn build_for(&self, filter: Option<&TruthTree>, sorts: bool) -> Aggregate {
        let (argument, accumulator): (Argument, Box<dyn Accumulator>) = match self {
            Wanted::Rows => (Argument::Nothing, Box::new(Count::default())),
            Wanted::Presence(attribute) => {
                (Argument::Presence(*attribute), Box::new(Count::default()))
            }
            Wanted::Integers(shape, tree) => {
                let sums: Box<dyn Accumulator> = match tree.number() {
                    NumberType::I16 => Box::new(IntegerSums::<i16>::new(*shape)),
                    NumberType::I32 => Box::new(IntegerSums::<i32>::new(*shape)),
                    _ => Box::new(IntegerSums::<i64>::new(*shape)),
                };
                (Argument::Number(tree.build()), sums)
            }
            Wanted::FloatSum(tree) => (
                Argument::Number(tree.build()),
                match tree.number() {
                    NumberType::F32 => Box::new(FloatSum::<f32>::default()),
                    _ => Box::new(FloatSum::<f64>::default()),
                },
            ),
            Wanted::Moments(squares, tree) => (
                Argument::Number(tree.build()),
                match tree.number() {
                    NumberType::F32 => Box::new(Moments::<f32>::new(*squares)),
                    _ => Box::new(Moments::<f64>::new(*squares)),
                },
            ),
            Wanted::Extreme(end, tree) => (
                Argument::Number(tree.build()),
                with_number!(tree.number(), T => Box::new(Extreme::<T>::new(*end))),
            ),
            Wanted::Logic(all, tree) => (Argument::Truth(tree.build()), Box::new(Logic::new(*all))),
            Wanted::Edge(end, value, time) => (
                Argument::Pair(value.build(), time.build()),
                with_number!(value.number(), V => with_number!(time.number(), T => {
                    Box::new(Edge::<V, T>::new(*end))
                })),
            ),
            Wanted::Weighted(price, volume) => (
                Argument::Pair(price.build(), volume.build()),
                Box::new(Weighted::default()),
            ),
            Wanted::Ema(weight, x, parameter, time) => {
                let order = match time {
                    None => Order::Rows,
                    Some(time) if !sorts => Order::Checked(time.number()),
                    Some(time) => Order::Sorted(time.number(), Box::<MemorySort>::default()),
                };
                let time = time.as_ref().map(NumberTree::build);
                let argument = Argument::Timed(x.build(), parameter.build(), time);
                (argument, Box::new(Ema::new(*weight, order)))
            }
        };
        Aggregate {
            filter: filter.map(TruthTree::build),
            argument,
            accumulator,
        }
    }
}

/// What the twin keeps of a group for an aggregate.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    count: u64,
    sum: i128,
    squares: i128,
    float: Option<Scalar>,
    moments: [f64; 3],
    best: Option<(Scalar, Option<Scalar>)>,
    truth: Option<bool>,
    weight: Option<f64>,
    waiting: Vec<(Option<i64>, f64)>,
}

impl Kept {
    /// One more row that passed the filter.
    pub(super) fn add(&mut self, wanted: &Wanted, lanes: &TestLanes, row: usize) -> Evaluation<()> {
        match wanted {
            Wanted::Rows => self.count += 1,
            Wanted::Presence(attribute) => {
                self.count += u64::from(*lanes.cell(*attribute, row) != Cell::Null);
            }
            Wanted::Integers(shape, tree) => {
                if let Some(Scalar(bits)) = tree.row(lanes, row)? {
                    let value = i128::from(bits as i64);
                    self.count += 1;
                    self.sum += value;
                    if *shape == IntegerResult::Moments {
                        self.squares += value * value;
                    }
                }
            }
            Wanted::FloatSum(tree) => {
                if let Some(value) = tree.row(lanes, row)? {
                    self.float = Some(match self.float {
                        None => value,
                        Some(sum) => apply(tree.number(), Operation::Add, sum, value)?,
                    });
                }
            }
            Wanted::Moments(_, tree) => {
                if let Some(value) = tree.row(lanes, row)? {
                    let value = with_number!(tree.number(), T => T::of_scalar(value).to_f64());
                    self.count += 1;
                    accumulate(&mut self.moments, value)?;
                }
            }
            Wanted::Extreme(end, tree) => {
                if let Some(value) = tree.row(lanes, row)? {
                    let keeps = self.best.is_some_and(|(best, _)| {
                        let order = order(tree.number(), best, value);
                        if *end == End::Minimum {
                            order.is_lt()
                        } else {
                            order.is_gt()
                        }
                    });
                    if !keeps {
                        self.best = Some((value, None));
                    }
                }
            }
            Wanted::Logic(all, tree) => {
                if let Some(truth) = tree.row(lanes, row)? {
                    let before = self.truth.unwrap_or(*all);
                    self.truth = Some(if *all {
                        before && truth
                    } else {
                        before || truth
                    });
                }
            }
            Wanted::Edge(end, value, time) => {
                let (value, at) = (value.row(lanes, row)?, time.row(lanes, row)?);
                if let Some(at) = at {
                    let takes = self.best.is_none_or(|(best, _)| {
                        let order = order(time.number(), at, best);
                        if *end == End::Minimum {
                            order.is_lt()
                        } else {
                            order.is_ge()
                        }
                    });
                    if takes {
                        self.best = Some((at, value));
                    }
                }
            }
            Wanted::Ema(weight, x, parameter, time) => {
                let (x, parameter) = (x.row(lanes, row)?, parameter.row(lanes, row)?);
                let time = match time {
                    Some(time) => time.row(lanes, row)?.map(
                        |scalar| with_number!(time.number(), T => order_key(T::of_scalar(scalar))),
                    ),
                    None => Some(0),
                };
                let fault = |fault| Err(EvaluationError::Weight(*weight, fault));
                let Some(scalar) = parameter else {
                    return fault(WeightFault::Null);
                };
                let parameter = f64::of_scalar(scalar);
                match self.weight {
                    None if weight.alpha(parameter).is_none() => {
                        return fault(WeightFault::Illegal(scalar));
                    }
                    Some(before) if before != parameter => return fault(WeightFault::Changed),
                    _ => self.weight = Some(parameter),
                }
                self.waiting.extend(x.map(|x| (time, f64::of_scalar(x))));
            }
            Wanted::Weighted(price, volume) => {
                let (price, volume) = (price.row(lanes, row)?, volume.row(lanes, row)?);
                if let (Some(price), Some(volume)) = (price, volume) {
                    let (p, v) = (f64::of_scalar(price), f64::of_scalar(volume));
                    let first = self.count == 0;
                    self.count += 1;
                    let double = |operation, a: f64, b: f64| {
                        apply(NumberType::F64, operation, a.to_scalar(), b.to_scalar())
                            .map(f64::of_scalar)
                    };
                    let product = double(Operation::Multiply, p, v)?;
                    for (sum, value) in self.moments.iter_mut().zip([product, v]) {
                        *sum = if first {
                            value
                        } else {
                            double(Operation::Add, *sum, value)?
                        };
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn answer(&self, wanted: &Wanted) -> Answer {
        let Kept {
            count,
            sum,
            squares,
            ..
        } = *self;
        match wanted {
            Wanted::Rows | Wanted::Presence(_) => Answer::Count(count),
            Wanted::FloatSum(_) => self.float.map_or(Answer::Null, Answer::Number),
            Wanted::Extreme(..) => self
                .best
                .map_or(Answer::Null, |(best, _)| Answer::Number(best)),
            Wanted::Edge(..) => {
                let value = self.best.and_then(|(_, value)| value);
                value.map_or(Answer::Null, Answer::Number)
            }
            Wanted::Logic(..) => self.truth.map_or(Answer::Null, Answer::Truth),
            Wanted::Weighted(..) if self.moments[1] == 0.0 => Answer::Null,
            Wanted::Ema(weight, ..) => {
                let mut rows = self.waiting.clone();
                rows.sort_by_key(|(time, _)| (time.is_none(), *time));
                let alpha = self.weight.and_then(|given| weight.alpha(given));
                let numbers = rows.into_iter().map(|(_, x)| x);
                let average = numbers.reduce(|before, x| step(alpha.unwrap_or(1.0), before, x));
                average.map_or(Answer::Null, |x| Answer::Number(x.to_scalar()))
            }
            _ if count == 0 => Answer::Null,
            Wanted::Weighted(..) => Answer::Quotient(self.moments[0], self.moments[1]),
            Wanted::Integers(IntegerResult::Sum, _) => Answer::Integer(sum),
            Wanted::Integers(IntegerResult::Average, _) => Answer::Average { count, sum },
            Wanted::Integers(IntegerResult::Moments, _) => Answer::IntegerMoments {
                count,
                sum,
                squares,
            },
            Wanted::Moments(..) => {
                let [count, sum, squares] = self.moments;
                Answer::Moments {
                    count,
                    sum,
                    squares,
                }
            }
        }
    }
}

/// PostgreSQL's `float8_accum`, of Youngs and Cramer.
fn accumulate(state: &mut [f64; 3], value: f64) -> Evaluation<()> {
    let [count, sum, squares] = *state;
    let (n, total) = (count + 1.0, sum + value);
    let mut spread = squares;
    if count > 0.0 {
        let tmp = value * n - total;
        spread += tmp * tmp / (n * count);
        if total.is_infinite() || spread.is_infinite() {
            if !sum.is_infinite() && !value.is_infinite() {
                return Err(EvaluationError::FloatOverflow);
            }
            spread = f64::NAN;
        }
    } else if !value.is_finite() {
        spread = f64::NAN;
    }
    *state = [n, total, spread];
    Ok(())
}

/// Whether the engine's answer is the twin's: to the bit, but for NaNs.
pub(super) fn agree(wanted: &Wanted, found: Answer, expected: Answer) -> bool {
    let equal = |a: f64, b: f64| same(NumberType::F64, a.to_scalar(), b.to_scalar());
    match (found, expected) {
        (Answer::Number(a), Answer::Number(b)) => match wanted {
            Wanted::FloatSum(tree) | Wanted::Extreme(_, tree) | Wanted::Edge(_, tree, _) => {
                same(tree.number(), a, b)
            }
            Wanted::Ema(..) => same(NumberType::F64, a, b),
            _ => false,
        },
        (Answer::Quotient(a, b), Answer::Quotient(c, d)) => equal(a, c) && equal(b, d),
        (
            Answer::Moments {
                count: n,
                sum: s,
                squares: q,
            },
            Answer::Moments {
                count,
                sum,
                squares,
            },
        ) => {
            let with_squares = matches!(wanted, Wanted::Moments(true, _));
            n == count && equal(s, sum) && (!with_squares || equal(q, squares))
        }
        _ => found == expected,
    }
}

/// A key.
#[derive(Clone, Debug)]
pub(super) enum WantedKey {
    Text(usize),
    Bytes16(usize),
    Number(NumberTree),
    Truth(TruthTree),
    Bucket(NumberTree, Cut),
}

/// Times cut into buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) width: i64,
    /// After so many buckets their names begin anew, as the hours of a day do where clocks change.
    pub(super) names: i64,
    /// Whether a bucket tells all of its times.
    pub(super) knows_ends: bool,
}

impl Buckets for Cut {
    fn bucket(&mut self, time: i64) -> Bucket {
        let number = time.div_euclid(self.width);
        let (width, first) = (
            i128::from(self.width),
            i128::from(number) * i128::from(self.width),
        );
        let clamp = |t: i128| t.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let (first, last) = (clamp(first), clamp(first + width - 1));
        Bucket {
            value: number.rem_euclid(self.names),
            first: if self.knows_ends { first } else { time },
            last: if self.knows_ends { last } else { time },
        }
    }
}

impl WantedKey {
    pub(super) fn build(&self) -> Key {
        match self {
            WantedKey::Text(attribute) => Key::Text(*attribute),
            WantedKey::Bytes16(attribute) => Key::Bytes16(*attribute),
            WantedKey::Number(tree) => Key::Number(tree.build()),
            WantedKey::Truth(tree) => Key::Truth(tree.build()),
            WantedKey::Bucket(tree, cut) => Key::Bucket(tree.build(), Box::new(*cut)),
        }
    }

    /// The key of a row; of equal floats one stands for all.
    pub(super) fn row(&self, lanes: &TestLanes, row: usize) -> Evaluation<Cell> {
        Ok(match self {
            WantedKey::Text(attribute) | WantedKey::Bytes16(attribute) => {
                lanes.cell(*attribute, row).clone()
            }
            WantedKey::Number(tree) => {
                let canonical = |scalar| canonical(tree.number(), scalar);
                tree.row(lanes, row)?
                    .map_or(Cell::Null, |s| Cell::Number(canonical(s)))
            }
            WantedKey::Truth(tree) => tree.row(lanes, row)?.map_or(Cell::Null, Cell::Truth),
            WantedKey::Bucket(tree, cut) => match tree.row(lanes, row)? {
                Some(Scalar(time)) => {
                    Cell::Number(Scalar(cut.clone().bucket(time as i64).value as u64))
                }
                None => Cell::Null,
            },
        })
    }

    /// The engine's key of a group in the same form.
    pub(super) fn found(&self, value: KeyValue<'_>) -> Cell {
        match (value, self) {
            (KeyValue::Null, _) => Cell::Null,
            (KeyValue::Truth(truth), _) => Cell::Truth(truth),
            (KeyValue::Number(scalar), WantedKey::Number(tree)) => {
                Cell::Number(canonical(tree.number(), scalar))
            }
            (KeyValue::Number(scalar), _) => Cell::Number(scalar),
            (KeyValue::Bytes16(bytes), _) => Cell::Bytes16(*bytes),
            (KeyValue::Text(bytes), _) => {
                let payload = bytes[if bytes[0] & 1 == 1 { 1 } else { 4 }..].to_vec();
                assert_eq!(item(&payload), bytes, "a whole item");
                Cell::Text(payload)
            }
        }
    }
}

fn canonical(number: NumberType, scalar: Scalar) -> Scalar {
    let zero = Scalar(0);
    let nan = with_number!(number, T => T::of_scalar(scalar).to_f64().is_nan());
    if nan {
        f64::NAN.to_scalar()
    } else if order(number, scalar, zero).is_eq() {
        zero
    } else {
        scalar
    }
}
