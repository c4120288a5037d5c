//! Translates sort keys: PostgreSQL's path keys and sort clauses into expressions with an order, and into the engine's
//! sort keys.

use lanes_columnar::order::{ItemOrder, ItemSort, KEYS_MAX, Order, SortBy, SortKey};
use pgrx::pg_sys::{self, Oid};

use super::translate::{Refusal, Translation, Translator};
use crate::pg::catalog;
use crate::pg::collation;
use crate::pg::explain::Explain;
use crate::pg::ports::{self, ItemFamily};
use crate::pg::tree::{
    EquivalenceMember, Expr, List, PathKey, RelOptInfo, SortGroupClause, TargetEntry, Var,
};

/// An expression that rows are sorted by, and its order.
#[derive(Clone, Copy)]
pub struct OrderedBy<'p> {
    /// The expression.
    pub expression: Expr<'p>,
    /// Its order.
    pub order: Order,
    /// How its values are compared, if they are items.
    pub items: Option<ItemsBy>,
}

/// How items are compared.
#[derive(Clone, Copy)]
pub struct ItemsBy {
    /// What kind of items they are.
    pub family: ItemFamily,
    /// The collation, of texts.
    pub collation: Oid,
}

impl ItemsBy {
    /// As the engine does it.
    pub(super) fn sort(self) -> ItemSort {
        let by_bytes = || collation::is_of_bytes(self.collation);
        let collated = || match by_bytes() {
            true => ItemOrder::Bytes,
            false => ItemOrder::Collated(collation::compare_by_number, self.collation.to_u32()),
        };
        ItemSort {
            order: match self.family {
                ItemFamily::Numeric => ItemOrder::Numeric,
                ItemFamily::Bytes => ItemOrder::Bytes,
                ItemFamily::Text | ItemFamily::Padded => collated(),
            },
            is_padded: self.family == ItemFamily::Padded,
        }
    }
}

/// The column of items that an expression is, if they are of this kind.
fn item_column(expression: Expr<'_>, family: ItemFamily) -> Option<Var<'_>> {
    expression.stripped().as_var().filter(|column| {
        let base = catalog::base_type(column.vartype());
        match family {
            ItemFamily::Text | ItemFamily::Padded => matches!(
                base,
                pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID
            ),
            ItemFamily::Bytes => base == pg_sys::BYTEAOID,
            ItemFamily::Numeric => base == pg_sys::NUMERICOID,
        }
    })
}

/// Adds the sort keys to EXPLAIN.
pub fn explain_order(explain: &Explain, keys: &[OrderedBy<'_>]) {
    if !keys.is_empty() {
        explain.text(c"Order By", &describe_order(explain, keys));
    }
}

/// The sort keys as EXPLAIN shows them.
pub fn describe_order(explain: &Explain, keys: &[OrderedBy<'_>]) -> String {
    let expressions: Vec<_> = keys.iter().map(|key| key.expression).collect();
    let mut shown = explain.texts_of(&expressions);
    for (text, key) in shown.iter_mut().zip(keys) {
        let name =
            |items: ItemsBy| collation::name_beside_type(items.collation, key.expression.type_of());
        if let Some(name) = key.items.and_then(name) {
            text.push_str(&format!(" COLLATE {name}"));
        }
        if key.order.descending {
            text.push_str(" DESC");
        }
        if key.order.nulls_first != key.order.descending {
            let first = key.order.nulls_first;
            text.push_str(if first { " NULLS FIRST" } else { " NULLS LAST" });
        }
    }
    shown.join(", ")
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
    let family = ports::item_family(key.pk_opfamily());
    if family.is_none() && !ports::is_number_family(key.pk_opfamily()) {
        return Err(OF_NO_ORDER.into());
    }
    let is_own = |member: &EquivalenceMember<'_>| {
        !member.em_is_const() && member.em_relids().equals(relation.relids())
    };
    let Some(member) = class.members_for(relation).find(is_own) else {
        return Err("a column of another table".into());
    };
    let expression = member.expr();
    let order = Order {
        descending: key.is_descending(),
        nulls_first: key.pk_nulls_first(),
    };
    let items = match family {
        None => {
            translator.value(expression)?;
            None
        }
        Some(family) => {
            let column = item_column(expression, family).ok_or(NOT_A_COLUMN)?;
            translator.attribute(column)?;
            let collation = class.ec_collation();
            let is_text = matches!(family, ItemFamily::Text | ItemFamily::Padded);
            if is_text && collation == pg_sys::InvalidOid {
                return Err("a text without collation".into());
            }
            Some(ItemsBy { family, collation })
        }
    };
    Ok(OrderedBy {
        expression,
        order,
        items,
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
            items: None,
        });
    }
    Ok(found)
}

const OF_NO_ORDER: &str = "a key of a type whose order the engine does not know";
const NOT_A_COLUMN: &str = "an expression of texts or numerics";
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

/// How items are compared as two numbers, for a plan's private data.
pub fn to_numbers(items: Option<ItemsBy>) -> [i32; 2] {
    let number = |family| FAMILIES.iter().position(|known| *known == family);
    match items {
        None => [0, 0],
        Some(items) => [
            number(items.family).map_or(0, |number| number as i32 + 1),
            items.collation.to_u32() as i32,
        ],
    }
}

/// The comparison of numbers that [`to_numbers`] returned.
pub fn of_numbers(numbers: [i32; 2]) -> Option<ItemsBy> {
    let place = usize::try_from(numbers[0] - 1).ok()?;
    Some(ItemsBy {
        family: *FAMILIES.get(place)?,
        collation: Oid::from_u32(numbers[1] as u32),
    })
}

const FAMILIES: [ItemFamily; 4] = [
    ItemFamily::Text,
    ItemFamily::Padded,
    ItemFamily::Bytes,
    ItemFamily::Numeric,
];

/// The engine's sort keys.
///
/// # Errors
/// Why the engine cannot compute a key.
pub fn keys(translator: &mut Translator, keys: &[OrderedBy<'_>]) -> Translation<Vec<SortKey>> {
    let key = |by: &OrderedBy<'_>| {
        let sort_by = match by.items {
            None => SortBy::Number(translator.value(by.expression)?),
            Some(items) => {
                let column = item_column(by.expression, items.family).ok_or(NOT_A_COLUMN)?;
                SortBy::Item(translator.attribute(column)?, items.sort())
            }
        };
        Ok(SortKey {
            by: sort_by,
            order: by.order,
        })
    };
    keys.iter().map(key).collect()
}
