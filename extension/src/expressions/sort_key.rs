//! Translates sort keys: PostgreSQL's path keys and sort clauses into expressions with an order, and into the engine's
//! sort keys.

use lanes_columnar::order::{KEYS_MAX, Order, SortKey};

use super::translate::{Refusal, Translation, Translator};
use crate::pg::explain::Explain;
use crate::pg::ports;
use crate::pg::tree::{
    EquivalenceMember, Expr, List, PathKey, RelOptInfo, SortGroupClause, TargetEntry,
};

/// An expression that rows are sorted by, and its order.
#[derive(Clone, Copy)]
pub struct OrderedBy<'p> {
    /// The expression.
    pub expression: Expr<'p>,
    /// Its order.
    pub order: Order,
}

/// Adds the sort keys to EXPLAIN.
pub fn explain_order(explain: &Explain, keys: &[OrderedBy<'_>]) {
    let expressions: Vec<_> = keys.iter().map(|key| key.expression).collect();
    let mut shown = explain.texts_of(&expressions);
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

/// The leading path keys that the engine can sort a table by, and the reason why it cannot sort by the next one.
pub fn of_path_keys<'p>(
    translator: &mut Translator,
    relation: RelOptInfo<'p>,
    path_keys: List<'p, PathKey<'p>>,
) -> (Vec<OrderedBy<'p>>, Option<Refusal>) {
    let mut found = Vec::new();
    for key in path_keys {
        match of_path_key(translator, relation, key) {
            Ok(_) if found.len() == KEYS_MAX => return (found, Some(TOO_MANY.into())),
            Ok(key) => found.push(key),
            Err(reason) => return (found, Some(reason)),
        }
    }
    (found, None)
}

fn of_path_key<'p>(
    translator: &mut Translator,
    relation: RelOptInfo<'p>,
    key: PathKey<'p>,
) -> Translation<OrderedBy<'p>> {
    let class = key.pk_eclass().ok_or(VOLATILE)?;
    if class.ec_has_volatile() {
        return Err(VOLATILE.into());
    }
    if !ports::is_number_family(key.pk_opfamily()) {
        return Err(NOT_A_NUMBER.into());
    }
    let is_own = |member: &EquivalenceMember<'_>| {
        !member.em_is_const() && member.em_relids().equals(relation.relids())
    };
    let Some(member) = class.members_for(relation).find(is_own) else {
        return Err("a column of another table".into());
    };
    let expression = member.expr();
    translator.value(expression)?;
    Ok(OrderedBy {
        expression,
        order: Order {
            descending: key.is_descending(),
            nulls_first: key.pk_nulls_first(),
        },
    })
}

/// The sort keys of sort clauses, without the clauses that are also in `beside`.
///
/// # Errors
/// Why the engine cannot sort a table by all of them.
pub fn of_clauses<'p>(
    translator: &mut Translator,
    targets: List<'p, TargetEntry<'p>>,
    clauses: List<'p, SortGroupClause<'p>>,
    beside: List<'p, SortGroupClause<'p>>,
) -> Translation<Vec<OrderedBy<'p>>> {
    let mut found = Vec::new();
    for clause in clauses {
        let is_same =
            |other: SortGroupClause<'_>| other.tleSortGroupRef() == clause.tleSortGroupRef();
        if beside.iter().any(is_same) {
            continue;
        }
        let Some((descending, family)) = ports::ordering_operator(clause.sortop()) else {
            return Err("an order of no operator family".into());
        };
        if !ports::is_number_family(family) {
            return Err(NOT_A_NUMBER.into());
        }
        if found.len() == KEYS_MAX {
            return Err(TOO_MANY.into());
        }
        let expression = clause.expr(targets);
        if expression.is_volatile() {
            return Err(VOLATILE.into());
        }
        translator.value(expression)?;
        found.push(OrderedBy {
            expression,
            order: Order {
                descending,
                nulls_first: clause.nulls_first(),
            },
        });
    }
    Ok(found)
}

const NOT_A_NUMBER: &str = "a key that is neither number nor time";
const TOO_MANY: &str = "more keys than can be ordered by";
const VOLATILE: &str = "a volatile expression";

/// The number of leading keys that are columns. Where some quals are not vectorised, only these can be computed for all
/// rows: an expression might fail for a row that the other quals reject.
pub fn leading_columns(keys: &[OrderedBy<'_>]) -> usize {
    let is_column = |key: &&OrderedBy<'_>| key.expression.stripped().as_var().is_some();
    keys.iter().take_while(is_column).count()
}

/// An order as flags, for a plan's private data.
pub fn to_flags(order: Order) -> i32 {
    i32::from(order.descending) | i32::from(order.nulls_first) << 1
}

/// The order of flags that [`to_flags`] returned.
pub fn of_flags(flags: i32) -> Order {
    Order {
        descending: flags & 1 != 0,
        nulls_first: flags & 2 != 0,
    }
}

/// The engine's sort keys.
///
/// # Errors
/// Why the engine cannot compute a key.
pub fn keys(translator: &mut Translator, keys: &[OrderedBy<'_>]) -> Translation<Vec<SortKey>> {
    let key = |by: &OrderedBy<'_>| {
        Ok(SortKey {
            value: translator.value(by.expression)?,
            order: by.order,
        })
    };
    keys.iter().map(key).collect()
}
