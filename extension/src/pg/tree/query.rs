//! A query and its clauses.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag, Oid};

use super::expression::Expr;
use super::list::{Integers, List, Oids};
use super::operands::{FuncExpr, TargetEntry};
use super::view::{Field, View, tag_of, views};

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
    } {
        set_command = commandType: pg_sys::CmdType::Type;
        set_is_tagged = canSetTag: bool;
        set_has_sublinks = hasSubLinks: bool;
        set_has_row_security = hasRowSecurity: bool;
        set_limit_option = limitOption: pg_sys::LimitOption::Type;
        set_location = stmt_location: i32;
    } {
        set_rtable = rtable: List<'p, RangeTblEntry<'p>>;
        set_jointree = jointree: Option<FromExpr<'p>>;
        set_targets = targetList: List<'p, TargetEntry<'p>>;
        set_sort_clause = sortClause: List<'p, SortGroupClause<'p>>;
        set_limit_count = limitCount: Option<Expr<'p>>;
        set_limit_offset = limitOffset: Option<Expr<'p>>;
        set_set_operations = setOperations: Option<SetOperationStmt<'p>>;
    }

    /// UNION and its like.
    SetOperationStmt of SetOperationStmt {} {} {
        set_operation = op: pg_sys::SetOperation::Type;
        set_is_all = all: bool;
    } {
        set_left = larg: Option<RangeTblRef<'p>>;
        set_right = rarg: Option<RangeTblRef<'p>>;
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
    } {
        tablesample: Option<Expr<'p>>;
        subquery: Option<Query<'p>>;
        functions: List<'p, RangeTblFunction<'p>>;
        securityQuals: List<'p, Expr<'p>>;
        eref: Option<Alias<'p>>;
        alias: Option<Alias<'p>>;
    } {
        set_kind = rtekind: pg_sys::RTEKind::Type;
        set_lateral = lateral: bool;
        set_in_from = inFromCl: bool;
        set_cte_levels_up = ctelevelsup: u32;
    } {
        set_functions = functions: List<'p, RangeTblFunction<'p>>;
        set_subquery = subquery: Option<Query<'p>>;
        set_names = eref: Option<Alias<'p>>;
        set_alias = alias: Option<Alias<'p>>;
    }

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
        set_index = rtindex: i32;
    } {
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
    }

    /// A window of a query.
    WindowClause of WindowClause {
        frameOptions: i32;
        winref: u32;
    } {
        partitionClause: List<'p, SortGroupClause<'p>>;
        orderClause: List<'p, SortGroupClause<'p>>;
        startOffset: Option<Expr<'p>>;
        endOffset: Option<Expr<'p>>;
    } {}

    /// FOR UPDATE and its like, for one entry.
    RowMarkClause of RowMarkClause {
        rti: u32;
    } {} {}
}

/// What a node of a join tree is.
#[derive(Clone, Copy, Debug)]
#[allow(
    dead_code,
    reason = "each kind carries the view of its node, whether it is read or not"
)]
pub enum JoinKind<'p> {
    /// A reference to an entry.
    Entry(RangeTblRef<'p>),
    /// A join.
    Join(JoinExpr<'p>),
    /// A list of FROM.
    From(FromExpr<'p>),
    /// Another node.
    Other(NodeTag),
}

impl<'p> JoinTree<'p> {
    /// What the node is.
    pub fn kind(self) -> JoinKind<'p> {
        let node = self.as_ptr();
        // SAFETY: the tag says which structure a node is.
        unsafe {
            match tag_of(node) {
                NodeTag::T_RangeTblRef => JoinKind::Entry(View::at(node.cast())),
                NodeTag::T_JoinExpr => JoinKind::Join(View::at(node.cast())),
                NodeTag::T_FromExpr => JoinKind::From(View::at(node.cast())),
                other => JoinKind::Other(other),
            }
        }
    }
}

impl<'p> RangeTblRef<'p> {
    /// The reference as a node of a join tree.
    pub fn as_join_tree(self) -> JoinTree<'p> {
        // SAFETY: the node lives for 'p, and every node begins with its tag.
        unsafe { JoinTree::at(self.as_ptr().cast()) }
    }
}

impl<'p> FromExpr<'p> {
    /// The clause as a node of a join tree.
    pub fn as_join_tree(self) -> JoinTree<'p> {
        // SAFETY: the node lives for 'p, and every node begins with its tag.
        unsafe { JoinTree::at(self.as_ptr().cast()) }
    }
}

impl<'p> Query<'p> {
    /// An entry of the range table, counted from 1.
    pub fn entry(self, index: i32) -> Option<RangeTblEntry<'p>> {
        self.rtable().get(usize::try_from(index - 1).ok()?)
    }

    /// The sets of GROUPING SETS, after the planner has expanded them: each has the references of its clauses.
    pub fn expanded_sets(self) -> Vec<Integers<'p>> {
        // SAFETY: a live list of lists of integers. The empty set is a null list, which is no node.
        unsafe {
            let sets = crate::pg::nodes::list::<pg_sys::List>((*self.as_ptr()).groupingSets);
            sets.map(|set| Field::of(set)).collect()
        }
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
        let none: *mut pg_sys::List = std::ptr::null_mut();
        // SAFETY: a live query, of which no view lends a reference; the condition lives as long.
        unsafe {
            let query = &mut *self.as_ptr();
            query.havingQual = Field::raw(having);
            (query.windowClause, query.distinctClause) = (none, none);
            (query.limitCount, query.limitOffset) = (none.cast(), none.cast());
            (query.hasWindowFuncs, query.hasDistinctOn) = (false, false);
            query.hasForUpdate = false;
        }
    }

    /// Takes away all that comes before the select list: common tables, groups and HAVING.
    pub fn become_outer(self) {
        let none: *mut pg_sys::List = std::ptr::null_mut();
        // SAFETY: a live query, of which no view lends a reference.
        unsafe {
            let query = &mut *self.as_ptr();
            (query.cteList, query.groupClause, query.havingQual) = (none, none, none.cast());
            (query.hasAggs, query.groupDistinct) = (false, false);
            query.hasRecursive = false;
            query.constraintDeps = none;
        }
    }

    /// Replaces references to grouping expressions by these, as versions before 18 have them.
    #[cfg(not(feature = "pg18"))]
    pub fn flatten_group_entry(self) {}

    /// Replaces references to grouping expressions by these, as versions before 18 have them. Nothing refers to the
    /// entry of grouping expressions any more, so it is emptied.
    #[cfg(feature = "pg18")]
    pub fn flatten_group_entry(self) {
        // SAFETY: a live query, of which no view lends a reference; the functions copy what they change.
        unsafe {
            let query = self.as_ptr();
            if (*query).hasGroupRTE {
                let none = std::ptr::null_mut();
                let targets = (*query).targetList.cast();
                (*query).targetList = pg_sys::flatten_group_exprs(none, query, targets).cast();
                let having = (*query).havingQual;
                (*query).havingQual = pg_sys::flatten_group_exprs(none, query, having);
                (*query).hasGroupRTE = false;
                for entry in self.rtable() {
                    let entry = entry.as_ptr();
                    if (*entry).rtekind == pg_sys::RTEKind::RTE_GROUP {
                        (*entry).groupexprs = std::ptr::null_mut();
                    }
                }
            }
        }
    }

    /// Adds to the levels of references that lead at least `least` levels out of the query: `IncrementVarSublevelsUp`.
    pub fn raise_levels(self, by: i32, least: i32) {
        // SAFETY: a live query.
        unsafe { pg_sys::IncrementVarSublevelsUp(self.as_ptr().cast(), by, least) }
    }
}

impl<'p> RangeTblEntry<'p> {
    /// The kind of a relation: `RELKIND_…`.
    pub fn relkind(self) -> u8 {
        // SAFETY: a view's structure is live.
        unsafe { (*self.as_ptr()).relkind as u8 }
    }

    /// Whether the entry is a relation: a table, a view or something like them.
    pub fn is_relation(self) -> bool {
        self.rtekind() == pg_sys::RTEKind::RTE_RELATION
    }

    /// The name of a column, counted from 1, which the entry has; of the whole row the entry's own name.
    pub fn attribute_name(self, attribute: i16) -> Option<&'p CStr> {
        if attribute <= 0 {
            return self.eref().and_then(Alias::aliasname);
        }
        // SAFETY: a live entry; it is an ERROR if it has no such column.
        unsafe { Field::of(pg_sys::get_rte_attribute_name(self.as_ptr(), attribute)) }
    }

    /// All columns with their names, as references to the entry with this index: `expandRTE`. Dropped columns are NULL.
    pub fn columns(self, index: i32) -> impl Iterator<Item = (Option<&'p CStr>, Expr<'p>)> {
        let (mut names, mut values) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a live entry, whose relation is locked since the query was parsed.
        let (names, values): (List<'p, Name<'p>>, List<'p, Expr<'p>>) = unsafe {
            crate::pg::ports::expandRTE(self.as_ptr(), index, &mut names, &mut values);
            (Field::of(names), Field::of(values))
        };
        names.iter().map(Name::sval).zip(values)
    }
}

impl<'p> SortGroupClause<'p> {
    /// Notes whether the ordering operator is descending, which older versions look up.
    pub fn set_descending(self, is_descending: bool) {
        // SAFETY: a live clause, of which no view lends a reference.
        unsafe { crate::pg::ports::set_reverse_sort(self.as_ptr(), is_descending) }
    }

    /// The expression that the clause refers to in a target list: `get_sortgroupclause_expr`. It is an ERROR if there
    /// is none.
    pub fn expr(self, targets: List<'p, TargetEntry<'p>>) -> Expr<'p> {
        // SAFETY: live structures; the function never returns null.
        unsafe {
            Expr::at(pg_sys::get_sortgroupclause_expr(
                self.as_ptr(),
                targets.as_ptr(),
            ))
        }
    }
}
