//! What rows are ordered by: from PostgreSQL's sort keys to expressions with an order each, and to the engine's keys.

use lanes_columnar::order::{KEYS_MAX, Order, SortKey};
use pgrx::pg_sys;

use super::translate::{self, Refusal, Translation, Translator};
use crate::pg::explain::Explain;
use crate::pg::{nodes, ports};

/// An expression with the order that is wanted of it.
#[derive(Clone, Copy)]
pub struct OrderedBy {
    pub expression: *mut pg_sys::Node,
    pub order: Order,
}

/// The leading sort keys of some path keys that the engine can order a table by, and why it cannot by all of them.
///
/// # Safety
/// The planner's live structures.
pub unsafe fn of_path_keys(
    translator: &mut Translator,
    relation: *mut pg_sys::RelOptInfo,
    path_keys: *mut pg_sys::List,
) -> (Vec<OrderedBy>, Option<Refusal>) {
    let mut found = Vec::new();
    // SAFETY: the caller's promise.
    unsafe {
        for key in nodes::list::<pg_sys::PathKey>(path_keys) {
            match of_path_key(translator, relation, key) {
                Ok(_) if found.len() == KEYS_MAX => {
                    return (found, Some("more keys than can be ordered by".into()));
                }
                Ok(key) => found.push(key),
                Err(reason) => return (found, Some(reason)),
            }
        }
    }
    (found, None)
}

unsafe fn of_path_key(
    translator: &mut Translator,
    relation: *mut pg_sys::RelOptInfo,
    key: *mut pg_sys::PathKey,
) -> Translation<OrderedBy> {
    // SAFETY: as for `of_path_keys`.
    unsafe {
        let class = (*key).pk_eclass;
        if (*class).ec_has_volatile {
            return Err("a volatile expression".into());
        }
        if !ports::is_number_family((*key).pk_opfamily) {
            return Err(NOT_A_NUMBER.into());
        }
        let member = nodes::list::<pg_sys::EquivalenceMember>((*class).ec_members).find(|member| {
            !(**member).em_is_const && pg_sys::bms_equal((**member).em_relids, (*relation).relids)
        });
        let Some(member) = member else {
            return Err("a column of another table".into());
        };
        let expression = (*member).em_expr.cast();
        translator.value(expression)?;
        Ok(OrderedBy {
            expression,
            order: Order {
                descending: ports::is_descending(key),
                nulls_first: (*key).pk_nulls_first,
            },
        })
    }
}

/// What sort clauses that are not `beside` others ask for.
///
/// # Errors
/// Why the engine cannot order a table by all of them.
///
/// # Safety
/// The planner's live structures.
pub unsafe fn of_clauses(
    translator: &mut Translator,
    targets: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    beside: *mut pg_sys::List,
) -> Translation<Vec<OrderedBy>> {
    let mut found = Vec::new();
    // SAFETY: the caller's promise.
    unsafe {
        for clause in nodes::list::<pg_sys::SortGroupClause>(clauses) {
            let same = |other: *mut pg_sys::SortGroupClause| {
                (*other).tleSortGroupRef == (*clause).tleSortGroupRef
            };
            if nodes::list(beside).any(same) {
                continue;
            }
            let Some((descending, family)) = ports::ordering_operator((*clause).sortop) else {
                return Err("an order of no operator family".into());
            };
            if !ports::is_number_family(family) {
                return Err(NOT_A_NUMBER.into());
            }
            if found.len() == KEYS_MAX {
                return Err("more keys than can be ordered by".into());
            }
            let expression = pg_sys::get_sortgroupclause_expr(clause, targets);
            if pg_sys::contain_volatile_functions(expression) {
                return Err("a volatile expression".into());
            }
            translator.value(expression)?;
            found.push(OrderedBy {
                expression,
                order: Order {
                    descending,
                    nulls_first: (*clause).nulls_first,
                },
            });
        }
    }
    Ok(found)
}

const NOT_A_NUMBER: &str = "a key that is neither number nor time";

/// How many leading keys are columns: where quals are kept, expressions, which may fail, must not see rows that those
/// hide.
pub fn leading_columns(keys: &[OrderedBy]) -> usize {
    let is_column = |key: &&OrderedBy| {
        // SAFETY: a live expression of the plan's.
        unsafe { (*translate::strip(key.expression)).type_ == pg_sys::NodeTag::T_Var }
    };
    keys.iter().take_while(is_column).count()
}

/// A flag a bit, for a plan.
pub fn to_flags(order: Order) -> i32 {
    i32::from(order.descending) | i32::from(order.nulls_first) << 1
}

/// Back.
pub fn of_flags(flags: i32) -> Order {
    Order {
        descending: flags & 1 != 0,
        nulls_first: flags & 2 != 0,
    }
}

/// The engine's keys.
///
/// # Errors
/// Why a key is none of the engine's.
pub fn keys(translator: &mut Translator, ordered_by: &[OrderedBy]) -> Translation<Vec<SortKey>> {
    let key = |by: &OrderedBy| {
        Ok(SortKey {
            value: translator.value(by.expression)?,
            order: by.order,
        })
    };
    ordered_by.iter().map(key).collect()
}

/// What rows are ordered by.
pub fn explain_order(explain: &Explain, keys: &[OrderedBy]) {
    let expressions: Vec<*mut pg_sys::Node> = keys.iter().map(|key| key.expression).collect();
    let mut shown = explain.deparse(&expressions);
    for (text, key) in shown.iter_mut().zip(keys) {
        if key.order.descending {
            text.push_str(" DESC");
        }
        if key.order.nulls_first != key.order.descending {
            let first = key.order.nulls_first;
            text.push_str(if first { " NULLS FIRST" } else { " NULLS LAST" });
        }
    }
    if !shown.is_empty() {
        explain.text(c"Order By", &shown.join(", "));
    }
}
