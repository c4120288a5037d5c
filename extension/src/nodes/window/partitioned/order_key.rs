//! The keys that the rows of a partition are ordered by.
//!
//! Numbers are keys themselves. Texts have numbers in order of appearance until all rows were read. Then the distinct
//! texts are sorted, and the place of each takes the place of its number, also that of NULL.

use lanes_columnar::aggregate::{Aggregation, Grouping, Key};
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::over::arrange::SortKey;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::operands;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};

use super::group_ranks::{self, KeyOrder};
use super::plan::DirectedKey;
use crate::expressions::aggregate_call::KeyShape;
use crate::expressions::translate::{Translation, Translator, text_column};
use crate::pg::catalog;

/// Where the values of a key come from.
enum Source {
    Number(Value),
    Text(Box<Texts>),
}

/// The distinct texts of a key.
struct Texts {
    values: Aggregation,
    order: KeyOrder,
    ids: Vec<u32>,
}

/// A key, with its values for the rows that were read.
pub struct OrderKey {
    source: Source,
    is_descending: bool,
    nulls_first: bool,
    key: SortKey,
}

impl OrderKey {
    /// A key without rows.
    ///
    /// # Errors
    /// The engine cannot order rows by it.
    pub fn of(translator: &mut Translator, directed: &DirectedKey<'_>) -> Translation<OrderKey> {
        let expression = directed.expression;
        let (is_descending, nulls_first) = (directed.is_descending, directed.nulls_first);
        let source = match text_column(expression.stripped()) {
            Some(column) => {
                let collation = expression.collation();
                if !catalog::is_deterministic(collation) {
                    return Err("ORDER BY: a nondeterministic collation".into());
                }
                let mut values =
                    Aggregation::new(vec![Key::Text(translator.attribute(column)?)], Vec::new());
                values.share_key_numbers([0]);
                let order = KeyOrder {
                    shape: KeyShape::Text,
                    collation,
                    is_descending,
                    nulls_first,
                };
                Source::Text(Box::new(Texts {
                    values,
                    order,
                    ids: vec![0; VECTOR_ROWS],
                }))
            }
            None => {
                let value = translator.value(expression);
                Source::Number(value.map_err(|reason| format!("ORDER BY: {reason}"))?)
            }
        };
        Ok(OrderKey {
            source,
            is_descending,
            nulls_first,
            key: SortKey::new(nulls_first, is_descending),
        })
    }

    /// The numbers of a vector, if the key is a number.
    ///
    /// # Errors
    /// The error that an expression raises.
    pub fn numbers(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
    ) -> Evaluation<Option<(NumberType, Operand)>> {
        match &mut self.source {
            Source::Number(value) => Ok(Some((value.number(), value.evaluate(frame, rows)?))),
            Source::Text(_) => Ok(None),
        }
    }

    /// Adds the selected rows of a vector.
    ///
    /// # Errors
    /// The error that an expression raises.
    pub fn add(&mut self, frame: &Frame<'_>, rows: &Selection) -> Evaluation<()> {
        let column = &mut self.key.keys;
        match &mut self.source {
            Source::Number(value) => {
                let operand = value.evaluate(frame, rows)?;
                let number = value.number();
                operands::append_order_keys(number, operand, rows, self.is_descending, column);
            }
            Source::Text(texts) if !rows.is_empty() => {
                let ids = &mut texts.ids[..];
                match texts.values.grouping(frame, rows)?.0 {
                    Grouping::One(one) => ids[..frame.rows].fill(one),
                    Grouping::Stretches(stretches) => stretches.spread(ids),
                    Grouping::Each(each) => ids[..frame.rows].copy_from_slice(&each[..frame.rows]),
                }
                column.reserve(rows.count());
                rows.for_each(|row| column.push_value(ids[row].into()));
            }
            Source::Text(_) => {}
        }
        Ok(())
    }

    /// Makes room for so many rows.
    pub fn expect(&mut self, rows: usize) {
        self.key.keys.reserve(rows);
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let of_texts = match &self.source {
            Source::Number(_) => 0,
            Source::Text(texts) => texts.values.bytes(),
        };
        of_texts + self.key.keys.bytes()
    }

    /// Forgets the rows that were read.
    pub fn clear(&mut self) {
        self.key = SortKey::new(self.nulls_first, self.is_descending);
    }

    /// Takes the keys of the rows that were read.
    pub fn take(&mut self) -> SortKey {
        let empty = SortKey::new(self.nulls_first, self.is_descending);
        let mut key = std::mem::replace(&mut self.key, empty);
        if let Source::Text(texts) = &self.source {
            let ranks = group_ranks::value_ranks(&texts.values, 0, texts.order);
            key.keys.replace(|id| ranks[id as usize].into());
        }
        key
    }
}
