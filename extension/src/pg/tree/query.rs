//! A query and its clauses.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};

use super::expression::Expr;
use super::list::{Integers, List, Oids};
use super::operands::{FuncExpr, TargetEntry};
use super::tag::Node;
use super::view::views;
use super::window::WindowClause;
#[cfg(feature = "pg18")]
use crate::pg::functions::Null;
use crate::pg::functions::nodes;

views! {
    /// A query.
    Query of Query {
        commandType: pg_sys::CmdType::Type;
        hasAggs: bool;
        hasWindowFuncs: bool;
        hasTargetSRFs: bool;
        hasSubLinks: bool;
        hasDistinctOn: bool;
        hasModifyingCTE: bool;
        hasForUpdate: bool;
        hasRowSecurity: bool;
        #[cfg(feature = "pg18")]
        hasGroupRTE: bool;
        limitOption: pg_sys::LimitOption::Type;
    } {
        cteList: List<'p, Expr<'p>>;
        rtable: List<'p, RangeTblEntry<'p>>;
        jointree: Option<FromExpr<'p>>;
        targetList: List<'p, TargetEntry<'p>>;
        groupClause: List<'p, SortGroupClause<'p>>;
        groupingSets: List<'p, Expr<'p>>;
        havingQual: Option<Expr<'p>>;
        windowClause: List<'p, WindowClause<'p>>;
        distinctClause: List<'p, SortGroupClause<'p>>;
        sortClause: List<'p, SortGroupClause<'p>>;
        limitOffset: Option<Expr<'p>>;
        limitCount: Option<Expr<'p>>;
        rowMarks: List<'p, RowMarkClause<'p>>;
        setOperations: Option<Expr<'p>>;
        #[cfg(not(feature = "pg15"))]
        rteperminfos: List<'p, RTEPermissionInfo<'p>>;
    } {
        set_command = commandType: pg_sys::CmdType::Type;
        set_is_tagged = canSetTag: bool;
        set_has_sublinks = hasSubLinks: bool;
        set_has_aggregates = hasAggs: bool;
        set_has_window_functions = hasWindowFuncs: bool;
        set_has_distinct_on = hasDistinctOn: bool;
        set_has_for_update = hasForUpdate: bool;
        set_has_recursive = hasRecursive: bool;
        set_group_distinct = groupDistinct: bool;
        #[cfg(feature = "pg18")]
        set_has_group_entry = hasGroupRTE: bool;
        set_has_row_security = hasRowSecurity: bool;
        set_limit_option = limitOption: pg_sys::LimitOption::Type;
        set_location = stmt_location: i32;
    } {
        set_rtable = rtable: List<'p, RangeTblEntry<'p>>;
        set_jointree = jointree: Option<FromExpr<'p>>;
        set_targets = targetList: List<'p, TargetEntry<'p>>;
        set_common_tables = cteList: List<'p, Expr<'p>>;
        set_group_clause = groupClause: List<'p, SortGroupClause<'p>>;
        set_having = havingQual: Option<Expr<'p>>;
        set_windows = windowClause: List<'p, WindowClause<'p>>;
        set_distinct_clause = distinctClause: List<'p, SortGroupClause<'p>>;
        set_dependencies = constraintDeps: Oids<'p>;
        #[cfg(not(feature = "pg15"))]
        set_permissions = rteperminfos: List<'p, RTEPermissionInfo<'p>>;
        set_sort_clause = sortClause: List<'p, SortGroupClause<'p>>;
        set_limit_count = limitCount: Option<Expr<'p>>;
        set_limit_offset = limitOffset: Option<Expr<'p>>;
        set_set_operations = setOperations: Option<SetOperationStmt<'p>>;
        set_set_operation_tree = setOperations: Option<Expr<'p>>;
    }

    /// UNION and its like.
    SetOperationStmt of SetOperationStmt {
        operation = op: pg_sys::SetOperation::Type;
        is_all = all: bool;
    } {
        left = larg: Option<Expr<'p>>;
        right = rarg: Option<Expr<'p>>;
        clauses = groupClauses: List<'p, SortGroupClause<'p>>;
        types = colTypes: Oids<'p>;
        collations = colCollations: Oids<'p>;
    } {
        set_operation = op: pg_sys::SetOperation::Type;
        set_is_all = all: bool;
    } {
        set_left = larg: Option<RangeTblRef<'p>>;
        set_right = rarg: Option<RangeTblRef<'p>>;
        set_left_side = larg: Option<Expr<'p>>;
        set_right_side = rarg: Option<Expr<'p>>;
        set_clauses = groupClauses: List<'p, SortGroupClause<'p>>;
        set_types = colTypes: Oids<'p>;
        set_type_modifiers = colTypmods: Integers<'p>;
        set_collations = colCollations: Oids<'p>;
    }

    /// An entry of a range table.
    RangeTblEntry of RangeTblEntry {
        rtekind: pg_sys::RTEKind::Type;
        relid: Oid;
        funcordinality: bool;
        lateral: bool;
        inh: bool;
        inFromCl: bool;
        security_barrier: bool;
        ctelevelsup: u32;
        /// The kind of a relation: `RELKIND_…`.
        relkind_character = relkind: std::ffi::c_char;
        #[cfg(not(feature = "pg15"))]
        perminfoindex: u32;
    } {
        tablesample: Option<Expr<'p>>;
        subquery: Option<Query<'p>>;
        functions: List<'p, RangeTblFunction<'p>>;
        securityQuals: List<'p, Expr<'p>>;
        eref: Option<Alias<'p>>;
        alias: Option<Alias<'p>>;
        ctename: Option<&'p CStr>;
    } {
        set_kind = rtekind: pg_sys::RTEKind::Type;
        set_join_kind = jointype: pg_sys::JoinType::Type;
        set_lateral = lateral: bool;
        set_in_from = inFromCl: bool;
        set_cte_levels_up = ctelevelsup: u32;
        #[cfg(not(feature = "pg15"))]
        set_permission_index = perminfoindex: u32;
    } {
        set_functions = functions: List<'p, RangeTblFunction<'p>>;
        set_subquery = subquery: Option<Query<'p>>;
        set_names = eref: Option<Alias<'p>>;
        set_alias = alias: Option<Alias<'p>>;
        #[cfg(feature = "pg18")]
        set_group_expressions = groupexprs: List<'p, Expr<'p>>;
    }

    /// A query of WITH.
    CommonTableExpr of CommonTableExpr {} {
        ctename: Option<&'p CStr>;
        /// A query, unless the statement is one that changes rows.
        ctequery: Option<Expr<'p>>;
    } {}

    /// A function in FROM.
    RangeTblFunction of RangeTblFunction {} {
        funcexpr: Option<Expr<'p>>;
    } {} {
        set_call = funcexpr: Option<FuncExpr<'p>>;
    }

    /// A name with the names of its columns.
    Alias of Alias {} {
        aliasname: Option<&'p CStr>;
        colnames: List<'p, Name<'p>>;
    } {}

    /// A string in a list of names.
    Name of String {} {
        sval: Option<&'p CStr>;
    } {}

    /// FROM with WHERE.
    FromExpr of FromExpr {} {
        fromlist: List<'p, JoinTree<'p>>;
        quals: Option<Expr<'p>>;
    } {}

    /// A join.
    JoinExpr of JoinExpr {
        jointype: pg_sys::JoinType::Type;
        rtindex: i32;
    } {
        larg: Option<JoinTree<'p>>;
        rarg: Option<JoinTree<'p>>;
        quals: Option<Expr<'p>>;
    } {
        set_kind = jointype: pg_sys::JoinType::Type;
        set_index = rtindex: i32;
    } {
        set_left = larg: Option<JoinTree<'p>>;
        set_right = rarg: Option<RangeTblRef<'p>>;
        set_quals = quals: Option<Expr<'p>>;
    }

    /// A reference to an entry of the range table.
    RangeTblRef of RangeTblRef {
        rtindex: i32;
    } {} {
        set_index = rtindex: i32;
    }

    /// A node of a join tree.
    JoinTree of Node {} {} {}

    /// A key of ORDER BY, GROUP BY or DISTINCT.
    SortGroupClause of SortGroupClause {
        tleSortGroupRef: u32;
        eqop: Oid;
        sortop: Oid;
        nulls_first: bool;
        hashable: bool;
    } {} {
        set_reference = tleSortGroupRef: u32;
        set_equality = eqop: Oid;
        set_order = sortop: Oid;
        set_nulls_first = nulls_first: bool;
        set_hashable = hashable: bool;
        // Whether the ordering operator is descending, which older versions look up.
        #[cfg(feature = "pg18")]
        set_descending = reverse_sort: bool;
    }

    /// FOR UPDATE and its like, for one entry.
    RowMarkClause of RowMarkClause {
        rti: u32;
    } {} {}
}

#[cfg(not(feature = "pg15"))]
views! {
    /// By what the permissions of an entry are checked.
    RTEPermissionInfo of RTEPermissionInfo {} {} {}
}

impl<'p> Query<'p> {
    /// An entry of the range table, counted from 1.
    pub fn entry(self, index: i32) -> Option<RangeTblEntry<'p>> {
        self.rtable().get(usize::try_from(index - 1).ok()?)
    }

    /// The sets of GROUPING SETS, after the planner has expanded them: each has the references of its clauses.
    pub fn expanded_sets(self) -> Vec<Integers<'p>> {
        self.groupingSets().integer_lists()
    }

    /// The queries of WITH, with their names.
    pub fn common_tables(self) -> impl Iterator<Item = (&'p CStr, Query<'p>)> {
        self.cteList().iter().filter_map(|entry| {
            let common: CommonTableExpr<'p> = entry.downcast()?;
            Some((common.ctename()?, common.ctequery()?.downcast()?))
        })
    }

    /// The conditions of WHERE that are joined by AND.
    pub fn conjuncts(self) -> Vec<Expr<'p>> {
        let quals = self.jointree().and_then(FromExpr::quals);
        quals.map_or(Vec::new(), Expr::conjuncts)
    }

    /// The targets that the query returns, without those that only its clauses use.
    pub fn outputs(self) -> impl Iterator<Item = TargetEntry<'p>> {
        let targets = self.targetList().iter();
        targets.filter(|target| !target.resjunk())
    }

    /// Takes away all that comes after HAVING, which is replaced.
    pub fn become_aggregation(self, having: Option<Expr<'p>>) {
        self.set_having(having);
        self.set_windows(List::EMPTY);
        self.set_distinct_clause(List::EMPTY);
        self.set_limit_count(None);
        self.set_limit_offset(None);
        self.set_has_window_functions(false);
        self.set_has_distinct_on(false);
        self.set_has_for_update(false);
    }

    /// Takes away all that comes before the select list: common tables, groups and HAVING.
    pub fn become_outer(self) {
        self.set_common_tables(List::EMPTY);
        self.set_group_clause(List::EMPTY);
        self.set_having(None);
        self.set_has_aggregates(false);
        self.set_group_distinct(false);
        self.set_has_recursive(false);
        self.set_dependencies(Oids::NONE);
    }

    /// Replaces references to grouping expressions by these, as versions before 18 have them.
    #[cfg(not(feature = "pg18"))]
    pub fn flatten_group_entry(self) {}

    /// Replaces references to grouping expressions by these, as versions before 18 have them. Nothing refers to the
    /// entry of grouping expressions any more, so it is emptied.
    #[cfg(feature = "pg18")]
    pub fn flatten_group_entry(self) {
        if !self.hasGroupRTE() {
            return;
        }
        // The function copies what it changes.
        let flatten = |expr| nodes::flatten_group_exprs(Null, self, expr);
        let targets = self.targetList().as_node();
        let targets = targets.map(flatten).and_then(|flat| flat.as_list());
        self.set_targets(targets.unwrap_or(List::EMPTY));
        self.set_having(self.havingQual().map(flatten));
        self.set_has_group_entry(false);
        for entry in self.rtable() {
            if entry.rtekind() == pg_sys::RTEKind::RTE_GROUP {
                entry.set_group_expressions(List::EMPTY);
            }
        }
    }

    /// Adds to the levels of references that lead at least `least` levels out of the query: `IncrementVarSublevelsUp`.
    pub fn raise_levels(self, by: i32, least: i32) {
        nodes::IncrementVarSublevelsUp(self, by, least);
    }
}

impl<'p> RangeTblEntry<'p> {
    /// The kind of a relation: `RELKIND_…`.
    pub fn relkind(self) -> u8 {
        self.relkind_character() as u8
    }

    /// Whether the entry is a relation: a table, a view or something like them.
    pub fn is_relation(self) -> bool {
        self.rtekind() == pg_sys::RTEKind::RTE_RELATION
    }

    /// The name of the query of WITH that the entry is, and how many levels up its WITH is; `None` for other entries.
    pub fn common_table(self) -> Option<(&'p CStr, u32)> {
        let is_common = self.rtekind() == pg_sys::RTEKind::RTE_CTE;
        let name = self.ctename().filter(|_| is_common)?;
        Some((name, self.ctelevelsup()))
    }

    /// The name of a column, counted from 1, which the entry has; of the whole row the entry's own name.
    pub fn attribute_name(self, attribute: i16) -> Option<&'p CStr> {
        if attribute <= 0 {
            return self.eref().and_then(Alias::aliasname);
        }
        nodes::get_rte_attribute_name(self, attribute)
    }

    /// All columns with their names, as references to the entry with this index: `expandRTE`. Dropped columns are NULL.
    pub fn columns(self, index: i32) -> impl Iterator<Item = (Option<&'p CStr>, Expr<'p>)> {
        // The entry's relation is locked since the query was parsed.
        let (names, values) = nodes::expandRTE(self, index);
        names.iter().map(Name::sval).zip(values)
    }
}

impl<'p> SortGroupClause<'p> {
    /// Notes whether the ordering operator is descending, which versions before 18 look up.
    #[cfg(not(feature = "pg18"))]
    pub fn set_descending(self, _is_descending: bool) {}

    /// The expression that the clause refers to in a target list: `get_sortgroupclause_expr`. It is an ERROR if there
    /// is none.
    pub fn expr(self, targets: List<'p, TargetEntry<'p>>) -> Expr<'p> {
        nodes::get_sortgroupclause_expr(self, targets)
    }
}
