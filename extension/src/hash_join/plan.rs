//! What a plan remembers of a hash join.

use pgrx::pg_sys;

/// Which rows of the lanes table a join gives.
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
}

impl JoinKind {
    const ALL: [(JoinKind, pg_sys::JoinType::Type, &'static str); 4] = [
        (JoinKind::Inner, pg_sys::JoinType::JOIN_INNER, "inner"),
        (JoinKind::Semi, pg_sys::JoinType::JOIN_SEMI, "semi"),
        (JoinKind::Left, pg_sys::JoinType::JOIN_LEFT, "left"),
        (JoinKind::Anti, pg_sys::JoinType::JOIN_ANTI, "anti"),
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
        matches!(self, JoinKind::Inner | JoinKind::Semi)
    }

    /// Whether it is enough to know that there is a match.
    pub fn wants_keys_alone(self) -> bool {
        matches!(self, JoinKind::Semi | JoinKind::Anti)
    }
}

/// What a plan remembers of a hash join itself. The expressions stand in `custom_scan_tlist`, where PostgreSQL adjusts
/// their range-table indexes. So the executor still knows each output by its range-table index and column number.
#[derive(Clone, Debug)]
pub struct HashJoinPlan {
    /// The range-table index of the lanes table.
    pub table: u32,
    /// Which rows of the lanes table the join returns.
    pub kind: JoinKind,
    /// The keys' sides over the lanes table.
    pub left_keys: Vec<*mut pg_sys::Node>,
    /// The columns of the small side that are wanted. The small side's plan returns the keys, then these.
    pub outputs: Vec<*mut pg_sys::Var>,
}

impl HashJoinPlan {
    /// The place of a column among the outputs.
    ///
    /// # Safety
    /// A live column.
    pub unsafe fn place_of(&self, column: *mut pg_sys::Var) -> Option<usize> {
        let mut outputs = self.outputs.iter();
        // SAFETY: the caller's promise; the outputs are live.
        outputs.position(|output| unsafe {
            ((**output).varno, (**output).varattno) == ((*column).varno, (*column).varattno)
        })
    }

    /// Whether an expression is over the small side alone.
    ///
    /// # Safety
    /// A live expression of this plan's.
    pub unsafe fn is_small(&self, expression: *mut pg_sys::Node) -> bool {
        let (mut has_small, mut has_left) = (false, false);
        // SAFETY: the caller's promise; the cast follows the tag.
        unsafe {
            crate::pg::tree::walk_expression(expression, &mut |node, _| {
                if (*node).type_ == pg_sys::NodeTag::T_Var {
                    let of_table = (*node.cast::<pg_sys::Var>()).varno as u32 == self.table;
                    (has_left, has_small) = (has_left || of_table, has_small || !of_table);
                }
                false
            });
        }
        has_small && !has_left
    }

    /// Adds the columns of the small side that an expression has.
    ///
    /// # Safety
    /// A live expression of the planner's.
    ///
    /// # Errors
    /// If it has more than columns to take from the join.
    pub unsafe fn want(&mut self, expression: *mut pg_sys::Node) -> Result<(), String> {
        let mut columns = Vec::new();
        let mut is_strange = false;
        // SAFETY: the caller's promise; casts follow tags.
        unsafe {
            crate::pg::tree::walk_expression(expression, &mut |node, _| {
                match (*node).type_ {
                    pg_sys::NodeTag::T_Var => columns.push(node.cast::<pg_sys::Var>()),
                    pg_sys::NodeTag::T_PlaceHolderVar => is_strange = true,
                    _ => {}
                }
                false
            });
            if is_strange {
                return Err("a value computed below the join".into());
            }
            for column in columns {
                if (*column).varno as u32 != self.table && self.place_of(column).is_none() {
                    self.outputs.push(column);
                }
            }
        }
        Ok(())
    }
}
