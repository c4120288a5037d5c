//! The planner's hook. Before planning, when no condition is moved and no outer join reduced yet, it rewrites ASOF
//! joins, queries with filled gaps, sub-selects that find rows by time, and operands of set operations. A query with
//! [aggregates that depend on its rows](super::correlated) is planned in two ways. Around planning it collects reasons,
//! which `lanes.vectorize = require` then [checks](super::require). After planning it makes window functions
//! [printable](crate::nodes::window::finished).

use super::{correlated, require, set_operands};
use crate::asof_rewrite::{marker, rewrite, scalar};
use crate::gapfill_rewrite;
use crate::nodes::window::finished;
use crate::pg::hooks::{self, PlannerHook, ToPlan};
use crate::pg::transaction;
use crate::pg::tree::{Plan, PlannedStmt, Query};
use crate::planner::reasons;

/// Installs the hook and the callback of aborts. Called from `_PG_init`.
pub fn register() {
    hooks::chain_planner::<Planning>();
    // Drops the reasons of plannings that failed with their transaction or subtransaction.
    hooks::on_abort(reasons::abandon);
}

/// The planner's hook of this extension.
struct Planning;

impl PlannerHook for Planning {
    fn before(query: Query<'_>, options: u32) -> ToPlan<'_> {
        let query = without_gaps(without_markers(query));
        let last = |query| set_operands::rewritten(scalar::rewritten(query, options));
        let alternative = correlated::joined(query, options).map(last);
        let query = last(query);
        reasons::begin(options, transaction::nest_level());
        ToPlan { query, alternative }
    }

    fn has_low_cost(planned: Option<PlannedStmt<'_>>) -> bool {
        cost(planned) < correlated::COST_MIN
    }

    fn is_cheaper(planned: Option<PlannedStmt<'_>>, than: Option<PlannedStmt<'_>>) -> bool {
        cost(planned) < cost(than)
    }

    fn after(planned: Option<PlannedStmt<'_>>) {
        if let Some(planned) = planned {
            finished::finish(planned);
            require::check(planned);
        }
        reasons::end();
    }
}

/// The expected cost of a statement.
fn cost(planned: Option<PlannedStmt<'_>>) -> f64 {
    let plan = planned.and_then(PlannedStmt::planTree);
    plan.map_or(0.0, Plan::total_cost)
}

fn without_gaps(query: Query<'_>) -> Query<'_> {
    match gapfill_rewrite::functions::functions() {
        Some(functions) if gapfill_rewrite::rewrite::has_call(&functions, query) => {
            gapfill_rewrite::rewrite::rewritten(&functions, query)
        }
        _ => query,
    }
}

fn without_markers(query: Query<'_>) -> Query<'_> {
    match marker::functions() {
        Some(functions) if rewrite::has_marker(&functions, query) => {
            rewrite::rewritten(&functions, query)
        }
        _ => query,
    }
}
