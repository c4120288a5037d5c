//! An expression, and what PostgreSQL computes about it.

use pgrx::pg_sys::{self, NodeTag, Oid};

use super::list::List;
use super::operands::{
    Aggref, ArrayExpr, BoolExpr, CaseExpr, CoalesceExpr, Const, FuncExpr, OpExpr, Param,
    RelabelType, ScalarArrayOpExpr, SubPlan, Var,
};
use super::planner::PlannerInfo;
use super::tag::{self, Kind, Node};
use super::view::{View, views};
use super::walk;
use super::window::WindowFunc;
use crate::pg::functions::{nodes, planner};

/// For [`Expr::leaves`]: aggregates as a whole, and columns outside of them.
pub const AGGREGATES_WHOLE: u32 = pg_sys::PVC_INCLUDE_AGGREGATES
    | pg_sys::PVC_RECURSE_WINDOWFUNCS
    | pg_sys::PVC_INCLUDE_PLACEHOLDERS;

views! {
    /// An expression, or another node of a tree.
    Expr of Node {} {} {}
}

/// Types of nodes that are expressions.
pub trait Expression<'p>: Node<'p> {
    /// The node as an expression.
    #[inline]
    fn as_expr(self) -> Expr<'p> {
        self.as_node()
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
        nodes::exprType(self)
    }

    /// The expression's collation: `exprCollation`.
    pub fn collation(self) -> Oid {
        nodes::exprCollation(self)
    }

    /// Whether the expression contains a column of its own query level: `contain_var_clause`.
    pub fn has_vars(self) -> bool {
        nodes::contain_var_clause(self)
    }

    /// Whether the expression calls a volatile function: `contain_volatile_functions`.
    pub fn is_volatile(self) -> bool {
        nodes::contain_volatile_functions(self)
    }

    /// Whether the expression gives the same for the same row whenever it is evaluated: it has no parameter, and calls
    /// immutable functions alone.
    pub fn is_fixed(self) -> bool {
        let has_parameter =
            !crate::pg::columns::nodes_of(self.as_ptr(), NodeTag::T_Param).is_empty();
        !has_parameter && !nodes::contain_mutable_functions(self)
    }

    /// The expression's type modifier: `exprTypmod`.
    pub fn type_modifier(self) -> i32 {
        nodes::exprTypmod(self)
    }

    /// Looks up the functions of the operators in a new expression, as the planner's last step does: `fix_opfuncids`.
    pub fn fix_operators(self) {
        nodes::fix_opfuncids(self)
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
        self.tag() == other.tag() && nodes::equal(self, other)
    }

    /// Whether the view is of the node at an address, which need not be live.
    #[inline]
    pub fn is_at(self, address: *mut pg_sys::Node) -> bool {
        std::ptr::eq(self.as_ptr(), address)
    }

    /// A copy of the expression whose constant parts are evaluated: `eval_const_expressions`. `root` is given where
    /// there is a planner, which records the functions that were inlined.
    pub fn folded(self, root: Option<PlannerInfo<'p>>) -> Expr<'p> {
        nodes::eval_const_expressions(root, tag::copy(self))
    }

    /// The attributes of a relation that the expression uses: `pull_varattnos`. System columns have negative numbers,
    /// and a whole row is 0.
    pub fn attributes(self, relation: u32) -> Vec<i16> {
        let found = planner::pull_varattnos(self, relation);
        let first = pg_sys::FirstLowInvalidHeapAttributeNumber;
        found.iter().map(|member| (member + first) as i16).collect()
    }

    /// The columns in an expression or a list, with what else `how` makes a leaf: `pull_var_clause`. It is an
    /// ERROR if the expression contains a node of which `how` says nothing.
    pub fn leaves(self, how: u32) -> List<'p, Expr<'p>> {
        nodes::pull_var_clause(self, how as i32)
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
