//! Conditions on labels, given to [`lanes.metric_series()`](super::metric_series) by the planner.
//!
//! A metric's view reads `lanes.metric_series('up', NULL)`. Where the query compares a label with texts
//! (`labels->>'job' = 'node'`, `IN`, `<>`, `LIKE`, `~` and the like) or asks whether it is there (`IS NULL`), the NULL
//! becomes the array of these [`conditions`]. They stay conditions of the query too, so the function may return series
//! that do not meet them, but must return all that do.
//!
//! Only constants and parameters of the statement are passed on: PostgreSQL would evaluate any other expression when it
//! checks the first row, and not at all where there is no row.

use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::{
    T_ArrayExpr, T_Const, T_FuncExpr, T_NullTest, T_OpExpr, T_Param, T_RelabelType,
    T_ScalarArrayOpExpr, T_Var,
};
use pgrx::{Array, FromDatum, IntoDatum};

use super::conditions;
use crate::pg::{nodes, ports, tree};

/// Values of one condition that are passed on.
const VALUES_MAX: usize = 10_000;
/// The test that cannot fail whatever it is asked about.
const EQUAL: &str = "= ANY";

/// Gives the conditions on a relation to its function, if that is `lanes.metric_series()`.
///
/// # Safety
/// As for a `set_rel_pathlist_hook`.
pub unsafe fn narrow(relation: *mut pg_sys::RelOptInfo, entry: *mut pg_sys::RangeTblEntry) {
    // SAFETY: the caller's promise; casts follow tags.
    unsafe {
        if (*entry).rtekind != pg_sys::RTEKind::RTE_FUNCTION
            || (*entry).funcordinality
            || ports::list_length((*entry).functions) != 1
        {
            return;
        }
        let function: *mut pg_sys::RangeTblFunction = ports::list_nth((*entry).functions, 0);
        let call = (*function).funcexpr.cast::<pg_sys::FuncExpr>();
        if !tree::is_a(call, T_FuncExpr) || !is_metric_series((*call).funcid) {
            return;
        }
        let conditions: *mut pg_sys::Node = ports::list_nth((*call).args, 1);
        let is_open =
            tree::is_a(conditions, T_Const) && (*conditions.cast::<pg_sys::Const>()).constisnull;
        if !is_open {
            return;
        }
        let mut texts = Vec::new();
        for qual in nodes::list::<pg_sys::RestrictInfo>((*relation).baserestrictinfo) {
            let clause = (*qual).clause.cast::<pg_sys::Node>();
            let Some(condition) = condition(clause, (*relation).relid) else {
                continue;
            };
            // Any other operator might tell of a series, in an ERROR, which a barrier hides.
            let is_safe = (*qual).security_level <= (*relation).baserestrict_min_security;
            if is_safe || condition.test == EQUAL {
                texts.push(constant(&condition.label));
                texts.push(constant(&condition.test));
                texts.push(constant(&condition.collation.to_u32().to_string()));
                texts.push(constant(&condition.values.len().to_string()));
                texts.extend(condition.values);
            }
        }
        if texts.is_empty() {
            return;
        }
        let array = tree::make::<pg_sys::ArrayExpr>(pg_sys::NodeTag::T_ArrayExpr);
        (*array).array_typeid = pg_sys::TEXTARRAYOID;
        (*array).element_typeid = pg_sys::TEXTOID;
        (*array).elements = tree::list(&texts);
        (*array).location = -1;
        let narrowed = tree::copy(call);
        tree::list_set((*narrowed).args, 1, array);
        let function = tree::copy(function);
        (*function).funcexpr = narrowed.cast();
        (*entry).functions = tree::list(&[function]);
    }
}

/// Whether a function is `lanes.metric_series(text, text[])`.
unsafe fn is_metric_series(function: pg_sys::Oid) -> bool {
    // SAFETY: look-ups in the catalogue.
    unsafe {
        let name = pg_sys::get_func_name(function);
        if name.is_null() || std::ffi::CStr::from_ptr(name) != c"metric_series" {
            return false;
        }
        let schema = pg_sys::get_namespace_oid(c"lanes".as_ptr(), true);
        schema != pg_sys::InvalidOid
            && pg_sys::get_func_namespace(function) == schema
            && pg_sys::get_func_nargs(function) == 2
    }
}

/// A condition that goes to the label index: see [`conditions`].
struct Condition {
    label: String,
    test: String,
    collation: pg_sys::Oid,
    values: Vec<*mut pg_sys::Node>,
}

/// The condition that a clause is, if it is one on a label.
unsafe fn condition(clause: *mut pg_sys::Node, relation: pg_sys::Index) -> Option<Condition> {
    // SAFETY: the planner's live expressions; casts follow tags.
    unsafe {
        if tree::is_a(clause, T_NullTest) {
            let clause = &*clause.cast::<pg_sys::NullTest>();
            let test = match clause.nulltesttype {
                pg_sys::NullTestType::IS_NULL => "IS NULL",
                _ => "IS NOT NULL",
            };
            return Some(Condition {
                label: label(clause.arg.cast(), relation)?,
                test: test.to_owned(),
                collation: pg_sys::InvalidOid,
                values: Vec::new(),
            });
        }
        if tree::is_a(clause, T_ScalarArrayOpExpr) {
            let clause = &*clause.cast::<pg_sys::ScalarArrayOpExpr>();
            let operator = operator(clause.opno, clause.inputcollid)?;
            let label = label(ports::list_nth(clause.args, 0), relation)?;
            let values = elements(ports::list_nth(clause.args, 1))?;
            // All of no values: that is so without the label too.
            if !clause.useOr && values.is_empty() {
                return None;
            }
            let quantifier = if clause.useOr { "ANY" } else { "ALL" };
            return Some(Condition {
                label,
                test: format!("{operator} {quantifier}"),
                collation: clause.inputcollid,
                values,
            });
        }
        if !tree::is_a(clause, T_OpExpr) {
            return None;
        }
        let clause = &*clause.cast::<pg_sys::OpExpr>();
        let operator = operator(clause.opno, clause.inputcollid)?;
        let arguments: [*mut pg_sys::Node; 2] =
            [0, 1].map(|index| ports::list_nth(clause.args, index));
        let [left, right] = arguments;
        let sides = match operator {
            "=" | "<>" => &[(left, right), (right, left)][..],
            _ => &[(left, right)],
        };
        sides.iter().find_map(|(side, value)| {
            let label = label(*side, relation)?;
            is_known(*value).then(|| Condition {
                label,
                test: format!("{operator} ANY"),
                collation: clause.inputcollid,
                values: vec![tree::copy(*value)],
            })
        })
    }
}

/// The name of an operator on texts that conditions may use.
unsafe fn operator(operator: pg_sys::Oid, collation: pg_sys::Oid) -> Option<&'static str> {
    // SAFETY: a look-up in the catalogue.
    let function = unsafe { pg_sys::get_opcode(operator) };
    // Without a collation, the operator raises an ERROR by itself.
    conditions::operator(function).filter(|_| collation != pg_sys::InvalidOid)
}

/// The elements of an array that are not NULL, if all are known and they are not too many.
unsafe fn elements(array: *mut pg_sys::Node) -> Option<Vec<*mut pg_sys::Node>> {
    // SAFETY: as for `condition`.
    unsafe {
        if tree::is_a(array, T_ArrayExpr) {
            let array = &*array.cast::<pg_sys::ArrayExpr>();
            let elements = || nodes::list::<pg_sys::Node>(array.elements);
            let is_plain = !array.multidims && elements().all(|element| is_known(element));
            return is_plain.then(|| elements().map(|element| tree::copy(element)).collect());
        }
        if !tree::is_a(array, T_Const) {
            return None;
        }
        let array = &*array.cast::<pg_sys::Const>();
        let values = Array::<&[u8]>::from_datum(array.constvalue, array.constisnull)?;
        let is_short = values.len() <= VALUES_MAX;
        is_short.then(|| values.iter().flatten().map(text_constant).collect())
    }
}

/// The name in `labels->>'name'`.
unsafe fn label(node: *mut pg_sys::Node, relation: pg_sys::Index) -> Option<String> {
    // SAFETY: as for `condition`.
    unsafe {
        if !tree::is_a(node, T_OpExpr) {
            return None;
        }
        let access = &*node.cast::<pg_sys::OpExpr>();
        if pg_sys::get_opcode(access.opno).to_u32() != pg_sys::F_JSONB_OBJECT_FIELD_TEXT {
            return None;
        }
        let column: *mut pg_sys::Var = ports::list_nth(access.args, 0);
        let name: *mut pg_sys::Const = ports::list_nth(access.args, 1);
        let is_labels = tree::is_a(column, T_Var)
            && (*column).varno as pg_sys::Index == relation
            && (*column).varattno == 2
            && (*column).varlevelsup == 0;
        if !is_labels || !tree::is_a(name, T_Const) {
            return None;
        }
        let name = <&[u8]>::from_datum((*name).constvalue, (*name).constisnull)?;
        String::from_utf8(name.to_vec()).ok()
    }
}

/// Whether an expression is a constant, or a parameter of the statement.
unsafe fn is_known(mut node: *mut pg_sys::Node) -> bool {
    // SAFETY: as for `condition`.
    unsafe {
        while tree::is_a(node, T_RelabelType) {
            node = (*node.cast::<pg_sys::RelabelType>()).arg.cast();
        }
        tree::is_a(node, T_Const)
            || tree::is_a(node, T_Param)
                && (*node.cast::<pg_sys::Param>()).paramkind == pg_sys::ParamKind::PARAM_EXTERN
    }
}

fn constant(text: &str) -> *mut pg_sys::Node {
    text_constant(text.as_bytes())
}

fn text_constant(text: &[u8]) -> *mut pg_sys::Node {
    let value = text.into_datum();
    // SAFETY: bytes as a datum are a varlena, as a text is one.
    unsafe {
        pg_sys::makeConst(
            pg_sys::TEXTOID,
            -1,
            pg_sys::DEFAULT_COLLATION_OID,
            -1,
            value.unwrap_or(pg_sys::Datum::null()),
            value.is_none(),
            false,
        )
        .cast()
    }
}
