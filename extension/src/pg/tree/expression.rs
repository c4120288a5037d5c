//! An expression, its kind, and what PostgreSQL computes about it.

use pgrx::pg_sys::{self, NodeTag, Oid};

use super::list::List;
use super::operands::{
    Aggref, ArrayExpr, BoolExpr, BooleanTest, CaseExpr, CaseWhen, CoalesceExpr, Const, FuncExpr,
    GroupingFunc, NamedArgExpr, NullTest, OpExpr, Param, PlaceHolderVar, RelabelType,
    ScalarArrayOpExpr, SubPlan, Var, WindowFunc,
};
use super::planner::{PlannerInfo, RestrictInfo};
use super::query::{JoinExpr, Query, RangeTblEntry, RangeTblRef};
use super::tag::Node;
use super::view::{View, views};
use super::walk;

/// For [`Expr::leaves`]: aggregates as a whole, and columns outside of them.
pub const AGGREGATES_WHOLE: u32 = pg_sys::PVC_INCLUDE_AGGREGATES
    | pg_sys::PVC_RECURSE_WINDOWFUNCS
    | pg_sys::PVC_INCLUDE_PLACEHOLDERS;

views! {
    /// An expression, or another node of a tree.
    Expr of Node {} {} {}
}

/// What an expression is.
#[derive(Clone, Copy, Debug)]
#[allow(
    dead_code,
    reason = "each kind carries the view of its node, whether it is read or not"
)]
pub enum Kind<'p> {
    /// A column.
    Var(Var<'p>),
    /// A constant.
    Const(Const<'p>),
    /// A parameter.
    Param(Param<'p>),
    /// A call of an aggregate function.
    Aggref(Aggref<'p>),
    /// `GROUPING(…)`.
    GroupingFunc(GroupingFunc<'p>),
    /// A call of a window function.
    WindowFunc(WindowFunc<'p>),
    /// A call of a function.
    FuncExpr(FuncExpr<'p>),
    /// An argument that is passed by name.
    NamedArgExpr(NamedArgExpr<'p>),
    /// An operator.
    OpExpr(OpExpr<'p>),
    /// `IS DISTINCT FROM`.
    DistinctExpr(OpExpr<'p>),
    /// `NULLIF`.
    NullIfExpr(OpExpr<'p>),
    /// `ANY` or `ALL` of an array.
    ScalarArrayOpExpr(ScalarArrayOpExpr<'p>),
    /// `AND`, `OR`, `NOT`.
    BoolExpr(BoolExpr<'p>),
    /// A subquery with a plan.
    SubPlan(SubPlan<'p>),
    /// A change of type that changes no bytes.
    RelabelType(RelabelType<'p>),
    /// `CASE`.
    CaseExpr(CaseExpr<'p>),
    /// `WHEN … THEN …` of `CASE`.
    CaseWhen(CaseWhen<'p>),
    /// `COALESCE`.
    CoalesceExpr(CoalesceExpr<'p>),
    /// `ARRAY[…]`.
    ArrayExpr(ArrayExpr<'p>),
    /// `IS [NOT] NULL`.
    NullTest(NullTest<'p>),
    /// `IS [NOT] TRUE | FALSE | UNKNOWN`.
    BooleanTest(BooleanTest<'p>),
    /// An expression that an outer join may turn to NULL.
    PlaceHolderVar(PlaceHolderVar<'p>),
    /// A condition with what the planner knows about it.
    RestrictInfo(RestrictInfo<'p>),
    /// A query.
    Query(Query<'p>),
    /// An entry of a range table.
    RangeTblEntry(RangeTblEntry<'p>),
    /// A reference to an entry of the range table.
    RangeTblRef(RangeTblRef<'p>),
    /// A join.
    JoinExpr(JoinExpr<'p>),
    /// Another node.
    Other(NodeTag),
}

/// Types of nodes that are expressions.
pub trait Expression<'p>: View<'p> {
    /// The node as an expression.
    #[inline]
    fn as_expr(self) -> Expr<'p> {
        // SAFETY: the node lives for 'p, and every node begins with its tag.
        unsafe { Expr::at(self.as_ptr().cast()) }
    }
}

impl<'p> Expression<'p> for Var<'p> {}
impl<'p> Expression<'p> for Const<'p> {}
impl<'p> Expression<'p> for Param<'p> {}
impl<'p> Expression<'p> for Aggref<'p> {}
impl<'p> Expression<'p> for WindowFunc<'p> {}
impl<'p> Expression<'p> for FuncExpr<'p> {}
impl<'p> Expression<'p> for OpExpr<'p> {}
impl<'p> Expression<'p> for ScalarArrayOpExpr<'p> {}
impl<'p> Expression<'p> for BoolExpr<'p> {}
impl<'p> Expression<'p> for SubPlan<'p> {}
impl<'p> Expression<'p> for RelabelType<'p> {}
impl<'p> Expression<'p> for ArrayExpr<'p> {}
impl<'p> Expression<'p> for CaseExpr<'p> {}
impl<'p> Expression<'p> for CoalesceExpr<'p> {}

impl<'p> Expr<'p> {
    /// What the expression is.
    #[inline]
    pub fn kind(self) -> Kind<'p> {
        let node = self.as_ptr();
        // SAFETY: the tag says which structure a node is.
        unsafe {
            match self.tag() {
                NodeTag::T_Var => Kind::Var(View::at(node.cast())),
                NodeTag::T_Const => Kind::Const(View::at(node.cast())),
                NodeTag::T_Param => Kind::Param(View::at(node.cast())),
                NodeTag::T_Aggref => Kind::Aggref(View::at(node.cast())),
                NodeTag::T_GroupingFunc => Kind::GroupingFunc(View::at(node.cast())),
                NodeTag::T_WindowFunc => Kind::WindowFunc(View::at(node.cast())),
                NodeTag::T_FuncExpr => Kind::FuncExpr(View::at(node.cast())),
                NodeTag::T_NamedArgExpr => Kind::NamedArgExpr(View::at(node.cast())),
                NodeTag::T_OpExpr => Kind::OpExpr(View::at(node.cast())),
                NodeTag::T_DistinctExpr => Kind::DistinctExpr(View::at(node.cast())),
                NodeTag::T_NullIfExpr => Kind::NullIfExpr(View::at(node.cast())),
                NodeTag::T_ScalarArrayOpExpr => Kind::ScalarArrayOpExpr(View::at(node.cast())),
                NodeTag::T_BoolExpr => Kind::BoolExpr(View::at(node.cast())),
                NodeTag::T_SubPlan => Kind::SubPlan(View::at(node.cast())),
                NodeTag::T_RelabelType => Kind::RelabelType(View::at(node.cast())),
                NodeTag::T_CaseExpr => Kind::CaseExpr(View::at(node.cast())),
                NodeTag::T_CaseWhen => Kind::CaseWhen(View::at(node.cast())),
                NodeTag::T_CoalesceExpr => Kind::CoalesceExpr(View::at(node.cast())),
                NodeTag::T_ArrayExpr => Kind::ArrayExpr(View::at(node.cast())),
                NodeTag::T_NullTest => Kind::NullTest(View::at(node.cast())),
                NodeTag::T_BooleanTest => Kind::BooleanTest(View::at(node.cast())),
                NodeTag::T_PlaceHolderVar => Kind::PlaceHolderVar(View::at(node.cast())),
                NodeTag::T_RestrictInfo => Kind::RestrictInfo(View::at(node.cast())),
                NodeTag::T_Query => Kind::Query(View::at(node.cast())),
                NodeTag::T_RangeTblEntry => Kind::RangeTblEntry(View::at(node.cast())),
                NodeTag::T_RangeTblRef => Kind::RangeTblRef(View::at(node.cast())),
                NodeTag::T_JoinExpr => Kind::JoinExpr(View::at(node.cast())),
                other => Kind::Other(other),
            }
        }
    }

    /// The column that the expression is, if it is one.
    #[inline]
    pub fn as_var(self) -> Option<Var<'p>> {
        match self.kind() {
            Kind::Var(var) => Some(var),
            _ => None,
        }
    }

    /// The constant that the expression is, if it is one.
    #[inline]
    pub fn as_const(self) -> Option<Const<'p>> {
        match self.kind() {
            Kind::Const(constant) => Some(constant),
            _ => None,
        }
    }

    /// The operator's call that the expression is, if it is one.
    #[inline]
    pub fn as_op(self) -> Option<OpExpr<'p>> {
        match self.kind() {
            Kind::OpExpr(operation) => Some(operation),
            _ => None,
        }
    }

    /// The function's call that the expression is, if it is one.
    #[inline]
    pub fn as_func(self) -> Option<FuncExpr<'p>> {
        match self.kind() {
            Kind::FuncExpr(call) => Some(call),
            _ => None,
        }
    }

    /// The expression below any relabelling, which changes no bytes.
    #[inline]
    pub fn stripped(self) -> Expr<'p> {
        let mut expr = self;
        while let Kind::RelabelType(relabel) = expr.kind()
            && let Some(inner) = relabel.arg()
        {
            expr = inner;
        }
        expr
    }

    /// The expression's type: `exprType`.
    pub fn type_of(self) -> Oid {
        // SAFETY: a live expression.
        unsafe { pg_sys::exprType(self.as_ptr()) }
    }

    /// The expression's collation: `exprCollation`.
    pub fn collation(self) -> Oid {
        // SAFETY: a live expression.
        unsafe { pg_sys::exprCollation(self.as_ptr()) }
    }

    /// Whether the expression contains a column of its own query level: `contain_var_clause`.
    pub fn has_vars(self) -> bool {
        // SAFETY: a live expression.
        unsafe { pg_sys::contain_var_clause(self.as_ptr()) }
    }

    /// Whether the expression calls a volatile function: `contain_volatile_functions`.
    pub fn is_volatile(self) -> bool {
        // SAFETY: a live expression.
        unsafe { pg_sys::contain_volatile_functions(self.as_ptr()) }
    }

    /// Whether the expression gives the same for the same row whenever it is evaluated: it has no parameter, and calls
    /// immutable functions alone.
    pub fn is_fixed(self) -> bool {
        let has_parameter =
            !crate::pg::columns::nodes_of(self.as_ptr(), NodeTag::T_Param).is_empty();
        // SAFETY: a live expression.
        !has_parameter && unsafe { !pg_sys::contain_mutable_functions(self.as_ptr()) }
    }

    /// The expression's type modifier: `exprTypmod`.
    pub fn type_modifier(self) -> i32 {
        // SAFETY: a live expression.
        unsafe { pg_sys::exprTypmod(self.as_ptr()) }
    }

    /// Looks up the functions of the operators in a new expression, as the planner's last step does: `fix_opfuncids`.
    pub fn fix_operators(self) {
        // SAFETY: a live expression, of which no view lends a reference.
        unsafe { pg_sys::fix_opfuncids(self.as_ptr()) }
    }

    /// Whether the expression contains a subquery that was not made a parameter.
    pub fn has_subplan(self) -> bool {
        walk::expression(self, &mut |node, _| {
            matches!(
                node.tag(),
                NodeTag::T_SubPlan | NodeTag::T_AlternativeSubPlan | NodeTag::T_SubLink
            )
        })
    }

    /// Whether two trees are equal: `equal`.
    pub fn equals(self, other: Expr<'_>) -> bool {
        if self.tag() != other.tag() {
            return false;
        }
        // SAFETY: live nodes.
        unsafe { pg_sys::equal(self.as_ptr().cast(), other.as_ptr().cast()) }
    }

    /// Whether the view is of the node at an address, which need not be live.
    #[inline]
    pub fn is_at(self, address: *mut pg_sys::Node) -> bool {
        std::ptr::eq(self.as_ptr(), address)
    }

    /// A copy of the expression whose constant parts are evaluated: `eval_const_expressions`. `root` is given where
    /// there is a planner, which records the functions that were inlined.
    pub fn folded(self, root: Option<PlannerInfo<'p>>) -> Expr<'p> {
        let root = root.map_or(std::ptr::null_mut(), View::as_ptr);
        // SAFETY: live structures; the result is in the current memory context.
        unsafe {
            Expr::at(pg_sys::eval_const_expressions(
                root,
                super::raw::copy(self.as_ptr()),
            ))
        }
    }

    /// The attributes of a relation that the expression uses: `pull_varattnos`. System columns have negative numbers,
    /// and a whole row is 0.
    pub fn attributes(self, relation: u32) -> Vec<i16> {
        let mut found = std::ptr::null_mut();
        // SAFETY: a live expression; the set is in the current memory context.
        let found: super::planner::Relids<'p> = unsafe {
            pg_sys::pull_varattnos(self.as_ptr(), relation, &raw mut found);
            super::view::Field::of(found)
        };
        let first = pg_sys::FirstLowInvalidHeapAttributeNumber;
        found.iter().map(|member| (member + first) as i16).collect()
    }

    /// The columns in an expression or a list, with what else `how` makes a leaf: `pull_var_clause`.
    pub fn leaves(self, how: u32) -> List<'p, Expr<'p>> {
        // SAFETY: a live expression; the list is in the current memory context. It is an ERROR if the expression
        // contains a node of which `how` says nothing.
        unsafe { super::view::Field::of(pg_sys::pull_var_clause(self.as_ptr(), how as i32)) }
    }

    /// The parts of a condition that are joined by AND, at any depth.
    pub fn conjuncts(self) -> Vec<Expr<'p>> {
        match self.kind() {
            Kind::BoolExpr(and) if and.boolop() == pg_sys::BoolExprType::AND_EXPR => {
                and.args().iter().flat_map(Expr::conjuncts).collect()
            }
            _ => vec![self],
        }
    }
}

/// The operands of an expression that is a call of a function, by an operator or not, and the function.
pub fn call_of<'p>(expr: Expr<'p>) -> Option<(Oid, List<'p, Expr<'p>>)> {
    match expr.kind() {
        Kind::OpExpr(operation) => Some((operation.opfuncid(), operation.args())),
        Kind::FuncExpr(call) => Some((call.funcid(), call.args())),
        _ => None,
    }
}
