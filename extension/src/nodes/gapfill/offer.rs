//! Puts `LanesGapfill` above the sub-select of a query with filled gaps.

use pgrx::pg_sys;

use super::state::GapfillState;
use crate::custom_scan::callbacks;
use crate::custom_scan::private_data::{PrivateData, Targets};
use crate::gapfill_rewrite::spec::{self, Role};
use crate::pg::tree::{
    Expr, Expression, List, Node as _, PlannerInfo, Query, RangeTblEntry, RelOptInfo,
    SubqueryScanPath, TargetEntry, View, make, plan_field,
};
use crate::pg::{catalog, server};

/// How many rows are expected for each of the input.
const EXPECTED_FACTOR: f64 = 2.0;

/// Makes the node the only path to a relation that is such a sub-select.
pub fn offer<'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>, entry: RangeTblEntry<'p>) {
    let Some((query, call)) = entry
        .subquery()
        .and_then(|query| Some((query, spec::call_in(query)?)))
        .filter(|(query, call)| spec::fits(*query, *call))
    else {
        return;
    };
    let Some(letters) = spec::letters(call) else {
        return;
    };
    let (roles, _) = spec::decode(&letters);
    let paths = relation
        .pathlist()
        .iter()
        .filter_map(|path| path.downcast::<SubqueryScanPath<'p>>());
    let cheaper = |a: &SubqueryScanPath<'p>, b: &SubqueryScanPath<'p>| {
        a.as_path()
            .total_cost()
            .total_cmp(&b.as_path().total_cost())
    };
    let Some(below) = paths.min_by(cheaper) else {
        return;
    };
    let columns: Vec<Expr<'p>> = columns(relation, query);
    let below = below.returning(root.target_of(columns.iter().copied()));
    let mut targets = Targets::new();
    columns
        .iter()
        .for_each(|column| targets.push(column.as_ptr()));
    let arguments = call
        .args()
        .iter()
        .map(|argument| argument.folded(Some(root)));
    let data = PrivateData {
        index: relation.relid(),
        numbers: equalities(query, &roles),
        nodes: std::ptr::null_mut(),
        expressions: List::new(arguments).as_ptr(),
        targets: targets.entries,
    };
    let path = callbacks::new_path::<GapfillState>(relation, relation.reltarget());
    let general = path.as_path();
    let rows = below.rows() * EXPECTED_FACTOR;
    general.set_parallel_safe(false);
    general.set_rows(rows);
    general.set_keys(below.pathkeys());
    general.set_parameters(below.param_info());
    general.set_startup_cost(below.startup_cost());
    general.set_total_cost(below.total_cost() + rows * server::cpu_tuple_cost());
    path.set_children(List::new([below]));
    path.set_private(plan_field(data.to_path_list()));
    relation.keep_only(path);
}

/// The columns of the sub-select, as those of its relation, without the last one, which is never computed.
fn columns<'p>(relation: RelOptInfo<'p>, query: Query<'p>) -> Vec<Expr<'p>> {
    let targets = query.targetList();
    let targets = targets.iter().take(targets.len() - 1);
    targets
        .map(|target| make::var_of_target(relation.relid() as i32, target).as_expr())
        .collect()
}

/// For each column the function of equality if it is a key other than the bucket, or 0.
fn equalities(query: Query<'_>, roles: &[Role]) -> Vec<i32> {
    let equality = |(target, role): (TargetEntry<'_>, &Role)| {
        let mut clauses = query.groupClause().iter();
        let reference = target.ressortgroupref();
        let clause = clauses.find(|clause| reference > 0 && clause.tleSortGroupRef() == reference);
        let clause = clause.filter(|_| *role == Role::Key);
        let function = clause.map_or(pg_sys::InvalidOid, |clause| {
            catalog::operator_function(clause.eqop())
        });
        function.to_u32() as i32
    };
    query.targetList().iter().zip(roles).map(equality).collect()
}
