//! Arrays of the planner's structures, whose lengths other fields tell.

use pgrx::pg_sys;

use super::list::List;
use super::path::PathTarget;
use super::planner::{EquivalenceClass, EquivalenceMember, PlannerInfo, RelOptInfo, Relids};
use super::query::RangeTblEntry;
use super::view::{Field, View};

impl<'p> PlannerInfo<'p> {
    /// An entry of the range table, counted from 1.
    pub fn entry(self, index: u32) -> Option<RangeTblEntry<'p>> {
        // SAFETY: the array has as many elements as `simple_rel_array_size` says; elements may be null.
        unsafe {
            let root = self.as_ptr();
            let array = (*root).simple_rte_array;
            if array.is_null() || index >= (*root).simple_rel_array_size as u32 {
                return None;
            }
            Field::of(*array.add(index as usize))
        }
    }

    /// A relation of the range table, counted from 1; `None` for an entry that is none, and before it is planned.
    pub fn relation(self, index: u32) -> Option<RelOptInfo<'p>> {
        // SAFETY: the array has as many elements as its size says; elements may be null.
        unsafe {
            let root = self.as_ptr();
            let array = (*root).simple_rel_array;
            if array.is_null() || index >= (*root).simple_rel_array_size as u32 {
                return None;
            }
            Field::of(*array.add(index as usize))
        }
    }

    /// The indexes of the range table.
    pub fn indexes(self) -> impl Iterator<Item = u32> {
        // SAFETY: a live planner.
        let size = unsafe { (*self.as_ptr()).simple_rel_array_size };
        1..size as u32
    }

    /// The columns of the rows that a step above joins returns.
    pub fn upper_target(self, stage: pg_sys::UpperRelationKind::Type) -> Option<PathTarget<'p>> {
        // SAFETY: a live planner; elements may be null.
        unsafe { Field::of((*self.as_ptr()).upper_targets[stage as usize]) }
    }

    /// The relations of a step above joins.
    pub(super) fn upper_relations(
        self,
        stage: pg_sys::UpperRelationKind::Type,
    ) -> List<'p, RelOptInfo<'p>> {
        // SAFETY: a live planner; the lists hold relations.
        unsafe { Field::of((*self.as_ptr()).upper_rels[stage as usize]) }
    }
}

impl<'p> RelOptInfo<'p> {
    /// The relations that need an attribute above the relation's scan. System columns have negative numbers.
    pub fn attr_needed(self, attribute: i16) -> Relids<'p> {
        assert!((self.min_attr()..=self.max_attr()).contains(&attribute));
        let index = (attribute - self.min_attr()) as usize;
        // SAFETY: the array has an element for each attribute from `min_attr` to `max_attr`.
        unsafe { Field::of(*(*self.as_ptr()).attr_needed.add(index)) }
    }
}

impl<'p> PathTarget<'p> {
    /// The number by which clauses refer to a column, counted from 0; 0 if they do not.
    pub fn clause_number(self, column: usize) -> u32 {
        assert!(
            column < self.exprs().len(),
            "a target has no column {column}"
        );
        // SAFETY: a target has no array, or one with an element for each of its columns.
        unsafe {
            let numbers = (*self.as_ptr()).sortgrouprefs;
            match numbers.is_null() {
                true => 0,
                false => *numbers.add(column),
            }
        }
    }
}

impl<'p> EquivalenceClass<'p> {
    /// The members that are expressions of a child relation, which PostgreSQL keeps apart from version 18 on.
    #[cfg(feature = "pg18")]
    pub(super) fn members_of_child(
        self,
        relation: RelOptInfo<'p>,
    ) -> Option<List<'p, EquivalenceMember<'p>>> {
        // SAFETY: the array of lists, if there is one, has as many elements as its size says.
        unsafe {
            let class = &*self.as_ptr();
            let place = relation.relid();
            let has_list =
                !class.ec_childmembers.is_null() && place < class.ec_childmembers_size as u32;
            has_list.then(|| Field::of(*class.ec_childmembers.add(place as usize)))
        }
    }

    /// The members that are expressions of a child relation, which PostgreSQL keeps apart from version 18 on.
    #[cfg(not(feature = "pg18"))]
    pub(super) fn members_of_child(
        self,
        _relation: RelOptInfo<'p>,
    ) -> Option<List<'p, EquivalenceMember<'p>>> {
        None
    }
}
