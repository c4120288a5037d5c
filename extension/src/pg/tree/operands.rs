//! The kinds of expressions, and the target entries that name them.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Datum, Oid};

use super::expression::Expr;
use super::list::{Integers, List, Oids};
#[cfg(not(feature = "pg15"))]
use super::planner::Relids;
use super::query::{Query, SortGroupClause};
use super::tag;
use super::view::views;
use crate::pg::typed_datum::TypedDatum;

views! {
    /// A reference to a column.
    Var of Var {
        /// The range-table index of the column's table, or one of the special indexes of plans, such as `INDEX_VAR`.
        varno: i32;
        varattno: i16;
        vartype: Oid;
        vartypmod: i32;
        varcollid: Oid;
        varlevelsup: u32;
        location: i32;
    } {
        /// The outer joins that can make the column NULL.
        #[cfg(not(feature = "pg15"))]
        varnullingrels: Relids<'p>;
    } {
        set_table = varno: i32;
        set_table_as_written = varnosyn: u32;
        set_attribute = varattno: i16;
        set_type_modifier = vartypmod: i32;
        set_levels_up = varlevelsup: u32;
        set_attribute_as_written = varattnosyn: i16;
    } {
        #[cfg(not(feature = "pg15"))]
        set_nulling_joins = varnullingrels: Relids<'p>;
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
        aggkind: std::ffi::c_char;
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
        set_function = aggfnoid: Oid;
        set_result = aggtype: Oid;
        set_collation = aggcollid: Oid;
        set_input_collation = inputcollid: Oid;
        set_star = aggstar: bool;
        set_levels_up = agglevelsup: u32;
        set_kind = aggkind: std::ffi::c_char;
        set_number = aggno: i32;
        set_state_number = aggtransno: i32;
        set_split = aggsplit: pg_sys::AggSplit::Type;
        set_location = location: i32;
    } {
        set_argument_types = aggargtypes: Oids<'p>;
        set_arguments = args: List<'p, TargetEntry<'p>>;
        set_filter = aggfilter: Option<Expr<'p>>;
    }

    /// `GROUPING(…)`.
    GroupingFunc of GroupingFunc {
        agglevelsup: u32;
    } {
        refs: Integers<'p>;
    } {
        set_levels_up = agglevelsup: u32;
    }

    /// A call of a function.
    FuncExpr of FuncExpr {
        funcid: Oid;
        funcresulttype: Oid;
        inputcollid: Oid;
    } {
        args: List<'p, Expr<'p>>;
    } {
        set_function = funcid: Oid;
        set_result = funcresulttype: Oid;
        set_format = funcformat: pg_sys::CoercionForm::Type;
        set_collation = funccollid: Oid;
        set_input_collation = inputcollid: Oid;
        set_location = location: i32;
    } {
        set_arguments = args: List<'p, Expr<'p>>;
    }

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
    } {
        set_input_collation = inputcollid: Oid;
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

    /// A sub-select in an expression, before planning.
    SubLink of SubLink {
        subLinkType: pg_sys::SubLinkType::Type;
    } {
        subselect: Option<Query<'p>>;
    } {
        set_kind = subLinkType: pg_sys::SubLinkType::Type;
        set_location = location: i32;
    } {
        set_query = subselect: Option<Query<'p>>;
    }

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
    } {
        set_uses_hash_table = useHashTable: bool;
    } {
        set_condition = testexpr: Option<Expr<'p>>;
    }

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

    /// An element or a slice of an array, or the assignment of one.
    SubscriptingRef of SubscriptingRef {} {
        refupperindexpr: List<'p, Expr<'p>>;
        reflowerindexpr: List<'p, Expr<'p>>;
        refexpr: Option<Expr<'p>>;
        refassgnexpr: Option<Expr<'p>>;
    } {} {}

    /// `COALESCE`.
    CoalesceExpr of CoalesceExpr {
        coalescetype: Oid;
    } {
        args: List<'p, Expr<'p>>;
    } {
        set_type = coalescetype: Oid;
        set_location = location: i32;
    } {
        set_operands = args: List<'p, Expr<'p>>;
    }

    /// `GREATEST` or `LEAST`.
    MinMaxExpr of MinMaxExpr {
        operator = op: pg_sys::MinMaxOp::Type;
    } {
        args: List<'p, Expr<'p>>;
    } {}

    /// `ARRAY[…]`.
    ArrayExpr of ArrayExpr {
        element_typeid: Oid;
        multidims: bool;
    } {
        elements: List<'p, Expr<'p>>;
    } {
        set_type = array_typeid: Oid;
        set_element_type = element_typeid: Oid;
        set_location = location: i32;
    } {
        set_elements = elements: List<'p, Expr<'p>>;
    }

    /// `ROW(…)`.
    RowExpr of RowExpr {} {
        args: List<'p, Expr<'p>>;
    } {
        set_type = row_typeid: Oid;
        set_format = row_format: pg_sys::CoercionForm::Type;
        set_location = location: i32;
    } {
        set_args = args: List<'p, Expr<'p>>;
    }

    /// `IS [NOT] NULL`.
    NullTest of NullTest {
        nulltesttype: pg_sys::NullTestType::Type;
        argisrow: bool;
    } {
        arg: Option<Expr<'p>>;
    } {
        set_kind = nulltesttype: pg_sys::NullTestType::Type;
        set_location = location: i32;
    } {
        set_argument = arg: Option<Expr<'p>>;
    }

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
        resorigtbl: Oid;
        resorigcol: i16;
    } {
        expr: Expr<'p>;
        resname: Option<&'p CStr>;
    } {
        set_sort_group_ref = ressortgroupref: u32;
        set_origin_table = resorigtbl: Oid;
        set_origin_column = resorigcol: i16;
    } {
        set_expr = expr: Expr<'p>;
    }
}

impl<'p> TargetEntry<'p> {
    /// Takes over which table's column another target is.
    pub fn take_origin(self, other: TargetEntry<'_>) {
        self.set_origin_table(other.resorigtbl());
        self.set_origin_column(other.resorigcol());
    }
}

impl<'p> Var<'p> {
    /// Makes the column one of another table, now and as it was written.
    pub fn refer_to(self, table: i32, attribute: i16) {
        self.set_table(table);
        self.set_attribute(attribute);
        self.set_table_as_written(table as u32);
        self.set_attribute_as_written(attribute);
    }
}

impl Const<'_> {
    /// The value; `None` is NULL.
    #[inline]
    pub fn value(self) -> Option<TypedDatum> {
        (!self.constisnull()).then(|| TypedDatum::of_constant(self))
    }
}

impl<'p> Aggref<'p> {
    /// A copy without the numbers that planning assigns.
    pub fn unnumbered(self) -> Aggref<'p> {
        let copy = tag::copy(self);
        copy.set_number(-1);
        copy.set_state_number(-1);
        copy.set_split(pg_sys::AggSplit::AGGSPLIT_SIMPLE);
        copy
    }

    /// Whether the call returns a state that PostgreSQL combines with other states of the group.
    pub fn is_partial(self) -> bool {
        self.aggsplit() == pg_sys::AggSplit::AGGSPLIT_INITIAL_SERIAL
    }

    /// Whether the call is of an ordinary aggregate: neither an ordered-set nor a hypothetical-set one.
    pub fn is_normal(self) -> bool {
        self.aggkind() as u8 == b'n'
    }
}

impl<'p> SubPlan<'p> {
    /// A copy of the node's own fields, without the condition that is evaluated for each row.
    pub fn without_condition(self) -> SubPlan<'p> {
        let bare = tag::shallow_copy(self);
        bare.set_condition(None);
        bare.set_uses_hash_table(false);
        bare
    }
}
