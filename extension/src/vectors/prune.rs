//! The conditions of a scan, and what zone maps prove about them.

use std::cmp::Ordering;

use lanes_columnar::join::key_set::{KeySet, place};
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::{Predicate, flip};
use lanes_columnar::vector::value::Value;
use lanes_columnar::zone_map::{Bound, Zone};
use lanes_simd::Comparison;
use pgrx::pg_sys;

use crate::expressions::translate::{Translation, Translator};

/// The conditions of a scan of a table.
pub struct Filter {
    /// The conditions, in the order of their evaluation.
    pub quals: Vec<Predicate>,
    /// The attributes that each condition reads.
    pub looked_at: Vec<Vec<usize>>,
    /// The comparisons that zones can decide.
    pub prunes: Vec<Prune>,
    /// The attributes that all conditions read.
    pub attributes: Vec<usize>,
    /// The attributes whose zones can save a condition from reading rows, even in vectors that are not skipped.
    pub zones_wanted: Vec<usize>,
    /// The lists of `= ANY`.
    pub lists: Vec<List>,
    /// By attribute, the values one of which a row must contain: the keys of a join.
    pub key_sets: Vec<(usize, KeySet)>,
}

/// The integers one of which an attribute must have for a condition to be TRUE.
pub struct List {
    pub attribute: usize,
    pub keys: KeySet,
    /// The number of the condition, if it is TRUE for each of the integers.
    qual: Option<usize>,
}

impl Filter {
    /// Translates conditions of a live plan. They must be the first expressions of `translator`, so
    /// that it has recorded no other attributes.
    ///
    /// # Errors
    /// The reason why the engine cannot evaluate a condition.
    pub fn of(
        translator: &mut Translator,
        quals: impl Iterator<Item = *mut pg_sys::Node>,
    ) -> Translation<Filter> {
        let mut filter = Filter {
            quals: Vec::new(),
            looked_at: Vec::new(),
            prunes: Vec::new(),
            attributes: Vec::new(),
            zones_wanted: Vec::new(),
            lists: Vec::new(),
            key_sets: Vec::new(),
        };
        let (prunes, zones_wanted) = (&mut filter.prunes, &mut filter.zones_wanted);
        let is_executed = translator.is_evaluated();
        for (index, qual) in quals.enumerate() {
            let before = translator.asked();
            let qual = translator.predicate(crate::pg::tree::plan_node(qual.cast()))?;
            Prune::of(&qual, Some(index), prunes);
            qual.zones_wanted(zones_wanted);
            if is_executed {
                add_lists(&qual, Some(index), &translator.scalars, &mut filter.lists);
            }
            filter.quals.push(qual);
            let looked_at = translator.asked_since(&before);
            filter.looked_at.push(looked_at.attributes());
        }
        // Equalities rule out the most rows, so they are checked first.
        prunes.sort_by_key(|prune| prune.comparison != Comparison::Equal);
        zones_wanted.sort_unstable();
        zones_wanted.dedup();
        filter.attributes = translator.attributes();
        Ok(filter)
    }

    /// The conditions as comparisons; `None` if one of them is no comparison.
    pub fn comparisons(&self) -> Option<Vec<Prune>> {
        let of_qual = |index| {
            let mut prunes = self.prunes.iter();
            prunes.find(|prune| prune.qual == Some(index)).copied()
        };
        (0..self.quals.len()).map(of_qual).collect()
    }

    /// Whether zones prove that none of their rows passes.
    pub fn rules_out(
        &self,
        zone: &dyn Fn(usize) -> Option<Zone>,
        scalars: &[Option<Scalar>],
    ) -> bool {
        let mut prunes = self.prunes.iter();
        prunes
            .any(|prune| zone(prune.attribute).is_some_and(|zone| prune.rules_out(&zone, scalars)))
            || self.sets().any(|(attribute, keys)| {
                zone(attribute).is_some_and(|zone| keys.is_ruled_out(&zone))
            })
            || self.contradicts(zone)
    }

    /// The attributes by which rows can be searched. Attributes of lists and keys come first, as
    /// they rule out the most.
    pub fn search_attributes(&self) -> impl Iterator<Item = usize> + '_ {
        let of_sets = self.sets().map(|(attribute, _)| attribute);
        of_sets.chain(self.required().map(|prune| prune.attribute))
    }

    /// The attributes that must have one of some values, and these values.
    fn sets(&self) -> impl Iterator<Item = (usize, &KeySet)> {
        let lists = self.lists.iter().map(|list| (list.attribute, &list.keys));
        lists.chain(
            self.key_sets
                .iter()
                .map(|(attribute, keys)| (*attribute, keys)),
        )
    }

    /// A bit for each of the first 64 conditions that are TRUE of each row whose attribute has an integer from one to
    /// another.
    pub fn passed_by(
        &self,
        attribute: usize,
        (least, greatest): (i64, i64),
        scalars: &[Option<Scalar>],
    ) -> u64 {
        let equalities = self.required().filter(|prune| {
            let scalar = || scalars[prune.scalar].and_then(|scalar| prune.bound(scalar).signed());
            prune.attribute == attribute
                && prune.comparison == Comparison::Equal
                && least == greatest
                && scalar() == Some(least)
        });
        let has_values = |list: &&List| list.keys.has_all(least, greatest);
        let lists = self.lists.iter().filter(|list| list.attribute == attribute);
        let lists = lists.filter(has_values).map(|list| list.qual);
        let quals = equalities.map(|prune| prune.qual).chain(lists).flatten();
        quals
            .filter_map(|qual| 1_u64.checked_shl(qual as u32))
            .fold(0, |bits, bit| bits | bit)
    }

    /// The comparisons that each row must pass.
    fn required(&self) -> impl Iterator<Item = &Prune> {
        self.prunes.iter().filter(|prune| !prune.is_sufficient_only)
    }

    /// Where the rows that can pass lie relative to the rows of a zone, in the order of this attribute.
    pub fn seek(&self, attribute: usize, zone: &Zone, scalars: &[Option<Scalar>]) -> MatchPlace {
        let of_attribute = self.required().filter(|prune| prune.attribute == attribute);
        let by_comparison = of_attribute.map(|prune| prune.seek(zone, scalars));
        let of_attribute = self.sets().filter(|(of, _)| *of == attribute);
        let by_keys = of_attribute.map(|(_, keys)| seek_key(keys, zone));
        by_comparison
            .chain(by_keys)
            .max()
            .unwrap_or(MatchPlace::Here)
    }

    /// The least and the greatest integer of a zone of this attribute that can pass. `None`: the
    /// zone has no integers, or none that can pass.
    pub fn span(
        &self,
        attribute: usize,
        zone: &Zone,
        scalars: &[Option<Scalar>],
    ) -> Option<(i64, i64)> {
        let (mut least, mut greatest) = (zone.minimum.signed()?, zone.maximum.signed()?);
        for (_, keys) in self.sets().filter(|(of, _)| *of == attribute) {
            least = keys.first_from(least)?;
            greatest = keys.last_until(greatest)?;
        }
        let of_attribute = self.required().filter(|prune| prune.attribute == attribute);
        for prune in of_attribute {
            let Some(bound) = prune.bound(scalars[prune.scalar]?).signed() else {
                continue;
            };
            match prune.comparison {
                Comparison::Equal => {
                    (least, greatest) = (least.max(bound), greatest.min(bound));
                }
                Comparison::Greater | Comparison::GreaterOrEqual => least = least.max(bound),
                Comparison::Less | Comparison::LessOrEqual => greatest = greatest.min(bound),
                Comparison::NotEqual => {}
            }
        }
        (least <= greatest).then_some((least, greatest))
    }

    /// Whether zones contradict a condition that compares with values of its own.
    pub fn contradicts(&self, zone: &dyn Fn(usize) -> Option<Zone>) -> bool {
        self.quals.iter().any(|qual| qual.is_contradicted(zone))
    }

    /// Whether zones can rule out a vector.
    pub fn may_rule_out(&self) -> bool {
        self.required().next().is_some()
            || !self.zones_wanted.is_empty()
            || !self.lists.is_empty()
            || self.quals.iter().any(Predicate::may_be_contradicted)
    }
}

/// Where the rows that can pass lie relative to the rows of a zone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MatchPlace {
    /// Possibly among them.
    Here,
    /// Above them: all have at least the value at this [place](place()).
    From(i64),
    /// Below them: all have lesser values.
    Below,
}

/// Where the rows lie that contain one of these keys.
fn seek_key(keys: &KeySet, zone: &Zone) -> MatchPlace {
    let (Some(minimum), Some(maximum)) = (place(zone.minimum), place(zone.maximum)) else {
        return MatchPlace::Here;
    };
    match keys.first_from(minimum) {
        None => MatchPlace::Below,
        Some(key) if key > maximum => MatchPlace::From(key),
        Some(_) => MatchPlace::Here,
    }
}

/// Translates conditions of a live plan.
///
/// # Errors
/// The reason why the engine cannot evaluate a condition.
pub fn predicates(
    translator: &mut Translator,
    quals: impl Iterator<Item = *mut pg_sys::Node>,
) -> Translation<Vec<Predicate>> {
    quals
        .map(|qual| translator.predicate(crate::pg::tree::plan_node(qual.cast())))
        .collect()
}

/// Adds the lists of integers one of which a row must contain for a predicate to be TRUE. `qual` is the number of the
/// condition that is this predicate.
fn add_lists(
    predicate: &Predicate,
    qual: Option<usize>,
    scalars: &[Option<Scalar>],
    lists: &mut Vec<List>,
) {
    match predicate {
        Predicate::And(parts) => {
            parts
                .iter()
                .for_each(|part| add_lists(part, None, scalars, lists));
        }
        Predicate::Member(value, members) if !value.number().is_float() => {
            let integers = members.elements(scalars).map(|scalar| scalar.0 as i64);
            if let Some(attribute) = widened_column(value) {
                lists.push(List {
                    attribute,
                    keys: KeySet::of_integers(integers),
                    qual,
                });
            }
        }
        _ => {}
    }
}

/// The column that a value is, or that it widens: bounds of the column are bounds of the value.
fn widened_column(value: &Value) -> Option<usize> {
    match value {
        Value::Column(_, attribute) => Some(*attribute),
        Value::Convert(to, inner, _) => {
            let (from, to) = (inner.number(), *to);
            let exact = from.is_float() == to.is_float() && from.width() <= to.width();
            inner.column().filter(|_| exact)
        }
        _ => None,
    }
}

/// A comparison of a column with a scalar. Either each row must pass it, or a row that passes it passes the condition.
#[derive(Clone, Copy, Debug)]
pub struct Prune {
    /// The column's attribute.
    pub attribute: usize,
    comparison: Comparison,
    number: NumberType,
    scalar: usize,
    /// The number of the condition that is this comparison alone, or that it makes TRUE.
    pub qual: Option<usize>,
    /// Whether a row can pass the condition without passing the comparison.
    is_sufficient_only: bool,
}

/// What a zone proves about a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No row passes.
    NoRow,
    /// Each row that is not NULL passes.
    EachRow,
    /// Some rows may pass.
    Unknown,
}

impl Prune {
    /// Adds the comparisons that must hold for a predicate to be TRUE. The comparison that begins an OR is sufficient:
    /// where it holds for each row, the rest of the OR is never evaluated.
    fn of(predicate: &Predicate, qual: Option<usize>, found: &mut Vec<Prune>) {
        match predicate {
            Predicate::And(parts) => parts.iter().for_each(|part| Prune::of(part, None, found)),
            Predicate::Compare(comparison, left, right) => {
                let (attribute, number, scalar, comparison) =
                    match (widened_column(left), widened_column(right), left, right) {
                        (Some(attribute), _, _, Value::Scalar(number, scalar)) => {
                            (attribute, *number, *scalar, *comparison)
                        }
                        (_, Some(attribute), Value::Scalar(number, scalar), _) => {
                            (attribute, *number, *scalar, flip(*comparison))
                        }
                        _ => return,
                    };
                found.push(Prune {
                    attribute,
                    comparison,
                    number,
                    scalar,
                    qual,
                    is_sufficient_only: false,
                });
            }
            Predicate::Or(parts) if qual.is_some() => {
                let before = found.len();
                if let Some(first @ Predicate::Compare(..)) = parts.first() {
                    Prune::of(first, qual, found);
                }
                let added = found[before..].iter_mut();
                added.for_each(|prune| prune.is_sufficient_only = true);
            }
            _ => {}
        }
    }

    /// Whether a zone proves that none of its rows passes.
    pub fn rules_out(&self, zone: &Zone, scalars: &[Option<Scalar>]) -> bool {
        self.verdict(zone, scalars) == Verdict::NoRow
    }

    /// The number on the other side of the comparison, as a bound.
    fn bound(&self, scalar: Scalar) -> Bound {
        match self.number {
            NumberType::F32 => Bound::Float(f64::from(f32::from_bits(scalar.0 as u32))),
            NumberType::F64 => Bound::Float(f64::from_bits(scalar.0)),
            _ => Bound::Signed(scalar.0 as i64),
        }
    }

    /// Where the rows lie that pass.
    fn seek(&self, zone: &Zone, scalars: &[Option<Scalar>]) -> MatchPlace {
        let bound = scalars[self.scalar].map(|scalar| self.bound(scalar));
        let Some((bound, at)) = bound.and_then(|bound| Some((bound, place(bound)?))) else {
            return MatchPlace::Here;
        };
        let is_above = zone.maximum.compare(bound).is_some_and(Ordering::is_lt);
        let is_below = zone.minimum.compare(bound).is_some_and(Ordering::is_gt);
        match self.comparison {
            Comparison::Equal | Comparison::Greater | Comparison::GreaterOrEqual if is_above => {
                MatchPlace::From(at)
            }
            Comparison::Equal | Comparison::Less | Comparison::LessOrEqual if is_below => {
                MatchPlace::Below
            }
            _ => MatchPlace::Here,
        }
    }

    /// What a zone proves about the comparison.
    pub fn verdict(&self, zone: &Zone, scalars: &[Option<Scalar>]) -> Verdict {
        match self.verdict_of_comparison(zone, scalars) {
            Verdict::NoRow if self.is_sufficient_only => Verdict::Unknown,
            verdict => verdict,
        }
    }

    fn verdict_of_comparison(&self, zone: &Zone, scalars: &[Option<Scalar>]) -> Verdict {
        if zone.non_null == 0 {
            return Verdict::NoRow;
        }
        let Some(scalar) = scalars[self.scalar] else {
            // A comparison with NULL is never TRUE.
            return Verdict::NoRow;
        };
        let wanted = self.bound(scalar);
        let (Some(minimum), Some(maximum)) =
            (zone.minimum.compare(wanted), zone.maximum.compare(wanted))
        else {
            return Verdict::Unknown;
        };
        // If both bounds equal the scalar, so does each row.
        let is_equal = minimum.is_eq() && maximum.is_eq();
        let is_beyond = minimum.is_gt() || maximum.is_lt();
        let (holds_for_none, holds_for_each) = match self.comparison {
            Comparison::Equal => (is_beyond, is_equal),
            Comparison::NotEqual => (is_equal, is_beyond),
            Comparison::Less => (minimum.is_ge(), maximum.is_lt()),
            Comparison::LessOrEqual => (minimum.is_gt(), maximum.is_le()),
            Comparison::Greater => (maximum.is_le(), minimum.is_gt()),
            Comparison::GreaterOrEqual => (maximum.is_lt(), minimum.is_ge()),
        };
        match (holds_for_none, holds_for_each) {
            (true, _) => Verdict::NoRow,
            (_, true) => Verdict::EachRow,
            _ => Verdict::Unknown,
        }
    }

    /// Whether stored zones prove that each of this many sealed rows passes all of these comparisons.
    pub fn all_pass(
        comparisons: &[Prune],
        rows: u32,
        zones: &dyn Fn(usize) -> Option<Zone>,
        scalars: &[Option<Scalar>],
    ) -> bool {
        comparisons.iter().all(|comparison| {
            zones(comparison.attribute).is_some_and(|zone| {
                zone.non_null == rows && comparison.verdict(&zone, scalars) == Verdict::EachRow
            })
        })
    }
}
