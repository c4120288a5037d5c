//! The part of a plan that describes a join by time, and its form in `custom_private`.

use pgrx::pg_sys;

use super::right_side::RightSide;
use crate::expressions::aggregate_call;
use crate::expressions::joined_columns::{Computed, JoinedColumns};
use crate::expressions::translate::{Translation, Translator, number_type};
use crate::pg::kind::Kind;
use crate::pg::tree::{Aggref, Expr, Integers, List, View, make, plan_field, plan_node, walk};
use crate::pg::{catalog, names};
use crate::planner::time_match::Shape;

/// The right side of a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyColumn {
    /// The right side's column, counted from 1.
    pub column: i16,
    /// The kind of the column's values.
    pub kind: Kind,
    /// Whether NULL equals NULL.
    pub nulls_match: bool,
}

/// A bound on the right side's time.
#[derive(Clone, Copy, Debug)]
pub struct TimeBound {
    /// Whether the bound itself is included.
    pub inclusive: bool,
    /// The bound, an expression over the left side.
    pub time: Expr<'static>,
}

/// The result that a join needs from the rows within the bounds.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The nearest row: the latest one if the join looks back, otherwise the earliest one.
    Nearest {
        /// Whether the join looks back.
        backward: bool,
        /// For each column of the sub-select, the column of the right side's table, counted from
        /// 1, or 0 if it is an expression. Columns that only `computed` needs follow.
        outputs: Vec<i16>,
        /// Columns of the sub-select that are expressions: their indexes among the outputs, and
        /// the expressions, in which an output is a column of `INNER_VAR`.
        computed: Vec<Computed>,
    },
    /// Aggregates over all rows within the bounds.
    Aggregates(Vec<Aggref<'static>>),
}

/// A join by time as a plan describes it.
#[derive(Clone, Debug)]
pub struct JoinPlan {
    /// The right side's table.
    pub table: pg_sys::Oid,
    /// Its column of times, counted from 1.
    pub time: i16,
    /// Whether left rows without a match are dropped.
    pub inner: bool,
    /// The right sides of the keys.
    pub keys: Vec<KeyColumn>,
    /// The left sides of the keys, expressions over the left table.
    pub left_keys: Vec<Expr<'static>>,
    /// The lower bound.
    pub lower: Option<TimeBound>,
    /// The upper bound.
    pub upper: Option<TimeBound>,
    /// Conditions on the right side's table alone, in its own range-table numbering.
    pub table_quals: List<'static, Expr<'static>>,
    /// The result that the join needs.
    pub wanted: Wanted,
}

impl JoinPlan {
    /// Builds the join for a recognised sub-select.
    ///
    /// # Errors
    /// Why the join cannot be vectorised.
    pub fn of(shape: &Shape, wanted: Wanted, inner: bool) -> Translation<JoinPlan> {
        check_shape(shape, &wanted)?;
        let (lower, upper) = bounds(shape)?;
        if let Wanted::Nearest { backward, .. } = wanted {
            let near = if backward { &upper } else { &lower };
            if near.is_none() {
                return Err("the nearest row of a side without a bound".into());
            }
        }
        let keys = keys(shape)?;
        let table_quals = List::new(shape.table_quals.iter().map(|qual| plan_node(*qual)));
        table_quals.iter().for_each(Expr::fix_operators);
        Ok(JoinPlan {
            table: shape.table,
            time: shape.time,
            inner,
            keys,
            left_keys: shape
                .keys
                .iter()
                .map(|key| raised(plan_node(key.outer)))
                .collect(),
            lower,
            upper,
            table_quals,
            wanted,
        })
    }

    /// The columns of the sub-select that are expressions.
    pub fn computed(&self) -> &[Computed] {
        match &self.wanted {
            Wanted::Nearest { computed, .. } => computed,
            Wanted::Aggregates(_) => &[],
        }
    }

    /// The number types of the sub-select's columns; `None` for a column that is not a number.
    pub fn outputs(&self) -> Vec<Option<pg_sys::Oid>> {
        match &self.wanted {
            Wanted::Nearest {
                outputs, computed, ..
            } => {
                let type_of =
                    |column: &i16| (*column > 0).then(|| catalog::column_type(self.table, *column));
                let mut types: Vec<_> = outputs.iter().map(type_of).collect();
                for (place, expression) in computed {
                    types[*place] = Some(expression.type_of());
                }
                types
            }
            Wanted::Aggregates(calls) => calls.iter().map(|call| Some(call.aggtype())).collect(),
        }
    }

    /// Checks that everything can be vectorised. `translator` belongs to the left side.
    pub fn check(&self, translator: &mut Translator) -> Translation<()> {
        for key in &self.left_keys {
            aggregate_call::key(translator, *key)?;
        }
        for bound in [self.lower, self.upper].into_iter().flatten() {
            translator.value(bound.time)?;
        }
        RightSide::check(self)
    }

    /// The expressions over the left side: keys, then bounds.
    pub fn left_expressions(&self) -> Vec<*mut pg_sys::Node> {
        let bounds = [self.lower, self.upper].into_iter().flatten();
        let keys = self.left_keys.iter().copied();
        let all = keys.chain(bounds.map(|bound| bound.time));
        all.map(View::as_ptr).collect()
    }

    /// Encodes the join as a list of nodes that PostgreSQL can copy, without the expressions
    /// over the left side.
    pub fn encode(&self) -> *mut pg_sys::List {
        let inclusive =
            |bound: &Option<TimeBound>| bound.map_or(0, |bound| 1 + i32::from(bound.inclusive));
        let mut numbers = vec![
            self.table.to_u32() as i32,
            i32::from(self.time),
            i32::from(self.inner),
            inclusive(&self.lower),
            inclusive(&self.upper),
            self.keys.len() as i32,
        ];
        for key in &self.keys {
            let column = i32::from(key.column);
            numbers.extend([column, key.kind as i32, i32::from(key.nulls_match)]);
        }
        let (mut calls, mut expressions) = (List::EMPTY, List::EMPTY);
        match &self.wanted {
            Wanted::Nearest {
                backward,
                outputs,
                computed,
            } => {
                numbers.extend([i32::from(*backward), outputs.len() as i32]);
                numbers.extend(outputs.iter().map(|column| i32::from(*column)));
                for (place, expression) in computed {
                    numbers.push(*place as i32);
                    expressions.push(*expression);
                }
            }
            Wanted::Aggregates(aggregates) => {
                numbers.push(AGGREGATES);
                calls = List::new(aggregates.iter().copied());
            }
        }
        let parts = [
            Integers::new(numbers).as_node(),
            self.table_quals.as_node(),
            calls.as_node(),
            expressions.as_node(),
        ];
        List::of_options(parts).as_ptr()
    }

    /// Decodes such a list, with the expressions over the left side.
    pub fn decode(encoded: *mut pg_sys::List, expressions: &[*mut pg_sys::Node]) -> JoinPlan {
        let encoded: List<'static, Expr<'static>> = plan_field(encoded);
        let numbers = encoded.get(0).and_then(Expr::as_integers);
        let mut numbers = numbers.into_iter().flat_map(Integers::iter);
        let part = |place| {
            let nodes = encoded.get(place).and_then(Expr::as_nodes);
            nodes.unwrap_or(List::EMPTY)
        };
        let mut next = || numbers.next().unwrap_or_default();
        let table = pg_sys::Oid::from(next() as u32);
        let (time, inner) = (next() as i16, next() != 0);
        let (lower, upper) = (next(), next());
        let keys: Vec<KeyColumn> = (0..next())
            .map(|_| KeyColumn {
                column: next() as i16,
                kind: Kind::from_number(next()).unwrap_or(Kind::Int8),
                nulls_match: next() != 0,
            })
            .collect();
        let wanted = match next() {
            AGGREGATES => {
                let calls = encoded.get(2).and_then(Expr::as_list);
                Wanted::Aggregates(calls.into_iter().flatten().collect())
            }
            backward => Wanted::Nearest {
                backward: backward != 0,
                outputs: (0..next()).map(|_| next() as i16).collect(),
                computed: part(3)
                    .iter()
                    .map(|expression| (next() as usize, expression))
                    .collect(),
            },
        };
        let (left_keys, bounds) = expressions.split_at(keys.len());
        let mut bounds = bounds.iter();
        let mut bound = |how: i32| {
            (how > 0)
                .then(|| bounds.next())
                .flatten()
                .map(|time| TimeBound {
                    inclusive: how > 1,
                    time: plan_node(*time),
                })
        };
        JoinPlan {
            table,
            time,
            inner,
            left_keys: left_keys.iter().map(|key| plan_node(*key)).collect(),
            lower: bound(lower),
            upper: bound(upper),
            keys,
            table_quals: part(1),
            wanted,
        }
    }

    /// A description for EXPLAIN.
    pub fn describe(&self) -> String {
        let name = |column: i16| names::column_name(self.table, column);
        let table = names::table_name(self.table);
        let columns = self.keys.iter().map(|key| key.column).chain([self.time]);
        let columns: Vec<String> = columns.map(name).collect();
        let kind = match &self.wanted {
            Wanted::Nearest { backward: true, .. } => "asof backward",
            Wanted::Nearest { .. } => "asof forward",
            Wanted::Aggregates(_) => "window",
        };
        let join = if self.inner { "inner" } else { "left" };
        format!("{kind} ({join}) of {table} by {}", columns.join(", "))
    }
}

/// Refuses a sub-select whose conditions, order or time the join does not support.
fn check_shape(shape: &Shape, wanted: &Wanted) -> Translation<()> {
    if !shape.residual_quals.is_empty() {
        return Err("a condition on both sides beside the time and the keys".into());
    }
    if !shape.ties.is_empty() {
        return Err("a tie of the join's own".into());
    }
    if let Wanted::Nearest { backward, .. } = wanted
        && shape
            .arrival
            .is_some_and(|descending| descending != *backward)
    {
        return Err("the join takes the earlier arrival".into());
    }
    if !matches!(
        shape.time_kind,
        Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Date | Kind::Timestamp | Kind::Timestamptz
    ) {
        return Err("the join's time is a float".into());
    }
    Ok(())
}

/// The lower and the upper bound of a recognised sub-select.
fn bounds(shape: &Shape) -> Translation<(Option<TimeBound>, Option<TimeBound>)> {
    let (mut lower, mut upper) = (None, None);
    for bound in &shape.bounds {
        let place = if bound.upper { &mut upper } else { &mut lower };
        if place.is_some() {
            return Err("several bounds on one side of the time".into());
        }
        *place = Some(TimeBound {
            inclusive: bound.inclusive,
            time: raised(plan_node(bound.outer)),
        });
    }
    Ok((lower, upper))
}

/// The right sides of the keys of a recognised sub-select.
fn keys(shape: &Shape) -> Translation<Vec<KeyColumn>> {
    let mut keys = Vec::new();
    for key in &shape.keys {
        let is_float = matches!(key.kind, Kind::Float4 | Kind::Float8);
        if key.kind == Kind::Uuid || is_float && key.kind != key.outer_kind {
            return Err("a key of the join of type uuid, or of two types of floats".into());
        }
        keys.push(KeyColumn {
            column: key.column,
            kind: key.kind,
            nulls_match: key.nulls_match,
        });
    }
    Ok(keys)
}

/// Marks a plan for aggregates, where a plan for the nearest row stores whether it looks back.
const AGGREGATES: i32 = 2;

/// Rewrites a sub-select's expression over the outer query into the outer query's own numbering
/// of levels.
fn raised(expression: Expr<'_>) -> Expr<'_> {
    let copy = make::copy(expression);
    walk::expression(copy, &mut |node, _| {
        if let Some(column) = node.as_var() {
            column.set_levels_up(0);
        }
        false
    });
    copy.fix_operators();
    copy
}

/// The number types of the sub-select's columns, for a translator.
pub fn number_types(plan: &JoinPlan) -> Vec<Option<lanes_columnar::vector::number::NumberType>> {
    let outputs = plan.outputs().into_iter();
    outputs.map(|output| output.and_then(number_type)).collect()
}

impl JoinPlan {
    /// The columns of the sub-select, for a translator of expressions over the joined rows of a table.
    pub fn joined_columns(&self, table: u32) -> JoinedColumns {
        JoinedColumns {
            table,
            types: number_types(self),
            computed: self.computed().to_vec(),
            variables: None,
            codes_before: 0,
        }
    }
}
