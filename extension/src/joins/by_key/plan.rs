//! What a plan remembers of a hash join.

use pgrx::pg_sys;

use crate::expressions::joined_columns::JoinedColumns;
use crate::expressions::translate::number_type;

/// Which rows a join gives. The lanes table is its left side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinKind {
    /// Each left row is returned once for each small row with equal keys.
    Inner,
    /// Each left row with a match is returned once, without columns of the small side.
    Semi,
    /// As an inner join; each left row without a match is returned too, with NULLs for the small side's columns.
    Left,
    /// Each left row without a match is returned once, without columns of the small side.
    Anti,
    /// As an inner join; each small row without a match is returned too, with NULLs for the lanes table's columns.
    Right,
    /// As an inner join; each row of either side without a match is returned too.
    Full,
}

impl JoinKind {
    const ALL: [(JoinKind, pg_sys::JoinType::Type, &'static str); 6] = [
        (JoinKind::Inner, pg_sys::JoinType::JOIN_INNER, "inner"),
        (JoinKind::Semi, pg_sys::JoinType::JOIN_SEMI, "semi"),
        (JoinKind::Left, pg_sys::JoinType::JOIN_LEFT, "left"),
        (JoinKind::Anti, pg_sys::JoinType::JOIN_ANTI, "anti"),
        (JoinKind::Right, pg_sys::JoinType::JOIN_RIGHT, "right"),
        (JoinKind::Full, pg_sys::JoinType::JOIN_FULL, "full"),
    ];

    /// PostgreSQL's kind of join, where the lanes table is the left side; none if it is not one of these.
    pub fn of(kind: pg_sys::JoinType::Type) -> Option<JoinKind> {
        let found = Self::ALL.into_iter().find(|(_, known, _)| *known == kind);
        found.map(|(kind, ..)| kind)
    }

    /// The number by which a plan remembers the kind.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The kind that a plan remembers by a number; none for a number that [`Self::number`] never gives.
    pub fn from_number(number: i32) -> Option<JoinKind> {
        Self::ALL.get(number as usize).map(|(kind, ..)| *kind)
    }

    /// The kind as EXPLAIN shows it.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    /// Whether left rows without a match are left out. Then the small side's keys show which vectors need not be read.
    pub fn needs_match(self) -> bool {
        matches!(self, JoinKind::Inner | JoinKind::Semi | JoinKind::Right)
    }

    /// Whether small rows without a match are returned.
    pub fn keeps_small_rows(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full)
    }

    /// Whether left rows without a match are returned with NULLs.
    pub fn keeps_left_rows(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Full)
    }

    /// Whether the small side may be divided into batches, for each of which the lanes table is read once: no left row
    /// has to be known to have no match in any of them.
    pub fn is_divisible(self) -> bool {
        matches!(self, JoinKind::Inner | JoinKind::Right)
    }

    /// PostgreSQL's kind of the same join with its sides exchanged; none for a kind that has no such twin.
    pub fn exchanged(kind: pg_sys::JoinType::Type) -> Option<pg_sys::JoinType::Type> {
        use pg_sys::JoinType::*;
        match kind {
            JOIN_INNER => Some(JOIN_INNER),
            JOIN_LEFT => Some(JOIN_RIGHT),
            JOIN_RIGHT => Some(JOIN_LEFT),
            JOIN_FULL => Some(JOIN_FULL),
            _ => None,
        }
    }

    /// Whether it is enough to know that there is a match.
    pub fn wants_keys_alone(self) -> bool {
        matches!(self, JoinKind::Semi | JoinKind::Anti)
    }
}

/// One side that the lanes table is joined with.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// Which rows the join with it gives.
    pub kind: JoinKind,
    /// The keys' sides over the lanes table, or over the columns of one dimension before this one.
    pub left_keys: Vec<*mut pg_sys::Node>,
}

/// A column of a small side that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct SmallColumn {
    /// The column.
    pub column: *mut pg_sys::Var,
    /// Which dimension has it.
    pub dimension: usize,
}

/// What a plan remembers of a hash join itself. The expressions stand in `custom_scan_tlist`, where PostgreSQL adjusts
/// their range-table indexes. So the executor still knows each output by its range-table index and column number.
#[derive(Clone, Debug)]
pub struct HashJoinPlan {
    /// The range-table index of the lanes table.
    pub table: u32,
    /// What the lanes table is joined with, in the order in which that is done. The plan of each returns its keys,
    /// then its columns among the outputs, in their order.
    pub dimensions: Vec<Dimension>,
    /// The columns of small sides that are wanted.
    pub outputs: Vec<SmallColumn>,
    /// The dimension that may be read in batches, for each of which the lanes table is read once. The others are read
    /// as a whole.
    pub divided: Option<usize>,
}

impl HashJoinPlan {
    /// The keys' sides that are not the small side's, of all dimensions.
    pub fn left_keys(&self) -> Vec<*mut pg_sys::Node> {
        let dimensions = self.dimensions.iter();
        dimensions
            .flat_map(|dimension| &dimension.left_keys)
            .copied()
            .collect()
    }

    /// The columns of small sides that are wanted, as expressions.
    pub fn columns(&self) -> Vec<*mut pg_sys::Node> {
        let outputs = self.outputs.iter();
        outputs.map(|output| output.column.cast()).collect()
    }

    /// Whether small rows without a match are returned.
    pub fn keeps_small_rows(&self) -> bool {
        self.dimensions.iter().any(|d| d.kind.keeps_small_rows())
    }

    /// Whether all that is read of small sides may be divided into batches: where there is one.
    pub fn is_divisible(&self) -> bool {
        self.dimensions.len() == 1 && self.divided.is_some()
    }

    /// The names of the kinds of join, as EXPLAIN shows them.
    pub fn kinds(&self) -> String {
        let kinds: Vec<_> = self.dimensions.iter().map(|d| d.kind.name()).collect();
        kinds.join(", ")
    }

    /// What is to be remembered beside the keys and the outputs: how many dimensions there are, which of them is
    /// divided, the kind and the number of keys of each, and the dimension of each output.
    pub fn numbers(&self) -> Vec<i32> {
        let divided = self.divided.map_or(-1, |divided| divided as i32);
        let mut numbers = vec![self.dimensions.len() as i32, divided];
        for dimension in &self.dimensions {
            numbers.extend([dimension.kind.number(), dimension.left_keys.len() as i32]);
        }
        numbers.extend(self.outputs.iter().map(|output| output.dimension as i32));
        numbers
    }

    /// The join of which these keys, columns and [numbers](Self::numbers) were remembered; none if it has no dimension.
    pub fn of_numbers(
        table: u32,
        left_keys: Vec<*mut pg_sys::Node>,
        columns: Vec<*mut pg_sys::Node>,
        numbers: &[i32],
    ) -> Option<HashJoinPlan> {
        let (&count, numbers) = numbers.split_first().filter(|(count, _)| **count > 0)?;
        let (&divided, numbers) = numbers.split_first()?;
        let (dimensions, numbers) = numbers.split_at_checked(2 * count as usize)?;
        let mut left_keys = left_keys.into_iter();
        let dimension = |numbers: &[i32]| {
            Some(Dimension {
                kind: JoinKind::from_number(numbers[0])?,
                left_keys: left_keys.by_ref().take(numbers[1] as usize).collect(),
            })
        };
        let dimensions = dimensions.chunks(2).map(dimension).collect::<Option<_>>()?;
        let output = |(column, &dimension): (*mut pg_sys::Node, &i32)| SmallColumn {
            column: column.cast(),
            dimension: dimension as usize,
        };
        Some(HashJoinPlan {
            table,
            dimensions,
            outputs: columns.into_iter().zip(numbers).map(output).collect(),
            divided: usize::try_from(divided).ok(),
        })
    }

    /// The wanted columns of small sides, for a translator whose frame has so many codes before them.
    pub fn joined_columns(&self, codes_before: usize) -> JoinedColumns {
        // SAFETY: the plan's live columns.
        let outputs = || self.outputs.iter().map(|output| unsafe { &*output.column });
        // SAFETY: a catalogue look-up.
        let type_of = |output: &pg_sys::Var| unsafe { pg_sys::getBaseType(output.vartype) };
        let variables = outputs().map(|output| (output.varno, output.varattno));
        JoinedColumns {
            table: self.table,
            types: outputs()
                .map(|output| number_type(type_of(output)))
                .collect(),
            computed: Vec::new(),
            variables: Some(variables.collect()),
            codes_before,
        }
    }

    /// The place of a column among the outputs.
    ///
    /// # Safety
    /// A live column.
    pub unsafe fn place_of(&self, column: *mut pg_sys::Var) -> Option<usize> {
        let mut outputs = self.outputs.iter().map(|output| output.column);
        // SAFETY: the caller's promise; the outputs are live.
        outputs.position(|output| unsafe {
            ((*output).varno, (*output).varattno) == ((*column).varno, (*column).varattno)
        })
    }

    /// The place of an output among those of its dimension.
    pub fn place_in_dimension(&self, output: usize) -> usize {
        let dimension = self.outputs[output].dimension;
        let before = self.outputs[..output].iter();
        before.filter(|other| other.dimension == dimension).count()
    }

    /// Whether an expression is over small sides alone.
    ///
    /// # Safety
    /// A live expression of this plan's.
    pub unsafe fn is_small(&self, expression: *mut pg_sys::Node) -> bool {
        // SAFETY: the caller's promise.
        let columns = unsafe { columns_of(expression) };
        // SAFETY: live columns.
        let is_left = |column: &*mut pg_sys::Var| unsafe { (**column).varno as u32 == self.table };
        !columns.is_empty() && !columns.iter().any(is_left)
    }

    /// Whether an expression has columns of small sides.
    ///
    /// # Safety
    /// A live expression of this plan's.
    pub unsafe fn has_small(&self, expression: *mut pg_sys::Node) -> bool {
        // SAFETY: the caller's promise.
        let columns = unsafe { columns_of(expression) };
        let mut columns = columns.into_iter();
        // SAFETY: live columns.
        columns.any(|column| unsafe { (*column).varno as u32 != self.table })
    }

    /// The columns of an expression over one small side, by their places among the outputs of its dimension.
    ///
    /// # Safety
    /// A live expression of this plan's, whose columns are outputs.
    pub unsafe fn places_in_dimension(&self, expression: *mut pg_sys::Node) -> Vec<usize> {
        // SAFETY: the caller's promise.
        let columns = unsafe { columns_of(expression) };
        let places = columns
            .into_iter()
            // SAFETY: live columns.
            .filter_map(|column| unsafe { self.place_of(column) });
        places.map(|place| self.place_in_dimension(place)).collect()
    }

    /// The dimension that all columns of an expression over small sides are of.
    ///
    /// # Errors
    /// If they are of several.
    ///
    /// # Safety
    /// A live expression of this plan's, whose columns are outputs.
    pub unsafe fn dimension_of(&self, expression: *mut pg_sys::Node) -> Result<usize, String> {
        // SAFETY: the caller's promise.
        let columns = unsafe { columns_of(expression) };
        let places = columns
            .into_iter()
            // SAFETY: live columns.
            .filter_map(|column| unsafe { self.place_of(column) });
        let mut dimensions = places.map(|place| self.outputs[place].dimension);
        let first = dimensions.next().unwrap_or_default();
        match dimensions.all(|other| other == first) {
            true => Ok(first),
            false => Err("GROUP BY an expression over several joined tables".into()),
        }
    }
}

/// The columns that an expression has.
///
/// # Safety
/// A live expression.
unsafe fn columns_of(expression: *mut pg_sys::Node) -> Vec<*mut pg_sys::Var> {
    let mut columns = Vec::new();
    // SAFETY: the caller's promise; the cast follows the tag.
    unsafe {
        crate::pg::tree::walk_expression(expression, &mut |node, _| {
            if (*node).type_ == pg_sys::NodeTag::T_Var {
                columns.push(node.cast::<pg_sys::Var>());
            }
            false
        });
    }
    columns
}

impl HashJoinPlan {
    /// Adds the columns of small sides that an expression has. `relations` has those of each dimension.
    ///
    /// # Safety
    /// A live expression of the planner's, and its live sets.
    ///
    /// # Errors
    /// If it has more than columns to take from the join.
    pub unsafe fn want(
        &mut self,
        expression: *mut pg_sys::Node,
        relations: &[*mut pg_sys::Bitmapset],
    ) -> Result<(), String> {
        let mut is_strange = false;
        // SAFETY: the caller's promise; casts follow tags.
        unsafe {
            crate::pg::tree::walk_expression(expression, &mut |node, _| {
                is_strange |= (*node).type_ == pg_sys::NodeTag::T_PlaceHolderVar;
                false
            });
            if is_strange {
                return Err("a value computed below the join".into());
            }
            for column in columns_of(expression) {
                let is_known = self.place_of(column).is_some();
                if (*column).varno as u32 == self.table || is_known {
                    continue;
                }
                let has_column = |relations: &*mut pg_sys::Bitmapset| {
                    pg_sys::bms_is_member((*column).varno, *relations)
                };
                let dimension = relations.iter().position(has_column);
                let dimension = dimension.ok_or("a column of none of the joined tables")?;
                self.outputs.push(SmallColumn { column, dimension });
            }
        }
        Ok(())
    }
}
