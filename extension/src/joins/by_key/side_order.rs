//! The order in which a lanes table is joined with several small sides, if there are conditions
//! between small sides.
//!
//! The planner offers joins in any order. If one small side is joined by a key over another one,
//! the order decides how many small rows each left row meets before all keys are compared. The
//! smallest side is joined first, because its keys have the fewest duplicates. Each condition
//! then belongs to the later one of its two sides.

use super::plan::JoinKind;
use super::sides::{Side, Sides};
use crate::pg::outer_joins;
use crate::pg::tree::{List, PlannerInfo, Relids, RestrictInfo};

/// The relation that one operand of a condition refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Lanes,
    Dimension(usize),
}

/// A condition with the relations of its two operands.
type Condition<'p> = (RestrictInfo<'p>, [End; 2]);

impl<'p> Sides<'p> {
    /// Reorders the sides if there are conditions between small sides and all joins are inner
    /// joins.
    pub fn ordered(self, root: PlannerInfo<'p>) -> Sides<'p> {
        let is_inner = |side: &Side<'_>| side.kind == JoinKind::Inner;
        if self.dimensions.len() < 2 || !self.dimensions.iter().all(is_inner) {
            return self;
        }
        let Some(conditions) = self.conditions(root) else {
            return self;
        };
        let is_between = |(_, ends): &Condition<'_>| !ends.contains(&End::Lanes);
        if !conditions.iter().any(is_between) {
            return self;
        }
        match self.by_rows(&conditions) {
            Some(dimensions) => Sides { dimensions, ..self },
            None => self,
        }
    }

    /// All conditions; `None` if one of them is not a comparison of two sides.
    fn conditions(&self, root: PlannerInfo<'p>) -> Option<Vec<Condition<'p>>> {
        let all = self.dimensions.iter().flat_map(|side| side.conditions);
        let with_ends = all.map(|condition| {
            let [a, b] = condition.comparison()?.1;
            let end = |operand| self.end(outer_joins::tables_of(root, operand));
            Some((condition, [end(a)?, end(b)?]))
        });
        with_ends.collect()
    }

    /// The side that these relations belong to; `None` if they belong to several.
    fn end(&self, relations: Relids<'_>) -> Option<End> {
        if relations.is_empty() {
            return None;
        }
        if relations.is_subset_of(self.lanes.relids()) {
            return Some(End::Lanes);
        }
        let mut dimensions = self.dimensions.iter();
        let of = dimensions.position(|side| relations.is_subset_of(side.small.relids()));
        of.map(End::Dimension)
    }

    /// The small sides with their conditions. Among the sides that have a condition on what is
    /// joined already, the one with the fewest rows is next. `None` if some side has no such
    /// condition.
    fn by_rows(&self, conditions: &[Condition<'p>]) -> Option<Vec<Side<'p>>> {
        let mut joined = vec![End::Lanes];
        let mut ordered = Vec::new();
        let is_of = |(_, [a, b]): &Condition<'_>, own: End, joined: &[End]| {
            *a == own && joined.contains(b) || *b == own && joined.contains(a)
        };
        while ordered.len() < self.dimensions.len() {
            let rest = (0..self.dimensions.len()).map(End::Dimension);
            let rest = rest.filter(|own| !joined.contains(own));
            let ready = rest.filter(|own| conditions.iter().any(|c| is_of(c, *own, &joined)));
            let rows = |own: &End| match own {
                End::Dimension(index) => self.dimensions[*index].small.rows(),
                End::Lanes => 0.0,
            };
            let own = ready.min_by(|a, b| rows(a).total_cmp(&rows(b)))?;
            let End::Dimension(index) = own else {
                return None;
            };
            let of_side = conditions.iter().filter(|c| is_of(c, own, &joined));
            ordered.push(Side {
                conditions: List::new(of_side.map(|(condition, _)| *condition)),
                ..self.dimensions[index]
            });
            joined.push(own);
        }
        Some(ordered)
    }
}
