//! A query and its clauses.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag, Oid};

use super::expression::Expr;
use super::list::List;
use super::operands::{FuncExpr, TargetEntry};
use super::view::{View, tag_of, views};

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
    } {}

    /// An entry of a range table.
    RangeTblEntry of RangeTblEntry {
        rtekind: pg_sys::RTEKind::Type;
        relid: Oid;
        funcordinality: bool;
        lateral: bool;
        inh: bool;
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
        set_lateral = lateral: bool;
        set_cte_levels_up = ctelevelsup: u32;
    }

    /// A function in FROM.
    RangeTblFunction of RangeTblFunction {} {
        funcexpr: Option<Expr<'p>>;
    } {}

    /// A name with the names of its columns.
    Alias of Alias {} {
        aliasname: Option<&'p CStr>;
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
    } {} {}

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

impl<'p> Query<'p> {
    /// An entry of the range table, counted from 1.
    pub fn entry(self, index: i32) -> Option<RangeTblEntry<'p>> {
        self.rtable().get(usize::try_from(index - 1).ok()?)
    }

    /// The conditions of WHERE that are joined by AND.
    pub fn conjuncts(self) -> Vec<Expr<'p>> {
        let quals = self.jointree().and_then(FromExpr::quals);
        quals.map_or(Vec::new(), Expr::conjuncts)
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
}

impl<'p> RangeTblEntry<'p> {
    /// Sets the functions of an entry.
    pub fn set_functions(self, functions: List<'p, RangeTblFunction<'p>>) {
        // SAFETY: a view's structure is live, and so are the functions.
        unsafe { (*self.as_ptr()).functions = functions.as_ptr() }
    }
}

impl<'p> RangeTblFunction<'p> {
    /// Sets the call.
    pub fn set_call(self, call: FuncExpr<'p>) {
        // SAFETY: a view's structure is live, and so is the call.
        unsafe { (*self.as_ptr()).funcexpr = call.as_ptr().cast() }
    }
}

impl<'p> SortGroupClause<'p> {
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
