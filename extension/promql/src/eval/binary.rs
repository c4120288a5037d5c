//! Operators between scalars, and between a vector and a scalar.

use super::{Evaluator, Row, Sink};
use crate::ast::ValueType;
use crate::error::Error;
use crate::grid::Grid;
use crate::labels::Labels;
use crate::parser::{is_comparison, is_set_operator};
use crate::plan::{BinaryNode, Node};
use crate::sample::{ABSENT, is_absent};
use crate::token::TokenKind as K;

/// Whether an operator changes what a value measures, so that the name is dropped.
pub(super) fn changes_meaning(operator: K) -> bool {
    matches!(
        operator,
        K::Add | K::Sub | K::Div | K::Mul | K::Pow | K::Mod | K::Atan2
    )
}

/// The result of an arithmetic operator.
#[inline(always)]
pub(super) fn arithmetic(operator: K, left: f64, right: f64) -> f64 {
    match operator {
        K::Add => left + right,
        K::Sub => left - right,
        K::Mul => left * right,
        K::Div => left / right,
        K::Pow => left.powf(right),
        K::Mod => left % right,
        K::Atan2 => left.atan2(right),
        _ => ABSENT,
    }
}

/// Whether a comparison holds.
#[inline(always)]
pub(super) fn holds(operator: K, left: f64, right: f64) -> bool {
    match operator {
        K::EqualCompare => left == right,
        K::NotEqual => left != right,
        K::Greater => left > right,
        K::Less => left < right,
        K::GreaterEqual => left >= right,
        K::LessEqual => left <= right,
        _ => false,
    }
}

/// The value of an operator between two samples; the mark of a missing one if a comparison does
/// not hold. `kept` is the value of a comparison that holds.
#[inline(always)]
pub(super) fn applied(operator: K, returns_bool: bool, left: f64, right: f64, kept: f64) -> f64 {
    if !is_comparison(operator) {
        return arithmetic(operator, left, right);
    }
    match (holds(operator, left, right), returns_bool) {
        (holds, true) => f64::from(u8::from(holds)),
        (true, false) => kept,
        (false, false) => ABSENT,
    }
}

impl Evaluator<'_> {
    /// Evaluates an operator.
    pub(super) fn binary(
        &self,
        binary: &BinaryNode,
        node: &Node,
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let scalar = ValueType::Scalar;
        match (
            binary.left.value_type == scalar,
            binary.right.value_type == scalar,
        ) {
            (true, true) => self.scalar_binary(binary, grid, sink),
            (false, false) if is_set_operator(binary.operator) => {
                self.set_operator(binary, grid, sink)
            }
            (false, false) => self.vector_binary(binary, node, grid, sink),
            (_, right_is_scalar) => {
                self.vector_scalar_binary(binary, right_is_scalar, node, grid, sink)
            }
        }
    }

    fn scalar_binary(&self, binary: &BinaryNode, grid: Grid, sink: Sink<'_>) -> Result<(), Error> {
        let mut values = self.scalar(&binary.left, grid)?;
        let right = self.scalar(&binary.right, grid)?;
        for (left, right) in values.iter_mut().zip(right) {
            *left = applied(binary.operator, true, *left, right, *left);
        }
        sink(Row {
            labels: &Labels::empty(),
            drops_name: false,
            values: &mut values,
        })
    }

    fn vector_scalar_binary(
        &self,
        binary: &BinaryNode,
        right_is_scalar: bool,
        node: &Node,
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let (vector, scalar) = match right_is_scalar {
            true => (&binary.left, &binary.right),
            false => (&binary.right, &binary.left),
        };
        let column = self.scalar(scalar, grid)?;
        let (operator, returns_bool) = (binary.operator, binary.returns_bool);
        let drops_name = changes_meaning(operator) || returns_bool;
        let mut guard = self.guard();
        self.stream(vector, grid, &mut |row| {
            self.work(row.values.len() * 2)?;
            if self.note_trimming(operator, node) {
                return Ok(());
            }
            let values = row.values.iter_mut().zip(&column);
            for (value, other) in values.filter(|(value, _)| !is_absent(**value)) {
                let (left, right) = match right_is_scalar {
                    true => (*value, *other),
                    false => (*other, *value),
                };
                *value = applied(operator, returns_bool, left, right, *value);
            }
            let labels = match drops_name {
                true => self.renamed(row.labels),
                false => row.labels.clone(),
            };
            if drops_name {
                guard.admit(&labels, row.values)?;
            }
            sink(Row {
                labels: &labels,
                drops_name: row.drops_name || drops_name,
                values: row.values,
            })
        })
    }

    /// Notes that an operator trims histograms and not floats; returns whether it does.
    pub(super) fn note_trimming(&self, operator: K, node: &Node) -> bool {
        let is_trimming = matches!(operator, K::TrimLower | K::TrimUpper);
        if is_trimming {
            let name = operator.text().unwrap_or_default();
            self.annotations
                .borrow_mut()
                .incompatible_types(name, node.span);
        }
        is_trimming
    }
}
