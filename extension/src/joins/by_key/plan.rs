//! The part of a plan that describes a hash join.

use pgrx::pg_sys;

use crate::custom_scan::stand_in;
use crate::expressions::joined_columns::JoinedColumns;
use crate::expressions::translate::number_type;
use crate::pg::columns::{self, Column};
use crate::pg::exec::memory::hash_memory_limit;
use crate::pg::explain::Explain;
use crate::pg::tree::Relids;

/// The kind of a join, in which the lanes table is the left side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinKind {
    /// Each left row is returned once for each small row with equal keys.
    Inner,
    /// Each left row with a match is returned once, without columns of the small side.
    Semi,
    /// Like an inner join, but each left row without a match is returned too, with NULLs for the
    /// small side's columns.
    Left,
    /// Each left row without a match is returned once, without columns of the small side.
    Anti,
    /// Like an inner join, but each small row without a match is returned too, with NULLs for
    /// the lanes table's columns.
    Right,
    /// Like an inner join, but each row of either side without a match is returned too.
    Full,
    /// Each small row with a match is returned once, without columns of the lanes table.
    RightSemi,
    /// Each small row without a match is returned once, without columns of the lanes table.
    RightAnti,
}

impl JoinKind {
    const ALL: [(JoinKind, &'static str); 8] = [
        (JoinKind::Inner, "inner"),
        (JoinKind::Semi, "semi"),
        (JoinKind::Left, "left"),
        (JoinKind::Anti, "anti"),
        (JoinKind::Right, "right"),
        (JoinKind::Full, "full"),
        (JoinKind::RightSemi, "right semi"),
        (JoinKind::RightAnti, "right anti"),
    ];

    /// PostgreSQL's kind of join with the lanes table as the left side; `None` for a kind that
    /// is not supported.
    pub fn of(kind: pg_sys::JoinType::Type) -> Option<JoinKind> {
        use pg_sys::JoinType::*;
        Some(match kind {
            JOIN_INNER => JoinKind::Inner,
            JOIN_SEMI => JoinKind::Semi,
            JOIN_LEFT => JoinKind::Left,
            JOIN_ANTI => JoinKind::Anti,
            JOIN_RIGHT => JoinKind::Right,
            JOIN_FULL => JoinKind::Full,
            _ => return None,
        })
    }

    /// The number that stands for the kind in a plan.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The kind for a number in a plan; `None` for a number that [`Self::number`] never returns.
    pub fn from_number(number: i32) -> Option<JoinKind> {
        Self::ALL.get(number as usize).map(|(kind, _)| *kind)
    }

    /// The kind as EXPLAIN shows it.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Whether left rows without a match are dropped. Then the small side's keys show which
    /// vectors can be skipped.
    pub fn needs_match(self) -> bool {
        !matches!(self, JoinKind::Left | JoinKind::Anti | JoinKind::Full)
    }

    /// Whether small rows are returned at the end of a batch, without a row of the lanes table.
    pub fn keeps_small_rows(self) -> bool {
        self.keeps_unmatched_rows() || self == JoinKind::RightSemi
    }

    /// Whether small rows without a match are returned. One with a NULL key has none.
    pub fn keeps_unmatched_rows(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full | JoinKind::RightAnti)
    }

    /// Whether left rows only decide which small rows are returned.
    pub fn wants_small_rows_alone(self) -> bool {
        matches!(self, JoinKind::RightSemi | JoinKind::RightAnti)
    }

    /// Whether left rows without a match are returned with NULLs.
    pub fn keeps_left_rows(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Full)
    }

    /// Whether the small side may be split into batches, with one scan of the lanes table for
    /// each. This is possible if no left row has to be known to have no match in any batch.
    pub fn is_divisible(self) -> bool {
        self == JoinKind::Inner || self == JoinKind::Right || self.wants_small_rows_alone()
    }

    /// Bytes that the keys and values of a small side may take. A side of which only the distinct keys are kept cannot
    /// be divided and may take more. The hash table, which is not counted, takes as much again.
    pub fn memory_limit(self) -> usize {
        match self {
            JoinKind::Semi | JoinKind::Anti => stand_in::memory_limit() / 2,
            _ => hash_memory_limit(),
        }
    }

    /// The kind of the same join with its sides swapped.
    pub fn exchanged(self) -> JoinKind {
        match self {
            JoinKind::Inner => JoinKind::Inner,
            JoinKind::Semi => JoinKind::RightSemi,
            JoinKind::Left => JoinKind::Right,
            JoinKind::Anti => JoinKind::RightAnti,
            JoinKind::Right => JoinKind::Left,
            JoinKind::Full => JoinKind::Full,
            JoinKind::RightSemi => JoinKind::Semi,
            JoinKind::RightAnti => JoinKind::Anti,
        }
    }

    /// Whether only the existence of a match matters.
    pub fn wants_keys_alone(self) -> bool {
        matches!(self, JoinKind::Semi | JoinKind::Anti)
    }
}

/// A small side that the lanes table is joined with.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// The kind of the join with this side.
    pub kind: JoinKind,
    /// The keys over the lanes table, or over the columns of one earlier dimension.
    pub left_keys: Vec<*mut pg_sys::Node>,
    /// Further conditions that a row of this side has to meet to be a match of a left row.
    pub conditions: Vec<*mut pg_sys::Node>,
}

/// A column of a small side that the query needs.
#[derive(Clone, Copy, Debug)]
pub struct SmallColumn {
    /// The column.
    pub column: *mut pg_sys::Node,
    /// The index of its dimension.
    pub dimension: usize,
}

/// A hash join as a plan describes it. The expressions are in `custom_scan_tlist`, where
/// PostgreSQL adjusts their range-table indexes. So the executor can still identify each output
/// by its range-table index and column number.
#[derive(Clone, Debug)]
pub struct HashJoinPlan {
    /// The range-table index of the lanes table.
    pub table: u32,
    /// The small sides in the order in which they are joined. The plan of each returns its keys,
    /// then its outputs in their order.
    pub dimensions: Vec<Dimension>,
    /// Conditions on the rows that outer joins return.
    pub filters: Vec<*mut pg_sys::Node>,
    /// The columns of small sides that the query needs.
    pub outputs: Vec<SmallColumn>,
    /// The dimension that may be read in batches, with one scan of the lanes table for each. The
    /// other dimensions are read completely.
    pub divided: Option<usize>,
}

impl HashJoinPlan {
    /// The keys of all dimensions on the side that is not the small one.
    pub fn left_keys(&self) -> Vec<*mut pg_sys::Node> {
        let dimensions = self.dimensions.iter();
        dimensions
            .flat_map(|dimension| &dimension.left_keys)
            .copied()
            .collect()
    }

    /// The conditions of all dimensions.
    pub fn match_conditions(&self) -> Vec<*mut pg_sys::Node> {
        let dimensions = self.dimensions.iter();
        let conditions = dimensions.flat_map(|dimension| &dimension.conditions);
        conditions.copied().collect()
    }

    /// The conditions of all dimensions, and those on the rows that outer joins return.
    pub fn conditions(&self) -> Vec<*mut pg_sys::Node> {
        let mut conditions = self.match_conditions();
        conditions.extend(&self.filters);
        conditions
    }

    /// Writes the join's properties for EXPLAIN.
    pub fn explain(&self, explain: &Explain) {
        explain.text(c"Hash Join", &self.kinds());
        explain.expressions(c"Join Key", &self.left_keys());
        explain.conditions(c"Join Filter", &self.match_conditions());
        explain.conditions(c"Joined Row Filter", &self.filters);
    }

    /// The keys and the conditions, as a plan stores them.
    pub fn expressions(&self) -> Vec<*mut pg_sys::Node> {
        let mut expressions = self.left_keys();
        expressions.extend(self.conditions());
        expressions
    }

    /// The outputs as expressions.
    pub fn columns(&self) -> Vec<*mut pg_sys::Node> {
        let outputs = self.outputs.iter();
        outputs.map(|output| output.column).collect()
    }

    /// Whether small rows are returned without a row of the lanes table.
    pub fn keeps_small_rows(&self) -> bool {
        self.dimensions.iter().any(|d| d.kind.keeps_small_rows())
    }

    /// Whether the join has a single small side and that side may be split into batches.
    pub fn is_divisible(&self) -> bool {
        self.dimensions.len() == 1 && self.divided.is_some()
    }

    /// The names of the kinds of join, as EXPLAIN shows them.
    pub fn kinds(&self) -> String {
        let kinds: Vec<_> = self.dimensions.iter().map(|d| d.kind.name()).collect();
        kinds.join(", ")
    }

    /// The numbers that a plan stores beside the expressions and outputs: the number of dimensions, the divided one,
    /// the kind and the numbers of keys and conditions of each, and the dimension of each output.
    pub fn numbers(&self) -> Vec<i32> {
        let divided = self.divided.map_or(-1, |divided| divided as i32);
        let mut numbers = vec![self.dimensions.len() as i32, divided];
        for dimension in &self.dimensions {
            let counts = [dimension.left_keys.len(), dimension.conditions.len()];
            numbers.push(dimension.kind.number());
            numbers.extend(counts.map(|count| count as i32));
        }
        numbers.extend(self.outputs.iter().map(|output| output.dimension as i32));
        numbers
    }

    /// Restores the join from its [expressions](Self::expressions), columns and [numbers](Self::numbers); `None` if it
    /// has no dimension.
    pub fn of_numbers(
        table: u32,
        expressions: Vec<*mut pg_sys::Node>,
        columns: Vec<*mut pg_sys::Node>,
        numbers: &[i32],
    ) -> Option<HashJoinPlan> {
        let (&count, numbers) = numbers.split_first().filter(|(count, _)| **count > 0)?;
        let (&divided, numbers) = numbers.split_first()?;
        let (of_dimensions, numbers) = numbers.split_at_checked(3 * count as usize)?;
        let mut expressions = expressions.into_iter();
        let dimension = |numbers: &[i32]| {
            Some(Dimension {
                kind: JoinKind::from_number(numbers[0])?,
                left_keys: expressions.by_ref().take(numbers[1] as usize).collect(),
                conditions: Vec::new(),
            })
        };
        let dimensions = of_dimensions.chunks(3).map(dimension);
        let mut dimensions = dimensions.collect::<Option<Vec<_>>>()?;
        for (dimension, numbers) in dimensions.iter_mut().zip(of_dimensions.chunks(3)) {
            let conditions = expressions.by_ref().take(numbers[2] as usize);
            dimension.conditions = conditions.collect();
        }
        let output = |(column, &dimension): (*mut pg_sys::Node, &i32)| SmallColumn {
            column,
            dimension: dimension as usize,
        };
        Some(HashJoinPlan {
            table,
            dimensions,
            filters: expressions.collect(),
            outputs: columns.into_iter().zip(numbers).map(output).collect(),
            divided: usize::try_from(divided).ok(),
        })
    }

    /// The outputs, for a translator whose frame has `codes_before` codes before them.
    pub fn joined_columns(&self, codes_before: usize) -> JoinedColumns {
        let outputs = || self.outputs.iter().map(|output| output.column);
        let number = |column| number_type(columns::base_type_of(column));
        let variable = |column: *mut pg_sys::Node| {
            columns::column(column).map(|column| (column.table, column.number))
        };
        JoinedColumns {
            table: self.table,
            types: outputs().map(number).collect(),
            computed: Vec::new(),
            variables: outputs().map(variable).collect(),
            codes_before,
        }
    }

    /// The index of a column among the outputs.
    pub fn place_of(&self, column: Column) -> Option<usize> {
        let mut outputs = self.outputs.iter();
        outputs.position(|output| {
            let output = columns::column(output.column);
            output.is_some_and(|output| {
                (output.table, output.number) == (column.table, column.number)
            })
        })
    }

    /// The index of an output among the outputs of its dimension.
    pub fn place_in_dimension(&self, output: usize) -> usize {
        let dimension = self.outputs[output].dimension;
        let before = self.outputs[..output].iter();
        before.filter(|other| other.dimension == dimension).count()
    }

    /// A copy of an expression whose columns of a small side are those of the outer row. Each row of a small side has
    /// its keys before its outputs.
    pub fn over_slots(&self, expression: *mut pg_sys::Node) -> *mut pg_sys::Node {
        columns::renumbered(expression, |column| {
            let Some(place) = self.place_of(column).filter(|_| !self.is_left(&column)) else {
                return (column.table, column.number);
            };
            let keys = &self.dimensions[self.outputs[place].dimension].left_keys;
            let number = (keys.len() + self.place_in_dimension(place)) as i16 + 1;
            (pg_sys::OUTER_VAR, number)
        })
    }

    fn is_left(&self, column: &Column) -> bool {
        column.table as u32 == self.table
    }

    /// Whether an expression is over small sides alone.
    pub fn is_small(&self, expression: *mut pg_sys::Node) -> bool {
        let columns = columns::columns(expression);
        !columns.is_empty() && !columns.iter().any(|column| self.is_left(column))
    }

    /// Whether an expression has columns of small sides.
    pub fn has_small(&self, expression: *mut pg_sys::Node) -> bool {
        let columns = columns::columns(expression);
        columns.iter().any(|column| !self.is_left(column))
    }

    /// The indexes among all outputs of the columns in an expression.
    pub fn places(&self, expression: *mut pg_sys::Node) -> impl Iterator<Item = usize> {
        let columns = columns::columns(expression).into_iter();
        columns.filter_map(|column| self.place_of(column))
    }

    /// The columns of an expression over one small side, as indexes among the outputs of its
    /// dimension.
    pub fn places_in_dimension(&self, expression: *mut pg_sys::Node) -> Vec<usize> {
        let places = self.places(expression);
        places.map(|place| self.place_in_dimension(place)).collect()
    }

    /// The dimension of all columns in an expression over small sides.
    ///
    /// # Errors
    /// If the columns belong to several dimensions.
    pub fn dimension_of(&self, expression: *mut pg_sys::Node) -> Result<usize, String> {
        let places = self.places(expression);
        let mut dimensions = places.map(|place| self.outputs[place].dimension);
        let first = dimensions.next().unwrap_or_default();
        match dimensions.all(|other| other == first) {
            true => Ok(first),
            false => Err("GROUP BY an expression over several joined tables".into()),
        }
    }

    /// Adds the columns of small sides in an expression to the outputs. `relations` are the
    /// relations of each dimension.
    ///
    /// # Errors
    /// If the expression needs more of a small side than its columns.
    pub fn want(
        &mut self,
        expression: *mut pg_sys::Node,
        relations: &[Relids<'_>],
    ) -> Result<(), String> {
        if columns::has_place_holder(expression) {
            return Err("a value computed below the join".into());
        }
        for node in columns::nodes_of(expression, pg_sys::NodeTag::T_Var) {
            let Some(column) = columns::column(node) else {
                continue;
            };
            if self.is_left(&column) || self.place_of(column).is_some() {
                continue;
            }
            let mut relations = relations.iter();
            let dimension = relations.position(|relations| relations.contains(column.table));
            self.outputs.push(SmallColumn {
                column: node,
                dimension: dimension.ok_or("a column of none of the joined tables")?,
            });
        }
        Ok(())
    }
}
