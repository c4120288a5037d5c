//! Expressions, lists and query trees.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};

use super::{Null, functions};
use crate::pg::definitions::Definition;
use crate::pg::tree::{
    Alias, Expr, FromExpr, FuncExpr, JoinTree, List, Name, PlannerInfo, Query, RangeTblEntry,
    RelabelType, SortGroupClause, TargetEntry, Var,
};

pub use super::special::{bigint_constant, expandRTE, text_constant};

functions! {
    /// Adds to the levels of references that lead at least so many levels out of a query.
    fn IncrementVarSublevelsUp(query: Query<'_>, by: i32, least: i32);

    /// An expression of the type that it has in common with others. It is an ERROR if it cannot be converted.
    fn coerce_to_common_type(parse: Null, expr: Expr<'p>, common: Oid, context: &CStr) -> Expr<'p>;

    /// An expression converted to a type; `None` if there is no such conversion.
    fn coerce_to_target_type(
        parse: Null,
        expr: Expr<'p>,
        from: Oid,
        to: Oid,
        modifier: i32,
        context: pg_sys::CoercionContext::Type,
        form: pg_sys::CoercionForm::Type,
        location: i32,
    ) -> Option<Expr<'p>>;

    /// Whether an expression contains a column of its own query level.
    fn contain_var_clause(expr: Expr<'_>) -> bool;

    /// Whether an expression calls a function that is not immutable.
    fn contain_mutable_functions(expr: Expr<'_>) -> bool;

    /// Whether an expression calls a volatile function.
    fn contain_volatile_functions(expr: Expr<'_>) -> bool;

    /// The value of a definition as a boolean, true if there is none; an ERROR if it is something else.
    fn defGetBoolean(definition: Definition<'_>) -> bool;

    /// The value of a definition as text; an ERROR if there is none.
    fn defGetString(definition: Definition<'_>) -> Option<String>;

    /// Whether two trees are equal.
    fn equal(a: Expr<'_>, b: Expr<'_>) -> bool;

    /// A copy of an expression whose constant parts are evaluated.
    fn eval_const_expressions(root: Option<PlannerInfo<'p>>, expr: Expr<'p>) -> Expr<'p>;

    /// The collation of an expression's value.
    fn exprCollation(expr: Expr<'_>) -> Oid;

    /// The type of an expression.
    fn exprType(expr: Expr<'_>) -> Oid;

    /// The type modifier of an expression.
    fn exprTypmod(expr: Expr<'_>) -> i32;

    /// Looks up the functions of the operators in a new expression.
    fn fix_opfuncids(expr: Expr<'_>);

    /// A name with the names of its columns.
    fn makeAlias(name: &CStr, columns: List<'p, Name<'p>>) -> Alias<'p>;

    /// A constant of type boolean.
    fn makeBoolConst(value: bool, is_null: bool) -> Expr<'p>;

    /// A definition: a name with a value.
    fn makeDefElem(name: Option<&'p CStr>, value: Option<Expr<'p>>, location: i32) -> Definition<'p>;

    /// FROM with WHERE.
    fn makeFromExpr(tables: List<'p, JoinTree<'p>>, quals: Option<Expr<'p>>) -> FromExpr<'p>;

    /// A call of a function.
    fn makeFuncExpr(
        function: Oid,
        result: Oid,
        arguments: List<'p, Expr<'p>>,
        collation: Oid,
        input_collation: Oid,
        form: pg_sys::CoercionForm::Type,
    ) -> FuncExpr<'p>;

    /// A constant that is NULL.
    fn makeNullConst(type_of: Oid, modifier: i32, collation: Oid) -> Expr<'p>;

    /// A change of type that changes no bytes.
    fn makeRelabelType(
        expr: Expr<'p>,
        type_of: Oid,
        modifier: i32,
        collation: Oid,
        form: pg_sys::CoercionForm::Type,
    ) -> RelabelType<'p>;

    /// An entry of a target list, counted from 1.
    fn makeTargetEntry(
        expr: Expr<'p>,
        number: i16,
        name: Option<&'p CStr>,
        is_junk: bool,
    ) -> TargetEntry<'p>;

    /// A reference to a column.
    fn makeVar(
        table: i32,
        attribute: i16,
        type_of: Oid,
        modifier: i32,
        collation: Oid,
        levels_up: u32,
    ) -> Var<'p>;

    /// A reference to a target of an entry's sub-select.
    fn makeVarFromTargetEntry(table: i32, target: TargetEntry<'p>) -> Var<'p>;

    /// A string as a node, which keeps it.
    fn makeString(text: Option<&'p CStr>) -> Name<'p>;

    /// Conditions joined by AND.
    fn make_andclause(conditions: List<'p, Expr<'p>>) -> Expr<'p>;

    /// A condition negated.
    fn make_notclause(condition: Expr<'p>) -> Expr<'p>;

    /// An operator's call. It is an ERROR if there is no such operator.
    fn make_op(
        parse: Null,
        name: List<'p, Name<'p>>,
        left: Expr<'p>,
        right: Expr<'p>,
        functions: Null,
        location: i32,
    ) -> Expr<'p>;

    /// An operator's call, by the operator.
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    fn make_opclause(
        operator: Oid,
        result: Oid,
        returns_set: bool,
        left: Expr<'p>,
        right: Expr<'p>,
        collation: Oid,
        input_collation: Oid,
    ) -> Expr<'p>;

    /// An expression whose references to grouping expressions are replaced by these.
    #[cfg(feature = "pg18")]
    fn flatten_group_exprs(root: Null, query: Query<'p>, expr: Expr<'p>) -> Expr<'p>;

    /// The name of an entry's column. It is an ERROR if there is no such column.
    fn get_rte_attribute_name(entry: RangeTblEntry<'p>, attribute: i16) -> Option<&'p CStr>;

    /// The expression that a clause refers to. It is an ERROR if there is none.
    fn get_sortgroupclause_expr(
        clause: SortGroupClause<'p>,
        targets: List<'p, TargetEntry<'p>>,
    ) -> Expr<'p>;

    /// The clause with a reference number, if there is one.
    fn get_sortgroupref_clause_noerr(
        number: u32,
        clauses: List<'p, SortGroupClause<'p>>,
    ) -> Option<SortGroupClause<'p>>;

    /// A copy of a string.
    fn pstrdup(text: &CStr) -> Option<&'p CStr>;

    /// The columns in an expression or a list, with what else the flags make a leaf.
    fn pull_var_clause(expr: Expr<'p>, flags: i32) -> List<'p, Expr<'p>>;

    /// The type that expressions have in common. It is an ERROR if there is none.
    fn select_common_type(
        parse: Null,
        exprs: List<'p, Expr<'p>>,
        context: &CStr,
        which: Null,
    ) -> Oid;
}
