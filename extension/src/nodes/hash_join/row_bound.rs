//! The bound of the joined rows that a query's ORDER BY and LIMIT can return, under execution.
//!
//! ```text
//! first pass   keys of the join, and the sort key: the n-th key, in order, among the rows that find a match: the bound
//! second pass  vectors whose zone has a key that is not after the bound ── rows with such a key ── joined
//! ```
//! Each row of the first pass leads to a joined row at least, so n of them are enough. Rows that tie with the bound are
//! all returned, since further sort keys may order them.
//!
//! The small sides must fit in one batch, since the bound holds for all of them, and must not return rows of their own,
//! which have no sort key.

use lanes_columnar::order::BestRows;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::selection::Selection;

use crate::expressions::sort_key;
use crate::expressions::translate::{Translation, Translator};
use crate::joins::by_key::stage::HashStage;
use crate::nodes::engine::row_limit::RowLimit;
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::VectorSource;

/// The bound of a [`RowLimit`] under execution.
pub struct RowBound {
    best: BestRows,
    rows: usize,
    /// The attributes that the sort key reads.
    attributes: Vec<usize>,
}

impl RowBound {
    /// Prepares the first pass.
    ///
    /// # Errors
    /// Why the engine cannot compute the sort key.
    pub fn begin(limit: &RowLimit<'_>, translator: &mut Translator) -> Translation<RowBound> {
        let before = translator.asked();
        let keys = sort_key::keys(translator, &[limit.key()])?;
        Ok(RowBound {
            best: BestRows::new(keys),
            rows: limit.rows(),
            attributes: translator.asked_since(&before).attributes(),
        })
    }

    /// Passes over the table, of which it reads these attributes, and finds the bound. Returns false if all rows are
    /// needed.
    ///
    /// # Errors
    /// The error that a key or a condition raises.
    pub fn find(
        &mut self,
        source: &mut VectorSource,
        filter: &mut Filter,
        stage: &mut HashStage,
        scalars: &[Option<Scalar>],
        mut looked_at: Vec<usize>,
    ) -> Evaluation<bool> {
        self.best.begin(self.rows, usize::MAX);
        looked_at.extend_from_slice(&self.attributes);
        looked_at.extend_from_slice(stage.looked_at());
        source.want_only(looked_at);
        source.rewind(self.best.is_backward());
        while source.advance(filter, scalars) {
            if !self.can_take(source, scalars) {
                source.skip();
                continue;
            }
            let Some(mut selection) = source.pass(filter, scalars)? else {
                continue;
            };
            source.fill(Some(stage.looked_at()));
            stage.find(&source.frame(scalars), &mut selection)?;
            source.fill(Some(&self.attributes));
            let first_row = source.row_number(source.place(0));
            self.best
                .offer(&source.frame(scalars), first_row, &selection, |_| true)?;
        }
        Ok(self.best.keep_ties())
    }

    /// Whether the current vector may have a row that is not after the bound.
    pub fn can_take(&mut self, source: &VectorSource, scalars: &[Option<Scalar>]) -> bool {
        let attribute = self.best.zone_attribute();
        let zone = attribute.and_then(|attribute| source.zone(attribute));
        zone.is_none_or(|zone| {
            let frame = source.frame(scalars);
            self.best.can_take(&frame, source.visible().0, &zone)
        })
    }

    /// Deselects the rows of the current vector that are after the bound.
    ///
    /// # Errors
    /// The error that the sort key raises.
    pub fn narrow(
        &mut self,
        source: &mut VectorSource,
        scalars: &[Option<Scalar>],
        selection: &mut Selection,
    ) -> Evaluation<()> {
        source.fill(Some(&self.attributes));
        *selection = self.best.candidates(&source.frame(scalars), selection)?;
        Ok(())
    }
}
