//! Passes conditions on labels to [`lanes.metric_series()`](super::metric_series) while a query is planned.
//!
//! A metric's view reads `lanes.metric_series('up', NULL)`. If the query compares a label with texts
//! (`labels->>'job' = 'node'`, `IN`, `<>`, `LIKE`, `~` and the like) or tests whether it exists (`IS NULL`), the NULL
//! becomes an array of these [`conditions`]. The query checks them too. So the function may return series that do not
//! meet them, but must return all series that do.
//!
//! Only constants and parameters of the statement are passed. PostgreSQL evaluates any other expression when it checks
//! the first row, and not at all if there is no row.

use pgrx::pg_sys::{self, Oid};

use super::conditions;
use crate::pg::tree::{
    Expr, Expression, FuncExpr, Kind, List, RangeTblEntry, RangeTblFunction, RelOptInfo, make,
};
use crate::pg::{catalog, names};

/// The largest number of values of a condition that is passed.
const VALUES_MAX: usize = 10_000;
/// The test that never raises an error.
const EQUAL: &str = "= ANY";
/// The column `labels` of the function's rows.
const LABELS: i16 = 2;

/// Passes the conditions on a relation to its function, if that is `lanes.metric_series()`.
pub fn narrow<'p>(relation: RelOptInfo<'p>, entry: RangeTblEntry<'p>) {
    let Some((function, call)) = open_call(entry) else {
        return;
    };
    let mut texts: List<'p, Expr<'p>> = List::EMPTY;
    for qual in relation.baserestrictinfo() {
        let Some(condition) = Condition::of(qual.clause(), relation.relid()) else {
            continue;
        };
        // The error of any other operator might reveal a series that a security barrier hides.
        let is_safe = qual.security_level() <= relation.baserestrict_min_security();
        if is_safe || condition.test == EQUAL {
            condition.append_to(&mut texts);
        }
    }
    if texts.is_empty() {
        return;
    }
    let narrowed = make::copy(call);
    narrowed.args().set(1, make::text_array(texts).as_expr());
    let function = make::copy(function);
    function.set_call(Some(narrowed));
    entry.set_functions(List::new([function]));
}

/// The only function of an entry and its call, if it is `lanes.metric_series(…, NULL)`.
fn open_call(entry: RangeTblEntry<'_>) -> Option<(RangeTblFunction<'_>, FuncExpr<'_>)> {
    if entry.rtekind() != pg_sys::RTEKind::RTE_FUNCTION || entry.funcordinality() {
        return None;
    }
    let functions = entry.functions();
    let function = functions.first().filter(|_| functions.len() == 1)?;
    let call = function.funcexpr()?.as_func()?;
    let conditions = call.args().get(1)?.as_const()?;
    (conditions.constisnull() && is_metric_series(call.funcid())).then_some((function, call))
}

/// Whether a function is `lanes.metric_series(text, text[])`.
pub fn is_metric_series(function: Oid) -> bool {
    names::function_name(function.to_u32()) == "metric_series"
        && catalog::is_lanes_function(function)
        && catalog::takes(function, 2)
}

/// A condition that is passed to the label index, see [`conditions`].
struct Condition<'p> {
    label: String,
    test: String,
    collation: Oid,
    values: Vec<Expr<'p>>,
}

impl<'p> Condition<'p> {
    /// The condition that a clause is, if it is on a label.
    fn of(clause: Expr<'p>, relation: u32) -> Option<Condition<'p>> {
        match clause.kind() {
            Kind::NullTest(test) => Some(Condition {
                label: label(test.arg()?, relation)?,
                test: match test.nulltesttype() {
                    pg_sys::NullTestType::IS_NULL => "IS NULL".to_owned(),
                    _ => "IS NOT NULL".to_owned(),
                },
                collation: pg_sys::InvalidOid,
                values: Vec::new(),
            }),
            Kind::ScalarArrayOpExpr(clause) => {
                let operator = operator(clause.opno(), clause.inputcollid())?;
                let label = label(clause.args().get(0)?, relation)?;
                let values = elements(clause.args().get(1)?)?;
                // ALL of no values is true even for a series without the label.
                if !clause.useOr() && values.is_empty() {
                    return None;
                }
                let quantifier = if clause.useOr() { "ANY" } else { "ALL" };
                Some(Condition {
                    label,
                    test: format!("{operator} {quantifier}"),
                    collation: clause.inputcollid(),
                    values,
                })
            }
            Kind::OpExpr(clause) => {
                let operator = operator(clause.opno(), clause.inputcollid())?;
                let (left, right) = (clause.args().get(0)?, clause.args().get(1)?);
                let sides = match operator {
                    "=" | "<>" => &[(left, right), (right, left)][..],
                    _ => &[(left, right)],
                };
                sides.iter().find_map(|(side, value)| {
                    let label = label(*side, relation)?;
                    is_known(*value).then(|| Condition {
                        label,
                        test: format!("{operator} ANY"),
                        collation: clause.inputcollid(),
                        values: vec![make::copy(*value)],
                    })
                })
            }
            _ => None,
        }
    }

    /// Appends the condition to the array that the function reads.
    fn append_to(self, texts: &mut List<'p, Expr<'p>>) {
        let collation = self.collation.to_u32().to_string();
        let count = self.values.len().to_string();
        for text in [&self.label, &self.test, &collation, &count] {
            texts.push(make::text(text.as_bytes()));
        }
        for value in self.values {
            texts.push(value);
        }
    }
}

/// The name of an operator on texts that conditions may use.
fn operator(operator: Oid, collation: Oid) -> Option<&'static str> {
    // Without a collation, the operator itself raises an error.
    conditions::operator(catalog::operator_function(operator))
        .filter(|_| collation != pg_sys::InvalidOid)
}

/// The elements of an array that are not NULL, if all are known and there are not too many.
fn elements(array: Expr<'_>) -> Option<Vec<Expr<'_>>> {
    match array.kind() {
        Kind::ArrayExpr(array) => {
            let elements = array.elements();
            let is_plain = !array.multidims() && elements.iter().all(is_known);
            is_plain.then(|| elements.iter().map(make::copy).collect())
        }
        Kind::Const(array) => {
            let values = array.value()?.elements()?;
            (values.len() <= VALUES_MAX).then_some(())?;
            let texts = values.into_iter().flatten().map(|value| value.bytes());
            texts.map(|text| Some(make::text(&text?))).collect()
        }
        _ => None,
    }
}

/// The name in `labels->>'name'`.
fn label(expr: Expr<'_>, relation: u32) -> Option<String> {
    let access = expr.as_op()?;
    let function = catalog::operator_function(access.opno());
    if function.to_u32() != pg_sys::F_JSONB_OBJECT_FIELD_TEXT {
        return None;
    }
    let column = access.args().get(0)?.as_var()?;
    let is_labels = u32::try_from(column.varno()) == Ok(relation)
        && column.varattno() == LABELS
        && column.varlevelsup() == 0;
    let name = access.args().get(1)?.as_const().filter(|_| is_labels)?;
    String::from_utf8(name.value()?.bytes()?.into_vec()).ok()
}

/// Whether an expression is a constant or a parameter of the statement.
fn is_known(expr: Expr<'_>) -> bool {
    match expr.stripped().kind() {
        Kind::Const(_) => true,
        Kind::Param(parameter) => parameter.paramkind() == pg_sys::ParamKind::PARAM_EXTERN,
        _ => false,
    }
}
