//! The nested loop that PostgreSQL would run for a lateral join, and the memory that a node may
//! take to replace it.

use pgrx::pg_sys;

use crate::pg::tree::{
    JoinPath, JoinPathExtraData, Node, ParamPathInfo, Path, PlannerInfo, RelOptInfo,
};

/// The factor by which the estimated size of the right side may exceed `work_mem *
/// hash_mem_multiplier`. The right side is not spilled to disk, so a limit is needed. The limit
/// is higher than that of a hash join, because without an index the alternative is to scan the
/// table for each row.
pub const MEMORY_FACTOR: f64 = 16.0;

/// A join that the planner looks for paths to.
#[derive(Clone, Copy)]
pub struct Joining<'p> {
    /// The planner.
    pub root: PlannerInfo<'p>,
    /// The joined relation.
    pub joined: RelOptInfo<'p>,
    /// The left side.
    pub outer: RelOptInfo<'p>,
    /// The right side.
    pub inner: RelOptInfo<'p>,
    /// The kind of join: INNER, LEFT and so on.
    pub kind: pg_sys::JoinType::Type,
    /// The planner's further knowledge of the join.
    pub extra: JoinPathExtraData<'p>,
}

impl<'p> Joining<'p> {
    /// PostgreSQL's nested loop for a join whose inner side takes parameters from the outer side
    /// alone.
    pub fn nested_loop(&self) -> Option<JoinPath<'p>> {
        let outer = self.outer.cheapest_total_path()?;
        match outer.param_info() {
            Some(_) => None,
            None => self.nested_loop_over(outer),
        }
    }

    /// As [`Joining::nested_loop`], over a given path of the outer side that needs no parameters.
    pub fn nested_loop_over(&self, outer: Path<'p>) -> Option<JoinPath<'p>> {
        let outer_tables = outer.parent()?.relids();
        let mut inner = self.inner.pathlist().iter();
        let inner = inner.find(|path| {
            let parameters = path.param_info().map(ParamPathInfo::ppi_req_outer);
            path.tag() == pg_sys::NodeTag::T_SubqueryScanPath
                && parameters.is_some_and(|required| required.is_subset_of(outer_tables))
        })?;
        Some(
            self.root
                .nested_loop(self.joined, self.kind, self.extra, (outer, inner)),
        )
    }
}
