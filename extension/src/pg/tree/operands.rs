//! The kinds of expressions, and the target entries that name them.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Datum, Oid};

use super::expression::Expr;
use super::list::{Integers, List, Oids};
use super::query::SortGroupClause;
use super::view::views;
use crate::pg::typed_datum::TypedDatum;

views! {
    /// A reference to a column.
    Var of Var {
        varattno: i16;
        vartype: Oid;
        vartypmod: i32;
        varcollid: Oid;
        varlevelsup: u32;
        location: i32;
    } {} {
        set_attribute = varattno: i16;
        set_type_modifier = vartypmod: i32;
        set_levels_up = varlevelsup: u32;
        set_attribute_as_written = varattnosyn: i16;
    }

    /// A constant.
    Const of Const {
        consttype: Oid;
        consttypmod: i32;
        constcollid: Oid;
        constvalue: Datum;
        constisnull: bool;
        constbyval: bool;
    } {} {}

    /// A parameter.
    Param of Param {
        paramkind: pg_sys::ParamKind::Type;
        paramid: i32;
        paramtype: Oid;
    } {} {}

    /// A call of an aggregate function.
    Aggref of Aggref {
        aggfnoid: Oid;
        aggtype: Oid;
        aggcollid: Oid;
        inputcollid: Oid;
        aggvariadic: bool;
        aggstar: bool;
        agglevelsup: u32;
        aggsplit: pg_sys::AggSplit::Type;
        aggtranstype: Oid;
        aggtransno: i32;
        location: i32;
    } {
        aggargtypes: Oids<'p>;
        aggdirectargs: List<'p, Expr<'p>>;
        args: List<'p, TargetEntry<'p>>;
        aggorder: List<'p, SortGroupClause<'p>>;
        aggdistinct: List<'p, SortGroupClause<'p>>;
        aggfilter: Option<Expr<'p>>;
    } {
        set_levels_up = agglevelsup: u32;
    }

    /// `GROUPING(…)`.
    GroupingFunc of GroupingFunc {
        agglevelsup: u32;
    } {
        refs: Integers<'p>;
    } {
        set_levels_up = agglevelsup: u32;
    }

    /// A call of a window function.
    WindowFunc of WindowFunc {
        winfnoid: Oid;
        wintype: Oid;
        inputcollid: Oid;
        winref: u32;
        winstar: bool;
        winagg: bool;
    } {
        args: List<'p, Expr<'p>>;
        aggfilter: Option<Expr<'p>>;
    } {}

    /// A call of a function.
    FuncExpr of FuncExpr {
        funcid: Oid;
        funcresulttype: Oid;
        inputcollid: Oid;
    } {
        args: List<'p, Expr<'p>>;
    } {}

    /// An argument that is passed by name.
    NamedArgExpr of NamedArgExpr {
        argnumber: i32;
    } {
        arg: Option<Expr<'p>>;
    } {}

    /// An operator with its operands, or `IS DISTINCT FROM`, which has the same structure.
    OpExpr of OpExpr {
        opno: Oid;
        opfuncid: Oid;
        opresulttype: Oid;
        inputcollid: Oid;
    } {
        args: List<'p, Expr<'p>>;
    } {}

    /// `scalar operator ANY | ALL (array)`.
    ScalarArrayOpExpr of ScalarArrayOpExpr {
        opno: Oid;
        opfuncid: Oid;
        useOr: bool;
        inputcollid: Oid;
    } {
        args: List<'p, Expr<'p>>;
    } {}

    /// `AND`, `OR`, `NOT`.
    BoolExpr of BoolExpr {
        boolop: pg_sys::BoolExprType::Type;
    } {
        args: List<'p, Expr<'p>>;
    } {}

    /// A subquery with a plan of its own.
    SubPlan of SubPlan {
        subLinkType: pg_sys::SubLinkType::Type;
        plan_id: i32;
        useHashTable: bool;
    } {
        testexpr: Option<Expr<'p>>;
        paramIds: Integers<'p>;
        setParam: Integers<'p>;
        parParam: Integers<'p>;
        args: List<'p, Expr<'p>>;
    } {}

    /// A change of type that changes no bytes.
    RelabelType of RelabelType {
        resulttype: Oid;
        resultcollid: Oid;
    } {
        arg: Option<Expr<'p>>;
    } {}

    /// `CASE`.
    CaseExpr of CaseExpr {
        casetype: Oid;
    } {
        arg: Option<Expr<'p>>;
        args: List<'p, Expr<'p>>;
        defresult: Option<Expr<'p>>;
    } {}

    /// `WHEN … THEN …` of a [`CaseExpr`].
    CaseWhen of CaseWhen {} {
        expr: Option<Expr<'p>>;
        result: Option<Expr<'p>>;
    } {}

    /// `COALESCE`.
    CoalesceExpr of CoalesceExpr {
        coalescetype: Oid;
    } {
        args: List<'p, Expr<'p>>;
    } {}

    /// `ARRAY[…]`.
    ArrayExpr of ArrayExpr {
        element_typeid: Oid;
        multidims: bool;
    } {
        elements: List<'p, Expr<'p>>;
    } {}

    /// `IS [NOT] NULL`.
    NullTest of NullTest {
        nulltesttype: pg_sys::NullTestType::Type;
        argisrow: bool;
    } {
        arg: Option<Expr<'p>>;
    } {}

    /// `IS [NOT] TRUE | FALSE | UNKNOWN`.
    BooleanTest of BooleanTest {
        booltesttype: pg_sys::BoolTestType::Type;
    } {
        arg: Option<Expr<'p>>;
    } {}

    /// An expression that an outer join may turn to NULL.
    PlaceHolderVar of PlaceHolderVar {
        phlevelsup: u32;
    } {
        phexpr: Option<Expr<'p>>;
    } {}

    /// An entry of a target list.
    TargetEntry of TargetEntry {
        resno: i16;
        ressortgroupref: u32;
        resjunk: bool;
    } {
        resname: Option<&'p CStr>;
    } {
        set_sort_group_ref = ressortgroupref: u32;
    }
}

impl<'p> TargetEntry<'p> {
    /// Takes over which table's column another target is.
    pub fn take_origin(self, other: TargetEntry<'_>) {
        use super::view::View;
        // SAFETY: two live targets, of which no view lends a reference.
        unsafe {
            let (to, from) = (self.as_ptr(), other.as_ptr());
            (*to).resorigtbl = (*from).resorigtbl;
            (*to).resorigcol = (*from).resorigcol;
        }
    }
}

impl<'p> Var<'p> {
    /// The range-table index of the column's table, or one of the special indexes of plans, such as `INDEX_VAR`.
    #[inline]
    pub fn varno(self) -> i32 {
        use super::view::View;
        // SAFETY: a view's structure is live.
        unsafe { (*self.as_ptr()).varno }
    }

    /// Sets the table's index.
    pub fn set_table(self, table: i32) {
        use super::view::View;
        // SAFETY: a view's structure is live, and no view lends a reference to a field.
        unsafe { (*self.as_ptr()).varno = table as _ }
    }

    /// Makes the column one of another table, now and as it was written.
    pub fn refer_to(self, table: i32, attribute: i16) {
        use super::view::View;
        // SAFETY: a view's structure is live, and no view lends a reference to a field.
        unsafe {
            let var = &mut *self.as_ptr();
            var.varno = table as _;
            var.varattno = attribute;
            var.varnosyn = table as _;
            var.varattnosyn = attribute;
        }
    }
}

impl Const<'_> {
    /// The value; `None` is NULL.
    #[inline]
    pub fn value(self) -> Option<TypedDatum> {
        // SAFETY: a constant's datum is of the constant's type, and lives as long as the constant.
        (!self.constisnull())
            .then(|| unsafe { TypedDatum::new(self.constvalue(), self.consttype()) })
    }
}

impl<'p> Aggref<'p> {
    /// A copy without the numbers that planning assigns.
    pub fn unnumbered(self) -> Aggref<'p> {
        use super::view::View;
        let copy = super::make::copy(self);
        // SAFETY: a live node, which nobody else knows.
        unsafe {
            let call = &mut *copy.as_ptr();
            (call.aggno, call.aggtransno) = (-1, -1);
            call.aggsplit = pg_sys::AggSplit::AGGSPLIT_SIMPLE;
        }
        copy
    }

    /// Whether the call returns a state that PostgreSQL combines with other states of the group.
    pub fn is_partial(self) -> bool {
        self.aggsplit() == pg_sys::AggSplit::AGGSPLIT_INITIAL_SERIAL
    }

    /// Whether the call is of an ordinary aggregate: neither an ordered-set nor a hypothetical-set one.
    pub fn is_normal(self) -> bool {
        use super::view::View;
        // SAFETY: a view's structure is live.
        unsafe { (*self.as_ptr()).aggkind as u8 == b'n' }
    }
}

impl<'p> SubPlan<'p> {
    /// A copy of the node's own fields, without the condition that is evaluated for each row.
    pub fn without_condition(self) -> SubPlan<'p> {
        use super::view::View;
        let bare: SubPlan<'p> = super::tag::new();
        // SAFETY: two live nodes of this structure.
        unsafe {
            let (bare, own) = (bare.as_ptr(), self.as_ptr());
            *bare = *own;
            (*bare).testexpr = std::ptr::null_mut();
            (*bare).useHashTable = false;
        }
        bare
    }
}

impl<'p> TargetEntry<'p> {
    /// The expression.
    #[inline]
    pub fn expr(self) -> Expr<'p> {
        use super::view::View;
        // SAFETY: the expression of a live target entry is never null and lives as long as the entry.
        unsafe { Expr::at((*self.as_ptr()).expr.cast()) }
    }

    /// Replaces the expression.
    pub fn set_expr(self, expr: Expr<'p>) {
        use super::view::View;
        // SAFETY: a live target entry, of which no view lends a reference; the expression lives as long.
        unsafe { (*self.as_ptr()).expr = expr.as_ptr().cast() }
    }
}
