//! What the plan of an ASOF join stores, and its form in `custom_private`.
//!
//! The node's only child is the nested loop that PostgreSQL would run. The node reads the loop's
//! left side, and uses the loop's projection and conditions for its result. The loop's right side
//! runs only where the node cannot replace it. So permissions, locks, parameters and dependencies
//! are the loop's own.
//!
//! | list | content |
//! |---|---|
//! | 0 | the right table's object id |
//! | 1 | numbers: time, direction, keys, bounds, ties, kept columns, outputs |
//! | 2–6 | key expressions, bound expressions, table conditions, candidate conditions, conditions on the match |
//! | 7 | properties for EXPLAIN |

use pgrx::pg_sys;

use super::history::TieImage;
use crate::pg::exec::node::CustomPlan;
use crate::pg::kind::Kind;
use crate::pg::tree::{Expr, Integers, List, Oids, plan_field};

/// Replaces the place of a kept column where the loop uses no such column.
pub const NOT_KEPT: i32 = -1;

/// An equality of a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyColumn {
    /// The right table's column, counted from 1.
    pub column: i16,
    /// The kind of the column.
    pub kind: Kind,
    /// The kind of the expression on the left side.
    pub outer_kind: Kind,
    /// Whether NULL equals NULL.
    pub nulls_match: bool,
}

impl KeyColumn {
    fn next(numbers: &mut impl Iterator<Item = i32>) -> Option<KeyColumn> {
        Some(KeyColumn {
            column: numbers.next()? as i16,
            kind: next_kind(numbers)?,
            outer_kind: next_kind(numbers)?,
            nulls_match: next_flag(numbers)?,
        })
    }
}

/// A bound of the right table's time.
#[derive(Clone, Copy, Debug)]
pub struct BoundKind {
    /// Whether this is the upper bound (`<=`, `<`).
    pub upper: bool,
    /// Whether the bound itself is a match.
    pub inclusive: bool,
    /// The kind of the expression on the left side.
    pub outer_kind: Kind,
}

impl BoundKind {
    fn next(numbers: &mut impl Iterator<Item = i32>) -> Option<BoundKind> {
        Some(BoundKind {
            upper: next_flag(numbers)?,
            inclusive: next_flag(numbers)?,
            outer_kind: next_kind(numbers)?,
        })
    }
}

/// A tie breaker, in the order of the history: ascending, with the best match at the near end.
#[derive(Clone, Copy, Debug)]
pub struct TieColumn {
    /// The column, counted from 1.
    pub column: i16,
    /// The kind of the column.
    pub kind: Kind,
    /// Whether greater values come earlier.
    pub inverted: bool,
    /// Whether NULLs come earlier than values.
    pub nulls_low: bool,
}

impl TieColumn {
    fn next(numbers: &mut impl Iterator<Item = i32>) -> Option<TieColumn> {
        Some(TieColumn {
            column: numbers.next()? as i16,
            kind: next_kind(numbers)?,
            inverted: next_flag(numbers)?,
            nulls_low: next_flag(numbers)?,
        })
    }

    /// The image of a value.
    pub fn image(&self, value: Option<pg_sys::Datum>) -> TieImage {
        match value {
            None => (if self.nulls_low { -1 } else { 1 }, 0),
            Some(value) => {
                let image = self.kind.ordered(value);
                (0, if self.inverted { !image } else { image })
            }
        }
    }
}

/// The plan. Its expressions refer to the loop's left side as `OUTER_VAR`, to kept columns as `INNER_VAR`, and in
/// `table_quals` to the right table itself.
#[derive(Clone, Debug)]
pub struct AsofPlan {
    /// The right table.
    pub table: pg_sys::Oid,
    /// The right table's time column, counted from 1.
    pub time: i16,
    /// The kind of the time column.
    pub time_kind: Kind,
    /// Whether the latest match is wanted, not the earliest.
    pub backward: bool,
    /// Whether rows that arrived later come earlier in the history.
    pub arrival_inverted: bool,
    /// The equalities.
    pub keys: Vec<KeyColumn>,
    /// The left side of each equality.
    pub key_expressions: List<'static, Expr<'static>>,
    /// The bounds of the time.
    pub bounds: Vec<BoundKind>,
    /// The left side of each bound.
    pub bound_expressions: List<'static, Expr<'static>>,
    /// The tie breakers.
    pub ties: Vec<TieColumn>,
    /// The columns of the right table that the history keeps, counted from 1.
    pub kept: Vec<i16>,
    /// For each column of the loop's right side the kept column, counted from 0, or [`NOT_KEPT`].
    pub outputs: Vec<i32>,
    /// Conditions on the right table alone.
    pub table_quals: List<'static, Expr<'static>>,
    /// Conditions on a left row and a kept row, which select among the candidates.
    pub residual_quals: List<'static, Expr<'static>>,
    /// Conditions on the match alone. If a match fails them, the left row has no match.
    pub chosen_quals: List<'static, Expr<'static>>,
    /// Properties for EXPLAIN: label, text, label, text, …
    pub properties: List<'static, Expr<'static>>,
}

impl AsofPlan {
    /// The plan as a list that PostgreSQL can copy and print.
    pub fn encode(&self) -> List<'static, Expr<'static>> {
        let mut numbers = vec![
            i32::from(self.time),
            self.time_kind as i32,
            i32::from(self.backward),
            i32::from(self.arrival_inverted),
        ];
        numbers.push(self.keys.len() as i32);
        for key in &self.keys {
            numbers.extend([
                i32::from(key.column),
                key.kind as i32,
                key.outer_kind as i32,
                i32::from(key.nulls_match),
            ]);
        }
        numbers.push(self.bounds.len() as i32);
        for bound in &self.bounds {
            numbers.extend([
                i32::from(bound.upper),
                i32::from(bound.inclusive),
                bound.outer_kind as i32,
            ]);
        }
        numbers.push(self.ties.len() as i32);
        for tie in &self.ties {
            numbers.extend([
                i32::from(tie.column),
                tie.kind as i32,
                i32::from(tie.inverted),
                i32::from(tie.nulls_low),
            ]);
        }
        numbers.push(self.kept.len() as i32);
        numbers.extend(self.kept.iter().map(|&column| i32::from(column)));
        numbers.push(self.outputs.len() as i32);
        numbers.extend(&self.outputs);
        let expressions = [
            self.key_expressions,
            self.bound_expressions,
            self.table_quals,
            self.residual_quals,
            self.chosen_quals,
            self.properties,
        ];
        let table = Oids::new([self.table]).as_node();
        let first = [table, Integers::new(numbers).as_node()].into_iter();
        List::of_options(first.chain(expressions.map(List::as_node)))
    }

    /// The plan that [`AsofPlan::encode`] stored. `None`: the node runs the nested loop, because
    /// `encode` was not called.
    pub fn of(plan: CustomPlan<'_>) -> Option<AsofPlan> {
        let list: List<'static, Expr<'static>> = plan_field(plan.private());
        if list.len() != 8 {
            return None;
        }
        let part = |index| {
            let nodes = list.get(index).and_then(Expr::as_nodes);
            nodes.unwrap_or(List::EMPTY)
        };
        let table = list.get(0).and_then(Expr::as_oids)?.iter().next()?;
        let mut numbers = list.get(1).and_then(Expr::as_integers)?.iter();
        let numbers = &mut numbers;
        Some(AsofPlan {
            table,
            time: numbers.next()? as i16,
            time_kind: next_kind(numbers)?,
            backward: next_flag(numbers)?,
            arrival_inverted: next_flag(numbers)?,
            keys: next_list(numbers, KeyColumn::next)?,
            key_expressions: part(2),
            bounds: next_list(numbers, BoundKind::next)?,
            bound_expressions: part(3),
            ties: next_list(numbers, TieColumn::next)?,
            kept: next_list(numbers, |numbers| Some(numbers.next()? as i16))?,
            outputs: next_list(numbers, |numbers| numbers.next())?,
            table_quals: part(4),
            residual_quals: part(5),
            chosen_quals: part(6),
            properties: part(7),
        })
    }
}

/// The list that the next numbers stand for: its length, then its elements.
fn next_list<N: Iterator<Item = i32>, T>(
    numbers: &mut N,
    mut element: impl FnMut(&mut N) -> Option<T>,
) -> Option<Vec<T>> {
    let length = numbers.next()?;
    (0..length).map(|_| element(numbers)).collect()
}

fn next_kind(numbers: &mut impl Iterator<Item = i32>) -> Option<Kind> {
    Kind::from_number(numbers.next()?)
}

fn next_flag(numbers: &mut impl Iterator<Item = i32>) -> Option<bool> {
    Some(numbers.next()? != 0)
}
