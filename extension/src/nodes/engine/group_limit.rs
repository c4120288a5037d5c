//! The groups that a query's ORDER BY and LIMIT can return.
//!
//! `GROUP BY user ORDER BY count(*) DESC LIMIT 10` returns ten of perhaps millions of groups. The node compares the
//! groups by their states and returns only those that can be among the first ones, so most groups never become
//! rows. The plan's Sort and Limit above the node stay: they order and count the rows that are left.
//!
//! The compared keys are a prefix of ORDER BY: group keys and results that are numbers, times or truths. A sum or an
//! average of type `numeric` is compared by the double next to it, and ends the prefix. If ORDER BY goes on after the
//! prefix, the node returns all groups that are equal to the last wanted one by it.

use lanes_columnar::aggregate::{Aggregation, Answer, KeyValue};
use lanes_columnar::interrupt::Steps;
use lanes_columnar::order::KEYS_MAX;
use lanes_columnar::order::best_groups::{BestGroups, Comparison};
use lanes_columnar::order::rank::{Order, Rank};
use lanes_columnar::vector::EvaluationError;
use lanes_columnar::vector::number::{Number, NumberType, Scalar};
use lanes_columnar::with_number;
use pgrx::pg_sys;

use super::group_order::is_of;
use crate::error;
use crate::expressions::aggregate_call::{KeyShape, Moment, Shape};
use crate::expressions::result_datum;
use crate::pg::catalog;
use crate::pg::tree::{Expr, List, PathKey, PlannerInfo};
use crate::planner::first_rows::constant_limit;

/// More groups than this are sorted as well by PostgreSQL.
const LIMIT_MAX: usize = 1 << 16;

/// A sort key: a key of the groups, or, counted after them, a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SortColumn {
    place: usize,
    order: Order,
}

/// The first groups of an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupLimit {
    columns: Vec<SortColumn>,
    comparison: Comparison,
    limit: usize,
}

/// The columns of a node: keys and results, with their shapes. Keys that are no lanes have no shape.
#[derive(Clone, Copy)]
pub struct Columns<'a, 'p> {
    /// The grouping expressions.
    pub keys: List<'p, Expr<'p>>,
    /// Their shapes.
    pub key_shapes: &'a [Option<KeyShape>],
    /// The calls of aggregates.
    pub calls: List<'p, Expr<'p>>,
    /// The shapes of their results.
    pub shapes: &'a [Shape],
    /// Whether the keys are one of several grouping sets. A key of another set is NULL here, although a condition
    /// may say that it equals one of these keys.
    pub is_set: bool,
}

impl GroupLimit {
    /// The limit of a query whose groups are sorted and limited as they are; `None` if it has none, or if the first
    /// sort key is not comparable.
    pub fn wanted<'p>(
        root: PlannerInfo<'p>,
        stage: pg_sys::UpperRelationKind::Type,
        columns: Columns<'_, 'p>,
    ) -> Option<GroupLimit> {
        let query = root.parse()?;
        let is_distinct = stage == pg_sys::UpperRelationKind::UPPERREL_DISTINCT;
        let is_last_stage = query.distinctClause().is_empty() || is_distinct;
        let is_single = columns.keys.is_empty();
        let has_more_stages = !is_last_stage || query.hasWindowFuncs();
        if is_single || has_more_stages || query.havingQual().is_some() {
            return None;
        }
        let limit = constant_limit(query, LIMIT_MAX)?;
        let (mut compared, mut is_rounded) = (Vec::new(), false);
        let mut is_complete = true;
        for wanted in root.sort_pathkeys() {
            let column = columns.column(wanted).filter(|_| !is_rounded);
            let Some((place, rounded)) = column.filter(|_| compared.len() < KEYS_MAX) else {
                is_complete = false;
                break;
            };
            is_rounded = rounded;
            let order = Order {
                descending: wanted.is_descending(),
                nulls_first: wanted.pk_nulls_first(),
            };
            compared.push(SortColumn { place, order });
        }
        let has_ties = query.limitOption() == pg_sys::LimitOption::LIMIT_OPTION_WITH_TIES;
        let comparison = Comparison {
            keys: compared.len(),
            is_rounded,
            keeps_equal: has_ties || is_rounded || !is_complete,
        };
        (!compared.is_empty()).then_some(GroupLimit {
            columns: compared,
            comparison,
            limit,
        })
    }

    /// How many groups are wanted at least.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The numbers that a plan stores for a limit, or for none.
    pub fn numbers(limit: Option<&GroupLimit>) -> Vec<i32> {
        let Some(limit) = limit else {
            return vec![0];
        };
        let mut numbers = vec![limit.columns.len() as i32];
        numbers.extend([
            limit.limit as i32,
            i32::from(limit.comparison.is_rounded),
            i32::from(limit.comparison.keeps_equal),
        ]);
        for column in &limit.columns {
            let order = column.order;
            let flags = i32::from(order.descending) | i32::from(order.nulls_first) << 1;
            numbers.extend([column.place as i32, flags]);
        }
        numbers
    }

    /// The limit for the numbers that a plan stores, and how many numbers these are.
    pub fn of_numbers(numbers: &[i32]) -> (Option<GroupLimit>, usize) {
        let &[keys, limit, rounded, keeps_equal, ..] = numbers else {
            return (None, 1);
        };
        if keys == 0 {
            return (None, 1);
        }
        let end = 4 + 2 * keys as usize;
        let columns = numbers[4..end].chunks(2).map(|column| SortColumn {
            place: column[0] as usize,
            order: Order {
                descending: column[1] & 1 != 0,
                nulls_first: column[1] & 2 != 0,
            },
        });
        let limit = GroupLimit {
            columns: columns.collect(),
            comparison: Comparison {
                keys: keys as usize,
                is_rounded: rounded != 0,
                keeps_equal: keeps_equal != 0,
            },
            limit: limit as usize,
        };
        (Some(limit), end)
    }

    /// The limit as EXPLAIN shows it.
    pub fn describe(&self, keys: usize) -> String {
        let columns = self.columns.iter().map(|column| {
            let direction = if column.order.descending { " DESC" } else { "" };
            match column.place.checked_sub(keys) {
                None => format!("key {}{direction}", column.place + 1),
                Some(result) => format!("result {}{direction}", result + 1),
            }
        });
        let columns: Vec<_> = columns.collect();
        format!("{} by {}", self.limit, columns.join(", "))
    }

    /// The groups that can be among the first ones, in the order of their numbers; `None` if that may be all of them.
    pub fn groups(
        &self,
        aggregation: &Aggregation,
        keys: &[KeyShape],
        shapes: &[Shape],
    ) -> Option<Vec<u32>> {
        let groups = aggregation.groups();
        if groups <= self.limit {
            return None;
        }
        let mut best = BestGroups::new(self.comparison, self.limit);
        let steps = Steps::default();
        for group in 0..groups {
            steps.step();
            if best.are_too_many() {
                return None;
            }
            best.offer(group as u32, |key| {
                let SortColumn { place, order } = self.columns[key];
                match place.checked_sub(keys.len()) {
                    None => of_key(aggregation.key(group, place), keys[place], order),
                    Some(result) => {
                        of_result(aggregation.answer(group, result), shapes[result], order)
                    }
                }
            });
        }
        Some(best.groups())
    }
}

impl Columns<'_, '_> {
    /// The place of the column that a path key sorts by, and whether its ranks are rounded; `None` if it has no ranks.
    fn column(&self, wanted: PathKey<'_>) -> Option<(usize, bool)> {
        let members = wanted.pk_eclass().into_iter();
        let members = members.flat_map(|class| class.ec_members());
        if self.is_set && members.filter(|member| !member.em_is_child()).count() > 1 {
            return None;
        }
        let has_order = |expression: Expr<'_>| {
            catalog::btree_family(expression.type_of()) == wanted.pk_opfamily()
        };
        let place = |list: List<'_, Expr<'_>>| {
            let place = list.iter().position(|member| is_of(wanted, member))?;
            has_order(list.get(place)?).then_some(place)
        };
        if let Some(key) = place(self.keys) {
            let is_ranked = matches!(
                self.key_shapes[key],
                Some(KeyShape::Number(_) | KeyShape::Truth | KeyShape::Epoch(_))
            );
            return is_ranked.then_some((key, false));
        }
        let result = place(self.calls)?;
        let is_rounded = rounded(self.shapes[result])?;
        Some((self.keys.len() + result, is_rounded))
    }
}

/// Whether the ranks of results are rounded; `None` if they have no ranks.
fn rounded(shape: Shape) -> Option<bool> {
    match shape {
        Shape::BigInt | Shape::Number(_) | Shape::Double | Shape::Truth => Some(false),
        Shape::Moment(Moment::Average) => Some(false),
        Shape::Numeric | Shape::NumericAverage => Some(true),
        Shape::Counts
        | Shape::Numbers(..)
        | Shape::Moment(Moment::Variance { .. })
        | Shape::OfPairs(_)
        | Shape::State(_)
        | Shape::Datum => None,
    }
}

/// The rank of a group's key.
fn of_key(value: KeyValue<'_>, shape: KeyShape, order: Order) -> Rank {
    match (value, shape) {
        (KeyValue::Number(scalar), KeyShape::Number(number)) => of_number(scalar, number, order),
        (KeyValue::Number(scalar), _) => of_number(scalar, NumberType::I64, order),
        (KeyValue::Truth(truth), _) => order.rank(i64::from(truth)),
        _ => order.null(),
    }
}

/// The rank of an aggregate's result.
fn of_result(answer: Answer, shape: Shape, order: Order) -> Rank {
    match (answer, shape) {
        (Answer::Null, _) => order.null(),
        (Answer::OutOfRange, _) => error::evaluation(EvaluationError::FloatOverflow),
        (Answer::Count(count), _) => order.rank(count as i64),
        (Answer::Truth(truth), _) => order.rank(i64::from(truth)),
        (Answer::Integer(sum), Shape::BigInt) => order.rank(sum as i64),
        (Answer::Integer(sum), _) => order.rank(sum as f64),
        (Answer::Average { count, sum }, _) => order.rank(sum as f64 / count as f64),
        (Answer::Number(scalar), Shape::Number(number)) => of_number(scalar, number, order),
        (answer, shape) => match result_datum::scalar(answer, shape) {
            None => order.null(),
            Some(scalar) => of_number(scalar, NumberType::F64, order),
        },
    }
}

/// The rank of a number.
fn of_number(scalar: Scalar, number: NumberType, order: Order) -> Rank {
    with_number!(number, T => order.rank(T::of_scalar(scalar)))
}
