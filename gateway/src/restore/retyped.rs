//! Restores segments from before the type of a column was changed.
//!
//! ALTER TABLE rewrites such a table, and its old segments stay in the store for some time. Until
//! the new segments are in the store, they are the only source of its rows. An image contains the
//! width of its values but not their types. It is therefore restored into a table with the old
//! types, from which the rows are cast into the new table.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::entry_rows::Type;
use super::failure::Failure;
use super::plan::TablePlan;
use super::run::{Restore, SEGMENT};
use crate::deliver::describe::identifier;
use crate::objects::model::record::PartRecord;

/// Checks whether the values of all these types are represented alike, so that ALTER TABLE does not
/// rewrite the table. A type that no longer exists was renamed, or its values would not exist.
const LIE_ALIKE: &str = "SELECT coalesce(bool_and(t.was IS NULL OR t.now IS NULL OR t.was = t.now OR EXISTS (SELECT FROM pg_cast c \
     WHERE c.castsource = t.was AND c.casttarget = t.now AND c.castmethod = 'b')), true) \
     FROM (SELECT to_regtype(a)::oid, to_regtype(b)::oid FROM unnest($1::text[], $2::text[]) AS u (a, b)) AS t (was, now)";

/// The columns of such a part, named by position.
pub(super) struct Retyped {
    /// The columns in CREATE TABLE.
    columns: String,
    /// The columns to drop.
    dropped: Vec<String>,
    /// The columns of the current table.
    names: String,
    /// The values of these columns.
    values: String,
    schema: String,
    /// The types then, and now.
    types: (Vec<String>, Vec<String>),
}

impl Retyped {
    /// Returns `None` if the part's columns have the current types.
    pub(super) fn of(
        part: &PartRecord,
        table: &TablePlan,
        types: &HashMap<String, Type>,
    ) -> Option<Self> {
        let definition = &table.definition;
        let column_now = |place: usize| {
            let name = definition.columns.get(place)?.as_ref()?;
            Some((name, &types.get(name)?.sql))
        };
        let then_and_now = || {
            let then = part.types.iter().enumerate();
            then.filter_map(|(place, then)| Some((place, then.as_ref()?, column_now(place)?)))
        };
        if then_and_now().all(|(_, then, (_, now))| then == now) {
            return None;
        }
        let called = |place: usize| identifier(&(place + 1).to_string());
        // The image of a part may be older than some of the columns.
        let column_then = |place: usize, then: Option<&str>| match then {
            None => format!("{} boolean", called(place)),
            Some(then) => {
                let added = u16::try_from(place + 1).ok();
                let added = added.and_then(|place| table.added.get(&place));
                let default = added.map_or_else(String::new, |added| added.default_of(then));
                format!("{} {then}{default}", called(place))
            }
        };
        let list = |items: Vec<String>| items.join(", ");
        let places = part.types.iter().enumerate();
        Some(Self {
            columns: list(
                places
                    .clone()
                    .map(|(place, then)| column_then(place, then.as_deref()))
                    .collect(),
            ),
            dropped: places
                .filter(|(_, then)| then.is_none())
                .map(|(place, _)| called(place))
                .collect(),
            names: list(
                then_and_now()
                    .map(|(_, _, (name, _))| identifier(name))
                    .collect(),
            ),
            values: list(
                then_and_now()
                    .map(|(place, _, (_, now))| format!("{}::{now}", called(place)))
                    .collect(),
            ),
            schema: identifier(&definition.schema),
            types: then_and_now()
                .map(|(_, then, (_, now))| (then.clone(), now.clone()))
                .unzip(),
        })
    }

    /// Returns the part of CREATE TABLE after the name, for the part's images.
    fn make(&self) -> String {
        format!("({}) USING lanes", self.columns)
    }
}

impl Restore<'_> {
    /// Returns what a part's rows need before they are inserted; `None` if they can be inserted
    /// directly.
    pub(super) async fn retyping(
        &self,
        part: &PartRecord,
        table: &TablePlan,
        types: &HashMap<String, Type>,
    ) -> Result<Option<Retyped>, String> {
        let Some(retyped) = Retyped::of(part, table, types) else {
            return Ok(None);
        };
        let (then, now) = &retyped.types;
        let rows = self.query(LIE_ALIKE, &[then, now]).await?;
        let alike = rows.first().map(|row| row.try_get::<_, bool>(0));
        let alike = alike
            .transpose()
            .map_err(|error| Failure::of(LIE_ALIKE, &error))?;
        Ok(Some(retyped).filter(|_| alike == Some(false)))
    }

    /// Inserts the rows of an image. Returns their number.
    pub(super) async fn retyped(
        &self,
        part: &Retyped,
        table: &str,
        image: &[u8],
    ) -> Result<u64, String> {
        let waiting = self.waiting(&part.make(), &part.dropped).await?;
        let rows = self.insert(SEGMENT, &waiting, image).await?;
        self.execute("SAVEPOINT retyped").await?;
        let Retyped { names, values, .. } = part;
        let cast = format!("INSERT INTO {table} ({names}) SELECT {values} FROM {waiting}");
        match self.execute(&cast).await {
            Ok(()) => eprintln!(
                "{table}: {rows} rows are from before the type of a column was changed, and are cast"
            ),
            Err(failure) => {
                let reason = failure.of_statement()?;
                self.execute("ROLLBACK TO retyped").await?;
                let digest = xxh3_64(format!("{table} {}", part.make()).as_bytes());
                let name = format!("{}.lanes_unconverted_{digest:016x}", part.schema);
                self.execute(&format!(
                    "CREATE TABLE IF NOT EXISTS {name} USING lanes AS SELECT * FROM {waiting} WITH NO DATA; \
                     INSERT INTO {name} SELECT * FROM {waiting}"
                ))
                .await?;
                eprintln!(
                    "{table}: {rows} rows do not match the current types of its columns, and are in {name}, with columns named by their positions: {reason}"
                );
            }
        }
        self.execute("RELEASE retyped").await?;
        Ok(rows)
    }
}
