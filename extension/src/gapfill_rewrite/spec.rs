//! What the sub-select of a query with filled gaps tells the node, as the arguments of a call of `lanes.gapfill`:
//!
//! | argument | content |
//! |---|---|
//! | 0 | a text: a letter for each column, a blank, a letter for each bound |
//! | 1 | the width of buckets |
//! | 2 | the time zone, or NULL |
//! | 3 … | the bounds, all of the type of the buckets |

use pgrx::pg_sys;

use super::functions::TIMES;
use crate::pg::catalog;
use crate::pg::tree::{Expr, FuncExpr, Query, TargetEntry};

/// What a column of a row that is added contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The bucket.
    Bucket,
    /// The value that all rows of the group have: a key.
    Key,
    /// NULL.
    Plain,
    /// The value of the row before.
    Locf,
    /// The last value that is not NULL, also in rows that were there.
    LocfOverNulls,
    /// A number between those of the rows before and after.
    Interpolated,
}

/// A limit of the buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The first bucket contains this time.
    From,
    /// The first bucket contains the time after this one.
    After,
    /// All buckets start before this time.
    Before,
    /// All buckets start at this time or before.
    To,
}

const ROLES: [(Role, u8); 6] = [
    (Role::Bucket, b'b'),
    (Role::Key, b'k'),
    (Role::Plain, b'a'),
    (Role::Locf, b'l'),
    (Role::LocfOverNulls, b'm'),
    (Role::Interpolated, b'i'),
];

const BOUNDS: [(Bound, u8); 4] = [
    (Bound::From, b's'),
    (Bound::After, b'S'),
    (Bound::Before, b'f'),
    (Bound::To, b'F'),
];

/// The letters of columns and bounds.
pub fn encode(roles: &[Role], bounds: &[Bound]) -> Vec<u8> {
    let letter = |role: &Role| {
        ROLES
            .iter()
            .find(|known| known.0 == *role)
            .map(|known| known.1)
    };
    let mut letters: Vec<u8> = roles.iter().filter_map(letter).collect();
    letters.push(b' ');
    let letter = |bound: &Bound| {
        BOUNDS
            .iter()
            .find(|known| known.0 == *bound)
            .map(|known| known.1)
    };
    letters.extend(bounds.iter().filter_map(letter));
    letters
}

/// The columns and bounds that letters stand for.
pub fn decode(letters: &[u8]) -> (Vec<Role>, Vec<Bound>) {
    let mut parts = letters.split(|letter| *letter == b' ');
    let (roles, bounds) = (parts.next(), parts.next());
    let role = |letter: &u8| {
        ROLES
            .iter()
            .find(|known| known.1 == *letter)
            .map(|known| known.0)
    };
    let bound = |letter: &u8| {
        BOUNDS
            .iter()
            .find(|known| known.1 == *letter)
            .map(|known| known.0)
    };
    (
        roles.unwrap_or_default().iter().filter_map(role).collect(),
        bounds
            .unwrap_or_default()
            .iter()
            .filter_map(bound)
            .collect(),
    )
}

/// The call that ends the list of a sub-select whose gaps are to be filled; `None` for any other query.
pub fn call_in(query: Query<'_>) -> Option<FuncExpr<'_>> {
    let last = query.targetList().len().checked_sub(1)?;
    let call = query.targetList().get(last).map(TargetEntry::expr)?;
    let call = call.as_func()?;
    let is_ours = super::range::spec_function() == call.funcid();
    (is_ours && call.args().len() > 3).then_some(call)
}

/// Whether a call fits the sub-select that it ends. Users may write calls too, and the node reads values as the
/// call says, so that it must be true of them: there is one bucket, of a type of times, and width, zone and bounds
/// are of the types that go with it.
pub fn fits(query: Query<'_>, call: FuncExpr<'_>) -> bool {
    let Some(letters) = letters(call) else {
        return false;
    };
    let (roles, bounds) = decode(&letters);
    let targets = query.targetList();
    let mut buckets = roles
        .iter()
        .zip(targets)
        .filter(|(role, _)| **role == Role::Bucket);
    let (Some((_, bucket)), None) = (buckets.next(), buckets.next()) else {
        return false;
    };
    let type_of = |expr: Expr<'_>| catalog::base_type(expr.type_of());
    let time = type_of(bucket.expr());
    let types: Vec<_> = call.args().iter().map(type_of).collect();
    let Some((width, of_bounds)) = types.get(1).zip(types.get(3..)) else {
        return false;
    };
    let fits_buckets = TIMES.contains(&(time, *width)) && types[2] == pg_sys::TEXTOID;
    let are_all_known = roles.len() + bounds.len() + 1 == letters.len();
    let fits_columns = are_all_known && roles.len() + 1 == targets.len();
    let fits_bounds =
        bounds.len() == of_bounds.len() && of_bounds.iter().all(|bound| *bound == time);
    fits_buckets && fits_columns && fits_bounds
}

/// The letters in a call.
pub fn letters(call: FuncExpr<'_>) -> Option<Box<[u8]>> {
    call.args()
        .first()
        .and_then(Expr::as_const)?
        .value()?
        .bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_give_roles_and_bounds_back() {
        let (roles, bounds) = (ROLES.map(|role| role.0), BOUNDS.map(|bound| bound.0));
        let letters = encode(&roles, &bounds);
        assert_eq!(decode(&letters), (roles.to_vec(), bounds.to_vec()));
        assert_eq!(
            decode(&encode(&[Role::Bucket], &[])),
            (vec![Role::Bucket], vec![])
        );
    }
}
