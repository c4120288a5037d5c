//! Operators between two vectors: which series find each other, and what their pairs are called.
//!
//! The labels that are compared make the signature of a row; its number is made once a row. Rows
//! of one signature may have values at different steps, so pairs are formed row by row and only
//! their values step by step. As in Prometheus, two rows of the side of one are an error where
//! both have a value at a step at which neither side is empty.

use super::binary::{applied, changes_meaning};
use super::guard::Guard;
use super::{Evaluator, Matrix, Row, Sink};
use crate::ast::{Cardinality, Matching};
use crate::error::{Error, execution};
use crate::grid::Grid;
use crate::labels::{Labels, LabelsBuilder, is_metadata};
use crate::plan::{BinaryNode, Node};
use crate::sample::{ABSENT, is_absent};
use crate::token::TokenKind as K;
use hashbrown::HashMap;

/// The labels of a row that are compared.
fn signature(labels: &Labels, matching: &Matching) -> Labels {
    let is_named = |name: &str| matching.labels.iter().any(|held| held == name);
    match matching.on {
        true => labels.filtered(is_named),
        false => labels.filtered(|name| !is_named(name) && !is_metadata(name)),
    }
}

/// The rows of a side, and the number of the signature of each.
struct Side<'m, 'e> {
    matrix: Matrix<'m, 'e>,
    signatures: Vec<usize>,
}

/// Both sides with the rows of the right one by signature.
struct Sides<'m, 'e> {
    left: Side<'m, 'e>,
    right: Side<'m, 'e>,
    right_rows: Vec<Vec<usize>>,
}

impl<'e> Evaluator<'e> {
    fn sides(
        &self,
        (left, right): (&Node, &Node),
        matching: &Matching,
        grid: Grid,
    ) -> Result<Sides<'_, 'e>, Error> {
        let (left, right) = (self.collect(left, grid)?, self.collect(right, grid)?);
        let mut numbers: HashMap<Labels, usize> = HashMap::new();
        let mut of = |matrix: &Matrix<'_, '_>| -> Vec<usize> {
            let series = matrix.series.iter();
            let number = |(labels, _): &(Labels, bool)| {
                let next = numbers.len();
                *numbers.entry(signature(labels, matching)).or_insert(next)
            };
            series.map(number).collect()
        };
        let (left_signatures, right_signatures) = (of(&left), of(&right));
        let mut right_rows = vec![Vec::new(); numbers.len()];
        for (place, number) in right_signatures.iter().enumerate() {
            right_rows[*number].push(place);
        }
        let (left, right) = (
            Side {
                matrix: left,
                signatures: left_signatures,
            },
            Side {
                matrix: right,
                signatures: right_signatures,
            },
        );
        Ok(Sides {
            left,
            right,
            right_rows,
        })
    }

    /// Evaluates `and`, `or` and `unless`.
    pub(super) fn set_operator(
        &self,
        binary: &BinaryNode,
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let sides = self.sides((&binary.left, &binary.right), &binary.matching, grid)?;
        let Sides {
            mut left,
            mut right,
            ..
        } = sides;
        let is_checked = !self.options.delayed_name_removal || grid.count > 1;
        let mut guard = Guard::new(self, is_checked && binary.operator == K::Or);
        let mut emit = |row: Row<'_>| {
            self.work(row.values.len() * 2)?;
            guard.admit(row.labels, row.values)?;
            sink(row)
        };
        let (masking, masked) = match binary.operator {
            K::Or => (&left, &mut right),
            _ => (&right, &mut left),
        };
        let number = masking.signatures.iter().chain(&masked.signatures).max();
        let mut present = vec![Vec::new(); number.map_or(0, |number| number + 1)];
        for (place, number) in masking.signatures.iter().enumerate() {
            let bits = crate::sample::presence(masking.matrix.row(place));
            let held: &mut Vec<u64> = &mut present[*number];
            held.resize(bits.len(), 0);
            held.iter_mut()
                .zip(bits)
                .for_each(|(held, more)| *held |= more);
        }
        let keeps_present = binary.operator == K::And;
        for (place, number) in masked.signatures.iter().enumerate() {
            let held = &present[*number];
            for (step, value) in masked.matrix.row_mut(place).iter_mut().enumerate() {
                let word = held.get(step / 64).copied().unwrap_or(0);
                if (word >> (step % 64) & 1 == 1) != keeps_present {
                    *value = ABSENT;
                }
            }
        }
        left.matrix.stream(&mut emit)?;
        match binary.operator {
            K::Or => right.matrix.stream(&mut emit),
            _ => Ok(()),
        }
    }

    /// Evaluates an operator between two vectors.
    pub(super) fn vector_binary(
        &self,
        binary: &BinaryNode,
        node: &Node,
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let is_swapped = binary.matching.cardinality == Cardinality::OneToMany;
        let nodes = match is_swapped {
            true => (&binary.right, &binary.left),
            false => (&binary.left, &binary.right),
        };
        let sides = self.sides(nodes, &binary.matching, grid)?;
        let (fill_left, fill_right) = (binary.matching.fill_left, binary.matching.fill_right);
        let (fill_many, fill_one) = match is_swapped {
            true => (fill_right, fill_left),
            false => (fill_left, fill_right),
        };
        let pairing = Pairing {
            evaluator: self,
            binary,
            node,
            is_swapped,
            fill_many,
            fill_one,
            active: active_steps(&sides, fill_many.is_some() || fill_one.is_some(), grid),
        };
        pairing.check_one_side(&sides)?;
        pairing.run(&sides, grid, sink)
    }
}

/// The steps at which a pair can be formed: neither side is empty, or one is filled.
fn active_steps(sides: &Sides<'_, '_>, fills: bool, grid: Grid) -> Vec<bool> {
    let present = |matrix: &Matrix<'_, '_>| {
        let mut any = vec![false; grid.count];
        for place in 0..matrix.len() {
            let row = matrix.row(place);
            any.iter_mut()
                .zip(row)
                .for_each(|(any, value)| *any |= !is_absent(*value));
        }
        any
    };
    let (left, right) = (present(&sides.left.matrix), present(&sides.right.matrix));
    let of = |(left, right): (bool, bool)| left && right || fills && (left || right);
    left.into_iter().zip(right).map(of).collect()
}

struct Pairing<'p, 'e> {
    evaluator: &'p Evaluator<'e>,
    binary: &'p BinaryNode,
    node: &'p Node,
    /// Whether the many side, which is on the left here, is on the right of the operator.
    is_swapped: bool,
    fill_many: Option<f64>,
    fill_one: Option<f64>,
    active: Vec<bool>,
}

impl Pairing<'_, '_> {
    /// Refuses two rows of one signature on the side of one.
    fn check_one_side(&self, sides: &Sides<'_, '_>) -> Result<(), Error> {
        let matrix = &sides.right.matrix;
        for rows in sides.right_rows.iter().filter(|rows| rows.len() > 1) {
            for (step, _) in self
                .active
                .iter()
                .enumerate()
                .filter(|(_, active)| **active)
            {
                let mut present = rows
                    .iter()
                    .filter(|row| !is_absent(matrix.value(**row, step)));
                let (Some(first), Some(second)) = (present.next(), present.next()) else {
                    continue;
                };
                let (first, second) = (&matrix.series[*first].0, &matrix.series[*second].0);
                let matching = &self.binary.matching;
                let group = signature(second, matching);
                let side = if self.is_swapped { "left" } else { "right" };
                let mut named = [first.to_string(), second.to_string()];
                named.sort_unstable();
                let [first, second] = named;
                return execution(format!(
                    "found duplicate series for the match group {group} on the {side} hand-side \
                     of the operation: [{first}, {second}];many-to-many matching not allowed: \
                     matching labels must be unique on one side"
                ));
            }
        }
        Ok(())
    }

    /// Forms all pairs and hands on their rows.
    fn run(&self, sides: &Sides<'_, '_>, grid: Grid, sink: Sink<'_>) -> Result<(), Error> {
        let mut writer = PairWriter::new(self, grid);
        let (many, one) = (&sides.left, &sides.right);
        for (place, number) in many.signatures.iter().enumerate() {
            let (labels, _) = &many.matrix.series[place];
            let left = many.matrix.row(place);
            for other in &sides.right_rows[*number] {
                let (other_labels, right) = (&one.matrix.series[*other].0, one.matrix.row(*other));
                writer.pair(*number, (labels, other_labels), sink, |step| {
                    (left[step], right[step])
                })?;
            }
            if let Some(fill) = self.fill_one {
                let rows = &sides.right_rows[*number];
                let other_labels = signature(labels, &self.binary.matching);
                let is_free = |step| {
                    rows.iter()
                        .all(|row| is_absent(one.matrix.value(*row, step)))
                };
                writer.pair(*number, (labels, &other_labels), sink, |step| {
                    (left[step], if is_free(step) { fill } else { ABSENT })
                })?;
            }
        }
        let Some(fill) = self.fill_many else {
            return Ok(());
        };
        for (place, number) in one.signatures.iter().enumerate() {
            let (labels, _) = &one.matrix.series[place];
            let right = one.matrix.row(place);
            let matched = writer.matched.get(number).cloned();
            let is_matched = |step: usize| matched.as_ref().is_some_and(|steps| steps[step]);
            let many_labels = signature(labels, &self.binary.matching);
            writer.pair(*number, (&many_labels, labels), sink, |step| {
                (if is_matched(step) { ABSENT } else { fill }, right[step])
            })?;
        }
        Ok(())
    }

    /// The labels of a pair: those of the many side, without what the operator drops.
    fn labels(&self, many: &Labels, one: &Labels) -> Labels {
        let matching = &self.binary.matching;
        let delays = self.evaluator.options.delayed_name_removal;
        let drops_name = !delays && self.binary.returns_bool;
        let mut labels = many.clone();
        if drops_name || changes_meaning(self.binary.operator) {
            labels = labels.without_metadata();
        }
        if matching.cardinality == Cardinality::OneToOne {
            let is_named = |name: &str| matching.labels.iter().any(|held| held == name);
            labels = labels.filtered(|name| is_named(name) == matching.on);
        }
        if matching.include.is_empty() {
            return labels;
        }
        let mut builder = LabelsBuilder::of(&labels);
        for name in &matching.include {
            builder.set(name, one.get(name));
        }
        builder.build()
    }
}

/// Writes the rows of pairs and refuses pairs that are not unique.
struct PairWriter<'p, 'e> {
    pairing: &'p Pairing<'p, 'e>,
    row: Vec<f64>,
    guard: Guard<'p, 'e>,
    /// The steps at which a signature has formed a pair.
    matched: HashMap<usize, Vec<bool>>,
    /// The labels of the pairs of a signature at a step, on many sides.
    grouped: HashMap<(usize, Labels), Vec<bool>>,
}

impl<'p, 'e> PairWriter<'p, 'e> {
    fn new(pairing: &'p Pairing<'p, 'e>, grid: Grid) -> PairWriter<'p, 'e> {
        let is_checked = !pairing.evaluator.options.delayed_name_removal || grid.count > 1;
        PairWriter {
            pairing,
            row: vec![ABSENT; grid.count],
            guard: Guard::new(pairing.evaluator, is_checked),
            matched: HashMap::new(),
            grouped: HashMap::new(),
        }
    }

    fn pair(
        &mut self,
        number: usize,
        (many, one): (&Labels, &Labels),
        sink: Sink<'_>,
        samples: impl Fn(usize) -> (f64, f64),
    ) -> Result<(), Error> {
        let Pairing {
            evaluator, binary, ..
        } = *self.pairing;
        evaluator.work(self.row.len() * 4)?;
        let (operator, returns_bool) = (binary.operator, binary.returns_bool);
        let is_pair = |step: usize| {
            let (left, right) = samples(step);
            self.pairing.active[step] && !is_absent(left) && !is_absent(right)
        };
        let pairs: Vec<bool> = (0..self.row.len()).map(is_pair).collect();
        if !pairs.contains(&true) {
            return Ok(());
        }
        if evaluator.note_trimming(operator, self.pairing.node) {
            return Ok(());
        }
        let labels = self.pairing.labels(many, one);
        self.note_pairs(number, &labels, &pairs)?;
        for (step, out) in self.row.iter_mut().enumerate() {
            *out = ABSENT;
            if pairs[step] {
                let (many, one) = samples(step);
                let (left, right) = if self.pairing.is_swapped {
                    (one, many)
                } else {
                    (many, one)
                };
                *out = applied(operator, returns_bool, left, right, left);
            }
        }
        if self.row.iter().all(|value| is_absent(*value)) {
            return Ok(());
        }
        self.guard.admit(&labels, &self.row)?;
        sink(Row {
            labels: &labels,
            drops_name: returns_bool,
            values: &mut self.row,
        })
    }

    /// Notes at which steps a signature has pairs; refuses those that it has twice.
    fn note_pairs(&mut self, number: usize, labels: &Labels, pairs: &[bool]) -> Result<(), Error> {
        let is_one_to_one = self.pairing.binary.matching.cardinality == Cardinality::OneToOne;
        let matched = self
            .matched
            .entry(number)
            .or_insert_with(|| vec![false; pairs.len()]);
        let is_twice = |held: &[bool]| held.iter().zip(pairs).any(|(held, pair)| *held && *pair);
        if is_one_to_one && is_twice(matched) {
            return execution(
                "multiple matches for labels: many-to-one matching must be explicit \
                 (group_left/group_right)",
            );
        }
        matched
            .iter_mut()
            .zip(pairs)
            .for_each(|(held, pair)| *held |= *pair);
        if is_one_to_one {
            return Ok(());
        }
        let key = (number, labels.clone());
        let held = self
            .grouped
            .entry(key)
            .or_insert_with(|| vec![false; pairs.len()]);
        if is_twice(held) {
            return execution(
                "multiple matches for labels: grouping labels must ensure unique matches",
            );
        }
        held.iter_mut()
            .zip(pairs)
            .for_each(|(held, pair)| *held |= *pair);
        Ok(())
    }
}
