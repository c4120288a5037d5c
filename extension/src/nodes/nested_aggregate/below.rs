//! The aggregation below a nested one, under execution.

use super::state::NestedState;
use crate::custom_scan::callbacks::{node_of, running_of, state_of};
use crate::nodes::aggregate::state::AggregateState;
use crate::nodes::engine::results::Groups;
use crate::pg::exec::child::{Child, Instrument};
use crate::pg::exec::node::{CustomPlan, ExecNode};

/// The node whose groups are aggregated again, and the plan that PostgreSQL may have put between.
pub struct Below<'a> {
    /// The child of the node above: the aggregation, or a scan of the sub-select that is one.
    child: Child,
    aggregation: Child,
    plan: CustomPlan<'a>,
}

impl<'a> Below<'a> {
    /// The first child of a node, if it is an aggregation.
    pub fn of(node: ExecNode<'a>) -> Option<Below<'a>> {
        let child = *node.children().first()?;
        let aggregation = child.sub_select().unwrap_or(child);
        let below = node_of::<AggregateState>(aggregation);
        let below = below.or_else(|| node_of::<NestedState>(aggregation))?;
        Some(Below {
            child,
            aggregation,
            plan: below.plan(),
        })
    }

    /// The plan of the aggregation.
    pub fn plan(&self) -> CustomPlan<'a> {
        self.plan
    }

    /// Executes the aggregation, and returns its groups; `None` if PostgreSQL's own plan returns them. Nobody else
    /// executes these nodes, so what PostgreSQL does before it requests a row from a node is done here.
    pub fn groups(&self) -> Option<&'a mut Groups> {
        if let Some(state) = state_of::<AggregateState>(self.aggregation) {
            state.keeps_groups = true;
        }
        for state in [self.child, self.aggregation] {
            state.rescan_if_changed();
            state.instrument().start();
        }
        let nested = || running_of::<NestedState>(self.aggregation);
        let results = match running_of::<AggregateState>(self.aggregation) {
            Some((_, results)) => Some(results),
            None => nested().map(|(_, results)| results),
        };
        for instrument in self.instruments() {
            instrument.stop(0.0);
        }
        results.and_then(|results| results.groups())
    }

    /// Counts the groups that were aggregated as rows that were returned, for EXPLAIN.
    pub fn count(&self, aggregated: usize, removed: usize) {
        for instrument in self.instruments() {
            instrument.add_rows(aggregated as f64);
        }
        self.aggregation.instrument().add_filtered(removed as f64);
    }

    fn instruments(&self) -> impl Iterator<Item = Instrument> {
        let both = [self.child, self.aggregation];
        let count = 1 + usize::from(self.child != self.aggregation);
        both.into_iter().take(count).map(Child::instrument)
    }
}
