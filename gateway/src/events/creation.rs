//! Creation of a table for the first body that is sent to it, if `events.create_tables` allows it.
//!
//! | body | columns |
//! |---|---|
//! | FlatBuffers | the columns of the batch |
//! | Arrow | the columns of the schema |
//! | JSON | columns that accept every value of the body: see [`super::json`] |
//!
//! All columns are nullable. A malformed body creates nothing.

use std::sync::Arc;

use bytes::Bytes;
use lanes_wire::{BatchBuilder, BatchView};

use super::format::Format;
use super::write::{CreateTables, EventPath, EventRequest, Unfit, check_rows};
use super::{arrow, json};
use crate::deliver::{Sink, SinkError};
use crate::http::Refusal;
use crate::model::{ColumnKind, Room, Table};

type NewColumns = Vec<(String, ColumnKind)>;

impl<S: Sink> EventPath<S> {
    /// Finds the table of a request, or creates it.
    ///
    /// # Errors
    /// Returns the answer that replaces a 204.
    pub(super) async fn find_first_or_create(
        &self,
        request: &mut EventRequest<'_>,
    ) -> Result<Arc<Table>, Refusal> {
        let found = self.find(request.table, None).await;
        let may_create = self.settings.create_tables != CreateTables::Off;
        if !may_create || !matches!(found, Err(Refusal::NotFound(_))) {
            return found;
        }
        let columns = self.new_columns(request).await;
        let columns = columns.map_err(|unfit| unfit.refusal)?;
        if columns.is_empty() {
            return found;
        }
        let (schema, name) = self.schema_and_name(request.table);
        let is_unlogged = self.settings.create_tables == CreateTables::Unlogged;
        let columns: Vec<(&str, ColumnKind)> = columns
            .iter()
            .map(|(name, kind)| (name.as_str(), *kind))
            .collect();
        let created = self.catalogue.create(schema, name, &columns, is_unlogged);
        let refusal = match created.await {
            Ok(()) => None,
            Err(SinkError::Forbidden(reason)) => Some(Refusal::Forbidden(reason)),
            Err(SinkError::TableChanged(reason)) => Some(Refusal::NotFound(reason)),
            Err(SinkError::Refused(reason)) => Some(Refusal::BadRequest(reason)),
            Err(error) => return Err(Refusal::Busy(error.to_string())),
        };
        // Another request may have created it at the same moment.
        let found = self.find(request.table, Some(request.started)).await;
        found.map_err(|error| match (error, refusal) {
            (Refusal::NotFound(_), Some(refusal)) => refusal,
            (error, _) => error,
        })
    }

    async fn new_columns(&self, request: &mut EventRequest<'_>) -> Result<NewColumns, Unfit> {
        let (format, body) = (request.format, request.body.clone());
        let rows_max = self.settings.rows_max;
        let read = move |_: &mut Room| columns(format, &body, rows_max);
        self.decode_with(request, read).await
    }
}

/// Returns the columns of a table that accepts this body.
fn columns(format: Format, body: &Bytes, rows_max: usize) -> Result<NewColumns, Unfit> {
    let columns = match format {
        Format::FlatBuffers => {
            let view = BatchView::verify(body)?;
            check_rows(view.rows(), rows_max)?;
            let columns = view.columns().iter().map(|column| {
                let kind = ColumnKind::of_batch(column.column_type());
                (column.name().to_owned(), kind)
            });
            columns.collect()
        }
        Format::Arrow => arrow::columns(body, rows_max).map_err(|error| Unfit::body(&error))?,
        Format::Json => json::columns(body, rows_max).map_err(|error| Unfit::body(&error))?,
    };
    // PostgreSQL would truncate names that are too long for a batch, and the sender could not use
    // the table.
    let mut batch = BatchBuilder::new();
    for (name, kind) in &columns {
        batch
            .add_column(name, kind.natural())
            .map_err(|error| Unfit::body(&error))?;
    }
    Ok(columns)
}
