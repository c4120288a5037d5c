//! Which aggregates of a query are computed from one state.

use super::regression::OfPairs;
use super::variance_call::spread_of;
use crate::pg::tree::Aggref;

/// Whether two calls compute their results from equal states of the engine: PostgreSQL found that they have one state,
/// and the engine keeps all numbers that either needs. Calls with ORDER BY may be computed by PostgreSQL from ordered
/// rows, and then each has a state of its own.
pub fn is_shared(one: Aggref<'_>, other: Aggref<'_>) -> bool {
    let functions = [one, other].map(|call| call.aggfnoid().to_u32());
    let [spread, other_spread] = functions.map(|function| spread_of(function).is_some());
    let [pairs, other_pairs] = functions.map(|function| OfPairs::of(function).is_some());
    one.aggtransno() >= 0
        && one.aggtransno() == other.aggtransno()
        && one.aggorder().is_empty()
        && other.aggorder().is_empty()
        && !one.is_partial()
        && !other.is_partial()
        && (spread && other_spread || pairs && other_pairs)
}
