//! Values of columns that were added to tables with rows, given to those rows that come back without them.
//!
//! An image or an entry from before a column was added lacks it, and the table's definition tells the value only until
//! the table is written anew. So while the rows come, such a column has that value as its default, which is what
//! `lanes.restore_segment` and `lanes.append` give to rows without the column. The column's own default comes after them.

use std::collections::{BTreeMap, HashMap};

use super::entry_rows::Type;
use super::plan::TablePlan;
use super::run::Restore;
use crate::deliver::describe::identifier;
use crate::objects::model::record::AddedColumn;

/// The columns of one table that were added to it, by their places from 1 on.
pub type Added = BTreeMap<u16, AddedColumn>;

impl AddedColumn {
    /// The value as SQL writes it, of the type that the column had then.
    pub(super) fn literal(&self) -> String {
        let value = self.value.replace('\\', "\\\\").replace('\'', "''");
        format!("E'{value}'::{}", self.sql_type)
    }

    /// What follows a column of this type in a table for rows of an image; the statement that makes the table cannot
    /// fail by it, as every type can be cast by way of text.
    pub(super) fn default_of(&self, sql_type: &str) -> String {
        format!(" DEFAULT {}::text::{sql_type}", self.literal())
    }
}

impl TablePlan {
    /// Columns that are still there, by their names now, and what older rows have in them.
    pub(super) fn added(&self) -> impl Iterator<Item = (&str, &AddedColumn)> {
        self.added.iter().filter_map(|(place, column)| {
            let index = usize::from(*place).checked_sub(1)?;
            let name = self.definition.columns.get(index)?.as_deref()?;
            Some((name, column))
        })
    }
}

impl Restore<'_> {
    /// Before a table's rows. A value that has no cast to the type of now is left out, and that is told.
    pub(super) async fn give_added(
        &self,
        table: &TablePlan,
        types: &HashMap<String, Type>,
    ) -> Result<(), String> {
        for (name, column) in table.added() {
            let Some(now) = types.get(name) else {
                continue;
            };
            let (column, name) = (column.literal(), identifier(name));
            let default = format!("ALTER COLUMN {name} SET DEFAULT {column}::{}", now.sql);
            self.alter(table, &default).await?;
        }
        Ok(())
    }

    /// After them.
    pub(super) async fn take_added(&self, table: &TablePlan) -> Result<(), String> {
        for (name, _) in table.added() {
            let default = format!("ALTER COLUMN {} DROP DEFAULT", identifier(name));
            self.alter(table, &default).await?;
        }
        Ok(())
    }

    async fn alter(&self, table: &TablePlan, change: &str) -> Result<(), String> {
        let table = &table.definition.table;
        self.try_to(table, &format!("ALTER TABLE {table} {change}"))
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_literal_whatever_it_holds() {
        let column = AddedColumn {
            sql_type: "character varying(9)".to_owned(),
            value: r"a'b\c".to_owned(),
        };
        let literal = r"E'a''b\\c'::character varying(9)";
        assert_eq!(column.literal(), literal);
        assert_eq!(
            column.default_of("text"),
            format!(" DEFAULT {literal}::text::text")
        );
    }
}
