//! The quals of a lanes table: the order in which they are evaluated, and which of them are vectorised.

use super::reasons::{self, About};
use crate::expressions::translate::{Scalars, Translator};
use crate::pg::server;
use crate::pg::tree::{Expr, List, PlannerInfo, RelOptInfo, RestrictInfo, relation_memo};

/// The cost of evaluating a qual or an aggregate for one row of a vector, in units of
/// `cpu_operator_cost`. Evaluating it row by row takes about thirty times as long.
pub const VECTOR_SHARE: f64 = 1.0 / 30.0;

/// The quals of a table in the order in which they are evaluated.
///
/// It is the order of the planner's `order_qual_clauses`: by security level, then by cost, then as written. Within a
/// level, however, the engine's quals come first, because they cost far less than quals that PostgreSQL evaluates by
/// rows or [by values](crate::expressions::value_quals).
pub fn quals<'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>) -> Vec<RestrictInfo<'p>> {
    known(root, relation).0
}

/// Whether the engine evaluates all quals of a lanes table.
pub fn has_vector_quals<'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>) -> bool {
    known(root, relation).1
}

/// The quals in order, and whether the engine evaluates all of them. Each join with the table needs them, so they are
/// computed once and remembered as long as the relation exists.
fn known<'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>) -> (Vec<RestrictInfo<'p>>, bool) {
    relation_memo::get(relation).unwrap_or_else(|| {
        let quals = ordered(root, relation);
        let mut translator = Translator::new(Scalars::Unknown);
        let are_vectorised = quals
            .iter()
            .all(|qual| !qual.pseudoconstant() && translator.predicate(qual.clause()).is_ok());
        relation_memo::put(root, relation, &quals, are_vectorised);
        (quals, are_vectorised)
    })
}

fn ordered<'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>) -> Vec<RestrictInfo<'p>> {
    let mut translator = Translator::new(Scalars::Unknown);
    let mut quals: Vec<_> = relation
        .baserestrictinfo()
        .iter()
        .map(|qual| {
            let cost = root.qual_cost(qual).per_tuple;
            // A cheap leakproof qual may be evaluated before quals of lower levels.
            let is_promoted = qual.leakproof() && cost < 10.0 * server::cpu_operator_cost();
            let level = match is_promoted {
                true => 0,
                false => qual.security_level(),
            };
            let before = translator.by_value;
            let is_translated = translator.predicate(qual.clause()).is_ok();
            let is_slow = !is_translated || translator.by_value > before;
            ((level, is_slow), cost, qual)
        })
        .collect();
    quals.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    quals.into_iter().map(|(_, _, qual)| qual).collect()
}

/// The quals of a table in the order in which they are evaluated, without the quals that have no columns.
#[derive(Clone, Copy)]
pub struct Quals<'p> {
    /// The quals that are vectorised.
    pub pushed: List<'p, RestrictInfo<'p>>,
    /// The quals that are evaluated after them, row by row.
    pub kept: List<'p, RestrictInfo<'p>>,
}

/// The conditions of quals, without those that have no columns: `extract_actual_clauses`.
pub fn clauses<'p>(quals: List<'p, RestrictInfo<'p>>) -> List<'p, Expr<'p>> {
    let actual = quals.iter().filter(|qual| !qual.pseudoconstant());
    List::new(actual.map(|qual| qual.clause()))
}

/// Splits the quals of a table into those that can be vectorised and the others, whose reasons are noted.
pub fn split_quals<'p>(
    root: PlannerInfo<'p>,
    relation: RelOptInfo<'p>,
    translator: &mut Translator,
) -> Quals<'p> {
    let note = |reason: String| reasons::note(root, relation.relid(), About::Reading, reason);
    let (mut pushed, mut kept) = (List::EMPTY, List::EMPTY);
    let mut kept_level = u32::MAX;
    for qual in quals(root, relation) {
        if qual.pseudoconstant() {
            continue;
        }
        let level = qual.security_level();
        let before = translator.by_value;
        match translator.predicate(qual.clause()) {
            // PostgreSQL must not evaluate a qual, which may fail, for a row that an earlier qual rejects.
            Ok(_) if translator.by_value > before && !kept.is_empty() && !qual.leakproof() => {
                note("qual: evaluated by values, after one that is not vectorised".into());
                kept_level = kept_level.min(level);
            }
            // A leaky qual must not see a row that a kept qual of a lower level hides.
            Ok(_) if level <= kept_level || qual.leakproof() => {
                pushed.push(qual);
                continue;
            }
            Ok(_) => note("qual: not leakproof, behind a barrier".into()),
            Err(reason) => {
                note(format!("qual: {reason}"));
                kept_level = kept_level.min(level);
            }
        }
        kept.push(qual);
    }
    Quals { pushed, kept }
}
