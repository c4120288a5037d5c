//! Finds queries that group by `lanes.time_bucket_gapfill`, and divides each into a sub-select that aggregates and
//! an outer query over it.

use pgrx::{PgSqlErrorCode, pg_sys};

use super::columns::Columns;
use super::functions::{self, Function, Functions};
use crate::asof_rewrite::lateral::sub_select_entry;
use crate::error;
use crate::pg::tree::{Expr, List, Query, SortGroupClause, make, walk};
use crate::pg::{catalog, permission};

/// Whether a query calls one of the functions.
pub fn has_call(functions: &Functions, query: Query<'_>) -> bool {
    walk::found(query, |node| functions.of(node)).is_some()
}

/// A copy of a query in which those that fill gaps are divided. A call in any other place is an error.
pub fn rewritten<'p>(functions: &Functions, query: Query<'p>) -> Query<'p> {
    // The copy shares nothing, neither with the caller nor within itself.
    let query = make::copy(query);
    rewrite(functions, query);
    if let Some(function) = walk::found(query, |node| functions.of(node)) {
        misplaced(function);
    }
    query
}

fn misplaced(function: Function) -> ! {
    let message = match function {
        Function::Bucket { .. } => {
            "lanes.time_bucket_gapfill must be an expression of GROUP BY by itself".into()
        }
        _ => format!(
            "{} must be in the select list of a query that groups by lanes.time_bucket_gapfill",
            function.name()
        ),
    };
    error::raise(
        PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
        message,
        functions::USE,
    )
}

/// Rewrites the queries in a query, then the query itself.
fn rewrite(functions: &Functions, query: Query<'_>) {
    for query in walk::inner_queries(query) {
        rewrite(functions, query);
    }
    if has_own_call(functions, query) {
        query.flatten_group_entry();
    }
    if let Some(columns) = Columns::of_keys(functions, query) {
        divide(query, columns);
    }
}

/// Whether a query itself calls one of the functions, not only a query in it.
fn has_own_call(functions: &Functions, query: Query<'_>) -> bool {
    walk::query(query, &mut |node, depth| {
        depth == 0 && functions.of(node).is_some()
    })
}

/// Refuses common tables that would be out of place once the query is divided: they move to the sub-select.
fn refuse_common_tables(query: Query<'_>) {
    if query.hasModifyingCTE() {
        error::refuse(
            "lanes.time_bucket_gapfill cannot be used in a query whose WITH changes rows",
            "Fill the gaps in a sub-select: WITH … SELECT * FROM (SELECT lanes.time_bucket_gapfill(…) …) AS filled.",
        );
    }
    let limits = [query.limitCount(), query.limitOffset()];
    let has_sub_select = limits.into_iter().flatten().any(Expr::has_subplan);
    if has_sub_select && !query.cteList().is_empty() {
        error::refuse(
            "lanes.time_bucket_gapfill cannot be used with both WITH and a sub-select in LIMIT or OFFSET",
            "Fill the gaps in a sub-select, and limit the rows of the query around it.",
        );
    }
}

/// Makes a query one over a sub-select, whose columns are to be found.
fn divide<'p>(query: Query<'p>, mut columns: Columns<'_, 'p>) {
    if !query.groupingSets().is_empty() {
        error::refuse(
            "lanes.time_bucket_gapfill cannot be used with GROUPING SETS, ROLLUP or CUBE",
            "Write a query for each set, and combine them by UNION ALL.",
        );
    }
    refuse_common_tables(query);
    let inner = make::copy(query);
    let mut outer_targets = List::EMPTY;
    for target in query.targetList() {
        let expr = columns.over(target.expr());
        let name = target.resname();
        let place = target.resno() as usize;
        let over = make::target(expr, place, name, target.resjunk());
        over.set_sort_group_ref(target.ressortgroupref());
        over.take_origin(target);
        outer_targets.push(over);
    }
    let spec = columns.bucket.spec_call(&columns.roles(), query);
    let targets = columns.targets(spec);
    inner.set_targets(targets);
    inner.set_sort_clause(order(inner, &columns));
    inner.become_aggregation(columns_in_having(&columns, query));
    inner.set_limit_offset(Some(make::bigint(0)));
    inner.raise_levels(1, 1);
    query.set_targets(outer_targets);
    query.become_outer();
    if query.limitOffset().is_none() {
        query.set_limit_offset(Some(make::bigint(0)));
    }
    let entry = sub_select_entry(inner, c"gapfill", Columns::names(targets));
    query.set_rtable(List::new([entry]));
    let from = make::reference(1).as_join_tree();
    query.set_jointree(Some(make::from(&[from], None)));
    permission::forget(query);
}

/// HAVING, in which the bucket is computed as in the list.
fn columns_in_having<'p>(
    columns: &Columns<'_, 'p>,
    query: Query<'p>,
) -> Option<crate::pg::tree::Expr<'p>> {
    let having = query.havingQual()?;
    Some(walk::replaced(having, &mut |node| columns.bucket_for(node)))
}

/// ORDER BY of the sub-select: the other keys, then the bucket, ascending.
fn order<'p>(inner: Query<'p>, columns: &Columns<'_, 'p>) -> List<'p, SortGroupClause<'p>> {
    let bucket = columns.bucket_reference();
    let is_bucket = |clause: &SortGroupClause<'p>| clause.tleSortGroupRef() == bucket;
    let clauses = || inner.groupClause().iter();
    let mut order = List::new(
        clauses()
            .filter(|clause| !is_bucket(clause))
            .map(make::copy),
    );
    if order
        .iter()
        .any(|clause| clause.sortop() == pg_sys::InvalidOid)
    {
        error::refuse(
            "lanes.time_bucket_gapfill cannot be used with a grouping key that has no order",
            "Cast the key to a type that can be sorted, such as text.",
        );
    }
    for clause in clauses().filter(is_bucket).map(make::copy) {
        let (less, ..) = catalog::sort_operators(columns.bucket_type());
        clause.set_order(less);
        clause.set_descending(false);
        clause.set_nulls_first(false);
        order.push(clause);
    }
    order
}
