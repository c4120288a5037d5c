//! The order in which a lanes table is joined with several small sides, if there are conditions
//! between small sides.
//!
//! The planner offers joins in any order. If one small side is joined by a key over another one,
//! the order decides how many small rows each left row meets before all keys are compared. The
//! smallest side is joined first, because its keys have the fewest duplicates. Each condition
//! then belongs to the later one of its two sides.

use pgrx::pg_sys;

use super::plan::JoinKind;
use super::sides::{Side, Sides};
use crate::pg::{nodes, outer_joins, ports, tree};

/// The relation that one operand of a condition refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Lanes,
    Dimension(usize),
}

/// A condition with the relations of its two operands.
type Condition = (*mut pg_sys::RestrictInfo, [End; 2]);

impl Sides {
    /// Reorders the sides if there are conditions between small sides and all joins are inner
    /// joins.
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn ordered(self, root: *mut pg_sys::PlannerInfo) -> Sides {
        let is_inner = |side: &Side| side.kind == JoinKind::Inner;
        if self.dimensions.len() < 2 || !self.dimensions.iter().all(is_inner) {
            return self;
        }
        // SAFETY: the caller's promise.
        let Some(conditions) = (unsafe { self.conditions(root) }) else {
            return self;
        };
        let is_between = |(_, ends): &Condition| !ends.contains(&End::Lanes);
        if !conditions.iter().any(is_between) {
            return self;
        }
        // SAFETY: the caller's promise.
        match unsafe { self.by_rows(&conditions) } {
            Some(dimensions) => Sides { dimensions, ..self },
            None => self,
        }
    }

    /// All conditions; `None` if one of them is not a comparison of two sides.
    unsafe fn conditions(&self, root: *mut pg_sys::PlannerInfo) -> Option<Vec<Condition>> {
        let mut conditions = Vec::new();
        for side in &self.dimensions {
            // SAFETY: the planner's live structures; casts follow tags.
            unsafe {
                for condition in nodes::list::<pg_sys::RestrictInfo>(side.conditions) {
                    let clause = (*condition).clause.cast::<pg_sys::OpExpr>();
                    let is_comparison = tree::is_a(clause, pg_sys::NodeTag::T_OpExpr)
                        && ports::list_length((*clause).args) == 2;
                    if !is_comparison {
                        return None;
                    }
                    let end = |place| {
                        let argument = ports::list_nth::<pg_sys::Node>((*clause).args, place);
                        self.end(outer_joins::tables_of(root, argument))
                    };
                    conditions.push((condition, [end(0)?, end(1)?]));
                }
            }
        }
        Some(conditions)
    }

    /// The side that these relations belong to; `None` if they belong to several.
    unsafe fn end(&self, relations: *mut pg_sys::Bitmapset) -> Option<End> {
        // SAFETY: the planner's live sets.
        unsafe {
            if relations.is_null() {
                return None;
            }
            if pg_sys::bms_is_subset(relations, (*self.lanes).relids) {
                return Some(End::Lanes);
            }
            let mut dimensions = self.dimensions.iter();
            let of =
                dimensions.position(|side| pg_sys::bms_is_subset(relations, (*side.small).relids));
            of.map(End::Dimension)
        }
    }

    /// The small sides with their conditions. Among the sides that have a condition on what is
    /// joined already, the one with the fewest rows is next. `None` if some side has no such
    /// condition.
    unsafe fn by_rows(&self, conditions: &[Condition]) -> Option<Vec<Side>> {
        let mut joined = vec![End::Lanes];
        let mut ordered = Vec::new();
        let is_of = |(_, [a, b]): &Condition, own: End, joined: &[End]| {
            *a == own && joined.contains(b) || *b == own && joined.contains(a)
        };
        while ordered.len() < self.dimensions.len() {
            let rest = (0..self.dimensions.len()).map(End::Dimension);
            let rest = rest.filter(|own| !joined.contains(own));
            let ready = rest.filter(|own| conditions.iter().any(|c| is_of(c, *own, &joined)));
            let rows = |own: &End| match own {
                // SAFETY: the planner's live relations.
                End::Dimension(index) => unsafe { (*self.dimensions[*index].small).rows },
                End::Lanes => 0.0,
            };
            let own = ready.min_by(|a, b| rows(a).total_cmp(&rows(b)))?;
            let End::Dimension(index) = own else {
                return None;
            };
            let of_side = conditions.iter().filter(|c| is_of(c, own, &joined));
            let of_side: Vec<_> = of_side.map(|(condition, _)| *condition).collect();
            ordered.push(Side {
                // SAFETY: live conditions.
                conditions: unsafe { tree::list(&of_side) },
                ..self.dimensions[index]
            });
            joined.push(own);
        }
        Some(ordered)
    }
}
