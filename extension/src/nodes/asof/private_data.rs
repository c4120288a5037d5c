//! What the plan of an accelerated join remembers, and its way through `custom_private`.
//!
//! The node stands over the nested loop that Postgres would run: the loop's left side is read through it, its projection and
//! filters make the answer, and its right side runs only where the node cannot stand in for it. So permissions, locks,
//! parameters and dependencies are the loop's own.

use pgrx::pg_sys;

use super::history::TieImage;
use crate::pg::kind::Kind;
use crate::pg::{nodes, ports, tree};

/// Stands for a kept column where nobody asks for one.
pub const NOT_KEPT: i32 = -1;

/// One side's part of an equality, for execution.
#[derive(Clone, Copy, Debug)]
pub struct KeyColumn {
    /// The column, counted from 1.
    pub column: i16,
    /// How it is read.
    pub kind: Kind,
    /// How the other side is read.
    pub outer_kind: Kind,
    /// NULL equals NULL.
    pub nulls_match: bool,
}

/// A bound of the time, for execution.
#[derive(Clone, Copy, Debug)]
pub struct BoundKind {
    /// `<=`, `<`
    pub upper: bool,
    /// Equal is within.
    pub inclusive: bool,
    /// How the other side is read.
    pub outer_kind: Kind,
}

/// A tie in the order of the history: ascending, and the best at the near end.
#[derive(Clone, Copy, Debug)]
pub struct TieColumn {
    /// The column, counted from 1.
    pub column: i16,
    /// How it is read.
    pub kind: Kind,
    /// Greater values come earlier.
    pub inverted: bool,
    /// NULLs come earlier than values.
    pub nulls_low: bool,
}

impl TieColumn {
    /// A value's image.
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

/// What the plan remembers. Expressions refer to the loop's left side as `OUTER_VAR`, to kept columns as `INNER_VAR`, and in
/// `table_quals` to the table itself.
#[derive(Clone, Debug)]
pub struct Node {
    /// The table.
    pub table: pg_sys::Oid,
    /// The time's column.
    pub time: i16,
    /// How it is read.
    pub time_kind: Kind,
    /// The latest is wanted.
    pub backward: bool,
    /// Later arrivals come earlier in the history.
    pub arrival_inverted: bool,
    /// Equalities, and the other sides' expressions.
    pub keys: Vec<KeyColumn>,
    /// See `keys`.
    pub key_expressions: *mut pg_sys::List,
    /// Bounds, and the other sides' expressions.
    pub bounds: Vec<BoundKind>,
    /// See `bounds`.
    pub bound_expressions: *mut pg_sys::List,
    /// Ties.
    pub ties: Vec<TieColumn>,
    /// Columns of the table that are kept, counted from 1.
    pub kept: Vec<i16>,
    /// For each column of the loop's right side the kept column, counted from 0, or [`NOT_KEPT`].
    pub outputs: Vec<i32>,
    /// Conditions on the table alone.
    pub table_quals: *mut pg_sys::List,
    /// Conditions on a left row and a kept row.
    pub residual_quals: *mut pg_sys::List,
    /// Conditions on the chosen row alone: one that fails them is no match, and no other is looked for.
    pub chosen_quals: *mut pg_sys::List,
    /// Lines for EXPLAIN: label, text, label, text, …
    pub lines: *mut pg_sys::List,
}

impl Node {
    /// As a list of nodes that Postgres can copy and print.
    ///
    /// # Safety
    /// Live expressions.
    pub unsafe fn encode(&self) -> *mut pg_sys::List {
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
        // SAFETY: lists of their own kinds; a null list is a legal element.
        unsafe {
            tree::list(&[
                pg_sys::lappend_oid(std::ptr::null_mut(), self.table),
                nodes::integers(&numbers),
                self.key_expressions,
                self.bound_expressions,
                self.table_quals,
                self.residual_quals,
                self.chosen_quals,
                self.lines,
            ])
        }
    }

    /// What [`Node::encode`] made. `None`: something else, as a plan without the means to accelerate has.
    ///
    /// # Safety
    /// A live list.
    pub unsafe fn decode(list: *const pg_sys::List) -> Option<Node> {
        // SAFETY: the element types are those of `encode`.
        unsafe {
            if ports::list_length(list) != 8 {
                return None;
            }
            let part = |index| ports::list_nth::<pg_sys::List>(list, index);
            let table = (*(*part(0)).elements).oid_value;
            let mut numbers = nodes::integers_of(part(1)).into_iter();
            let mut next = || numbers.next();
            let flag = |number: i32| number != 0;
            let (time, time_kind) = (next()? as i16, Kind::from_number(next()?)?);
            let (backward, arrival_inverted) = (flag(next()?), flag(next()?));
            let mut keys = Vec::new();
            for _ in 0..next()? {
                keys.push(KeyColumn {
                    column: next()? as i16,
                    kind: Kind::from_number(next()?)?,
                    outer_kind: Kind::from_number(next()?)?,
                    nulls_match: flag(next()?),
                });
            }
            let mut bounds = Vec::new();
            for _ in 0..next()? {
                bounds.push(BoundKind {
                    upper: flag(next()?),
                    inclusive: flag(next()?),
                    outer_kind: Kind::from_number(next()?)?,
                });
            }
            let mut ties = Vec::new();
            for _ in 0..next()? {
                ties.push(TieColumn {
                    column: next()? as i16,
                    kind: Kind::from_number(next()?)?,
                    inverted: flag(next()?),
                    nulls_low: flag(next()?),
                });
            }
            let mut kept = Vec::new();
            for _ in 0..next()? {
                kept.push(next()? as i16);
            }
            let mut outputs = Vec::new();
            for _ in 0..next()? {
                outputs.push(next()?);
            }
            Some(Node {
                table,
                time,
                time_kind,
                backward,
                arrival_inverted,
                keys,
                key_expressions: part(2),
                bounds,
                bound_expressions: part(3),
                ties,
                kept,
                outputs,
                table_quals: part(4),
                residual_quals: part(5),
                chosen_quals: part(6),
                lines: part(7),
            })
        }
    }
}
