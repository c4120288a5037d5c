//! Quals that zone maps can contradict or prove.

use std::cmp::Ordering;

use lanes_columnar::join::key_set::{KeySet, place};
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::{Predicate, flip};
use lanes_columnar::vector::value::Value;
use lanes_columnar::zone_map::{Bound, Zone};
use lanes_simd::Comparison;
use pgrx::pg_sys;

use crate::expressions::translate::{Translation, Translator};

/// The quals of a table, and what zone maps can tell of them.
pub struct Filter {
    /// In the order in which they are evaluated.
    pub quals: Vec<Predicate>,
    /// The attributes that each of them looks at.
    pub looked_at: Vec<Vec<usize>>,
    pub prunes: Vec<Prune>,
    /// The attributes that the quals look at.
    pub attributes: Vec<usize>,
    /// Those whose zones spare the quals a look at rows, beyond whole vectors that they contradict.
    pub zones_wanted: Vec<usize>,
    /// Integers of which a row has to have one, by attribute: the lists of `= ANY`.
    pub lists: Vec<(usize, KeySet)>,
    /// Values of which a row has to have one, by attribute: the keys of a join.
    pub key_sets: Vec<(usize, KeySet)>,
}

impl Filter {
    /// The first that `translator` translates, so that it knows of no other attributes.
    ///
    /// # Errors
    /// Why a qual is none of the engine's.
    ///
    /// # Safety
    /// Live quals.
    pub unsafe fn of(
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
            // SAFETY: the caller's promise.
            let qual = unsafe { translator.predicate(qual)? };
            Prune::of(&qual, Some(index), prunes);
            qual.zones_wanted(zones_wanted);
            if is_executed {
                add_lists(&qual, &translator.scalars, &mut filter.lists);
            }
            filter.quals.push(qual);
            let looked_at = translator.asked_since(&before);
            filter.looked_at.push(looked_at.attributes());
        }
        // Those that rule out most go first.
        prunes.sort_by_key(|prune| prune.comparison != Comparison::Equal);
        zones_wanted.sort_unstable();
        zones_wanted.dedup();
        filter.attributes = translator.attributes();
        Ok(filter)
    }

    /// The quals as comparisons, if that is what all of them are.
    pub fn comparisons(&self) -> Option<Vec<Prune>> {
        let of_qual = |index| {
            let mut prunes = self.prunes.iter();
            prunes.find(|prune| prune.qual == Some(index)).copied()
        };
        (0..self.quals.len()).map(of_qual).collect()
    }

    /// Whether zones tell of some rows that none passes.
    pub fn rules_out(
        &self,
        zone: &dyn Fn(usize) -> Option<Zone>,
        scalars: &[Option<Scalar>],
    ) -> bool {
        let mut prunes = self.prunes.iter();
        let mut sets = self.lists.iter().chain(&self.key_sets);
        prunes
            .any(|prune| zone(prune.attribute).is_some_and(|zone| prune.rules_out(&zone, scalars)))
            || sets.any(|(attribute, keys)| {
                zone(*attribute).is_some_and(|zone| keys.is_ruled_out(&zone))
            })
            || self.contradicts(zone)
    }

    /// Attributes whose values some rows may be sought by: those of lists and keys first, which rule out most.
    pub fn search_attributes(&self) -> impl Iterator<Item = usize> + '_ {
        let sets = self.lists.iter().chain(&self.key_sets);
        let of_sets = sets.map(|(attribute, _)| *attribute);
        of_sets.chain(self.required().map(|prune| prune.attribute))
    }

    /// The comparisons that have to hold.
    fn required(&self) -> impl Iterator<Item = &Prune> {
        self.prunes.iter().filter(|prune| !prune.proves_only)
    }

    /// Where the rows that may pass lie beside those of a zone of this attribute, in order of its values.
    pub fn seek(&self, attribute: usize, zone: &Zone, scalars: &[Option<Scalar>]) -> KeySearch {
        let of_attribute = self.required().filter(|prune| prune.attribute == attribute);
        let by_comparison = of_attribute.map(|prune| prune.seek(zone, scalars));
        let sets = self.lists.iter().chain(&self.key_sets);
        let of_attribute = sets.filter(|(of, _)| *of == attribute);
        let by_keys = of_attribute.map(|(_, keys)| seek_key(keys, zone));
        by_comparison
            .chain(by_keys)
            .max()
            .unwrap_or(KeySearch::Here)
    }

    /// Between which integers the values of this attribute lie that may pass, both included, of those of a zone.
    /// `None`: the zone has no integers, or no value of it may pass.
    pub fn span(
        &self,
        attribute: usize,
        zone: &Zone,
        scalars: &[Option<Scalar>],
    ) -> Option<(i64, i64)> {
        let (mut least, mut greatest) = (zone.minimum.signed()?, zone.maximum.signed()?);
        let sets = self.lists.iter().chain(&self.key_sets);
        for (_, keys) in sets.filter(|(of, _)| *of == attribute) {
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

    /// Whether zones contradict one of the quals that have their values themselves.
    pub fn contradicts(&self, zone: &dyn Fn(usize) -> Option<Zone>) -> bool {
        self.quals.iter().any(|qual| qual.is_contradicted(zone))
    }

    /// Whether zones may tell of a vector that no row passes.
    pub fn may_rule_out(&self) -> bool {
        self.required().next().is_some()
            || !self.zones_wanted.is_empty()
            || !self.lists.is_empty()
            || self.quals.iter().any(Predicate::may_be_contradicted)
    }
}

/// Where rows lie that may pass, beside those of a zone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KeySearch {
    /// Among them, as far as is known.
    Here,
    /// Above them: none has a value below the one at this [place](place()).
    From(i64),
    /// None has a value as great as theirs, or greater.
    Below,
}

/// Where the rows lie that have one of these keys.
fn seek_key(keys: &KeySet, zone: &Zone) -> KeySearch {
    let (Some(minimum), Some(maximum)) = (place(zone.minimum), place(zone.maximum)) else {
        return KeySearch::Here;
    };
    match keys.first_from(minimum) {
        None => KeySearch::Below,
        Some(key) if key > maximum => KeySearch::From(key),
        Some(_) => KeySearch::Here,
    }
}

/// Quals as the engine's.
///
/// # Errors
/// Why one of them is none.
///
/// # Safety
/// Live quals.
pub unsafe fn predicates(
    translator: &mut Translator,
    quals: impl Iterator<Item = *mut pg_sys::Node>,
) -> Translation<Vec<Predicate>> {
    // SAFETY: the caller's promise.
    quals
        .map(|qual| unsafe { translator.predicate(qual) })
        .collect()
}

/// Adds the lists of integers that have to hold one of a row's for a predicate to be TRUE.
fn add_lists(predicate: &Predicate, scalars: &[Option<Scalar>], lists: &mut Vec<(usize, KeySet)>) {
    match predicate {
        Predicate::And(parts) => {
            parts
                .iter()
                .for_each(|part| add_lists(part, scalars, lists));
        }
        Predicate::Member(value, members) if !value.number().is_float() => {
            let integers = members.elements(scalars).map(|scalar| scalar.0 as i64);
            if let Some(attribute) = widened_column(value) {
                lists.push((attribute, KeySet::of_integers(integers)));
            }
        }
        _ => {}
    }
}

/// The column of a value that is one, or one made wider: bounds of the one are bounds of the other.
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

/// A comparison of a column with a scalar that has to hold, or that is enough for a qual to hold.
#[derive(Clone, Copy, Debug)]
pub struct Prune {
    /// The column.
    pub attribute: usize,
    comparison: Comparison,
    number: NumberType,
    scalar: usize,
    /// The number of the qual that is this comparison and nothing else, or that it makes TRUE.
    pub qual: Option<usize>,
    /// Whether the qual may hold although it does not.
    proves_only: bool,
}

/// What a zone tells of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It holds for no row.
    NoRow,
    /// It holds for each row that is not NULL.
    EachRow,
    /// Nothing.
    Unknown,
}

impl Prune {
    /// The comparisons that have to hold for a predicate, the qual of that number, to be TRUE. Those that begin an OR are
    /// enough: where they hold for each row, no row meets the rest.
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
                    proves_only: false,
                });
            }
            Predicate::Or(parts) if qual.is_some() => {
                let before = found.len();
                if let Some(first @ Predicate::Compare(..)) = parts.first() {
                    Prune::of(first, qual, found);
                }
                let added = found[before..].iter_mut();
                added.for_each(|prune| prune.proves_only = true);
            }
            _ => {}
        }
    }

    /// Whether no row of a zone can pass.
    pub fn rules_out(&self, zone: &Zone, scalars: &[Option<Scalar>]) -> bool {
        self.verdict(zone, scalars) == Verdict::NoRow
    }

    /// The number that a column is compared with, as a bound.
    fn bound(&self, scalar: Scalar) -> Bound {
        match self.number {
            NumberType::F32 => Bound::Float(f64::from(f32::from_bits(scalar.0 as u32))),
            NumberType::F64 => Bound::Float(f64::from_bits(scalar.0)),
            _ => Bound::Signed(scalar.0 as i64),
        }
    }

    /// Where the rows lie that pass.
    fn seek(&self, zone: &Zone, scalars: &[Option<Scalar>]) -> KeySearch {
        let wanted = scalars[self.scalar].map(|scalar| self.bound(scalar));
        let Some((bound, at)) = wanted.and_then(|bound| Some((bound, place(bound)?))) else {
            return KeySearch::Here;
        };
        let is_above = zone.maximum.compare(bound).is_some_and(Ordering::is_lt);
        let is_below = zone.minimum.compare(bound).is_some_and(Ordering::is_gt);
        match self.comparison {
            Comparison::Equal | Comparison::Greater | Comparison::GreaterOrEqual if is_above => {
                KeySearch::From(at)
            }
            Comparison::Equal | Comparison::Less | Comparison::LessOrEqual if is_below => {
                KeySearch::Below
            }
            _ => KeySearch::Here,
        }
    }

    /// What a zone tells of its rows.
    pub fn verdict(&self, zone: &Zone, scalars: &[Option<Scalar>]) -> Verdict {
        match self.verdict_of_comparison(zone, scalars) {
            Verdict::NoRow if self.proves_only => Verdict::Unknown,
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
        // What is equal to each number between the bounds is one of them, and they are one.
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

    /// Whether each of so many sealed rows, of which these zones are stored, passes all of these comparisons.
    pub fn always_true(
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
