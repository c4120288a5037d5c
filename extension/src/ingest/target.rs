//! The table that a batch is appended to: whether the caller may append, whether the columns fit,
//! and which route the rows take.

use lanes_columnar::kind::LaneKind;
use lanes_wire::BatchView;
use pgrx::pg_sys;

use super::convert::Conversion;
use super::distributed;
use super::refusal::Refusal;
use crate::pg::descriptor::{Attribute, Descriptor, attribute_name, base_type};
use crate::pg::table::{OpenTable, OpenedTable};
use crate::pg::{datum, names, table_catalog, transaction};

/// An open table, locked as INSERT locks it. The lock is kept until the transaction ends.
pub struct AppendTarget {
    opened: OpenedTable,
}

/// A column of the batch and the attribute that it fills, in the batch's order.
pub struct Source {
    /// Index into the table's attributes, from 0.
    pub attribute: usize,
    pub conversion: Conversion,
}

/// The source of one attribute when lanes are filled directly.
pub enum Filling {
    /// The values of a batch column.
    Column {
        index: usize,
        conversion: Conversion,
    },
    /// One value for all rows, in the bytes that a column of its kind repeats; `None`: NULL.
    Constant(Option<Vec<u8>>),
}

/// The route of rows into the table.
pub enum Route {
    /// Directly into lanes, with one filling for each attribute.
    Direct(Vec<Filling>),
    /// Through COPY.
    Copy { because: &'static str },
}

impl AppendTarget {
    /// Opens the table for inserting.
    pub fn open(table: pg_sys::Oid) -> Result<AppendTarget, Refusal> {
        let Some(opened) = OpenedTable::try_open(table, pg_sys::RowExclusiveLock) else {
            return Err(Refusal::NoTable { table });
        };
        let target = AppendTarget {
            opened: opened.keep_lock(),
        };
        let table = target.table();
        if table.is_temporary_elsewhere() {
            return Err(Refusal::OtherTemporary {
                table: table.name(),
            });
        }
        transaction::check_may_write(c"lanes.append()", table.uses_local_buffers());
        if !matches!(
            table.relkind(),
            pg_sys::RELKIND_RELATION
                | pg_sys::RELKIND_PARTITIONED_TABLE
                | pg_sys::RELKIND_FOREIGN_TABLE
        ) {
            return Err(Refusal::TargetKind {
                table: table.name(),
            });
        }
        if distributed::is_distributed(table.oid()) {
            return Err(Refusal::Distributed {
                table: table.name(),
            });
        }
        Ok(target)
    }

    /// The open table.
    pub fn table(&self) -> OpenTable<'_> {
        self.opened.get()
    }

    /// The table's name, for messages.
    pub fn name(&self) -> String {
        self.table().name()
    }

    fn descriptor(&self) -> Descriptor<'_> {
        self.table().descriptor()
    }

    /// Matches the batch's columns to attributes by name, and checks what does not depend on rows:
    /// privilege, policies, rules, types.
    pub fn sources(&self, batch: &BatchView<'_>) -> Result<Vec<Source>, Refusal> {
        let mut sources = Vec::with_capacity(batch.columns().len());
        for column in batch.columns() {
            let found = self
                .descriptor()
                .attributes()
                .enumerate()
                .find(|(_, attribute)| {
                    !attribute.attisdropped
                        && attribute_name(attribute).to_bytes() == column.name().as_bytes()
                });
            let (index, attribute) = found.ok_or_else(|| Refusal::UnknownColumn {
                table: self.name(),
                column: column.name().to_owned(),
            })?;
            let generated = |kind| Refusal::Generated {
                column: column.name().to_owned(),
                kind,
            };
            if attribute.attgenerated != 0 {
                return Err(generated("a generated column"));
            }
            if attribute.attidentity as u8 == pg_sys::ATTRIBUTE_IDENTITY_ALWAYS {
                return Err(generated("an identity column defined as GENERATED ALWAYS"));
            }
            let base = base_type(attribute.atttypid);
            let conversion = Conversion::find(column.column_type(), base).ok_or_else(|| {
                Refusal::TypeDiffers {
                    column: column.name().to_owned(),
                    column_type: names::type_name(attribute.atttypid),
                    found: column.column_type(),
                }
            })?;
            sources.push(Source {
                attribute: index,
                conversion,
            });
        }
        self.check_privilege(&sources);
        self.check_policies()?;
        Ok(sources)
    }

    /// Raises an ERROR unless the user may INSERT into the whole table.
    pub fn check_table_privilege(&self) {
        self.check_privilege(&[]);
    }

    /// Raises the ERROR of INSERT unless the user may insert into the table, or into each of the named columns.
    fn check_privilege(&self, sources: &[Source]) {
        let columns: Vec<usize> = sources.iter().map(|source| source.attribute).collect();
        table_catalog::check_privilege(self.table(), pg_sys::ACL_INSERT, &columns);
    }

    /// Refuses tables with row-level security or rules, which neither route applies.
    fn check_policies(&self) -> Result<(), Refusal> {
        let table = self.table();
        if table_catalog::applies_row_security(table.oid(), false) {
            return Err(Refusal::RowSecurity { table: self.name() });
        }
        if table.has_insert_rule() {
            return Err(Refusal::Rule { table: self.name() });
        }
        Ok(())
    }

    /// Decides the route of the rows. COPY would refuse everything that this refuses.
    pub fn route(&self, batch: &BatchView<'_>, sources: &[Source]) -> Result<Route, Refusal> {
        if let Some(because) = self.obstacle() {
            return Ok(Route::Copy { because });
        }
        let mut fillings: Vec<Option<Filling>> = Vec::new();
        fillings.resize_with(self.descriptor().attributes().count(), || None);
        for (index, source) in sources.iter().enumerate() {
            let attribute = self.descriptor().attribute(source.attribute);
            let base = base_type(attribute.atttypid);
            if base != attribute.atttypid {
                return Ok(Route::Copy {
                    because: "a column is of a domain",
                });
            }
            if attribute.atttypmod != -1 {
                return Ok(Route::Copy {
                    because: "a column's type has a modifier",
                });
            }
            if source.conversion == Conversion::Input {
                return Ok(Route::Copy {
                    because: "a column goes through its type's input function",
                });
            }
            let column = &batch.columns()[index];
            if attribute.attnotnull && column.null_count() > 0 {
                let row = (0..batch.rows()).find(|row| column.is_null(*row));
                return Err(self.not_null(attribute, row));
            }
            fillings[source.attribute] = Some(Filling::Column {
                index,
                conversion: source.conversion,
            });
        }
        let kinds = datum::kinds(self.descriptor());
        let mut complete = Vec::with_capacity(fillings.len());
        for ((index, attribute), filling) in
            self.descriptor().attributes().enumerate().zip(fillings)
        {
            let filling = match filling {
                Some(filling) => filling,
                None if attribute.attisdropped => Filling::Constant(None),
                None => match table_catalog::constant_default(self.table(), index, kinds[index]) {
                    Ok(value) if value.is_none() && attribute.attnotnull => {
                        return Err(self.not_null(attribute, None));
                    }
                    Ok(value) => Filling::Constant(value),
                    Err(because) => return Ok(Route::Copy { because }),
                },
            };
            complete.push(filling);
        }
        Ok(Route::Direct(complete))
    }

    fn not_null(&self, attribute: &Attribute, row: Option<usize>) -> Refusal {
        Refusal::NotNull {
            table: self.name(),
            column: attribute_name(attribute).to_string_lossy().into_owned(),
            row,
        }
    }

    /// Why rows cannot go directly into lanes; `None`: they can.
    fn obstacle(&self) -> Option<&'static str> {
        let table = self.table();
        let is_generated =
            |attribute: &Attribute| !attribute.attisdropped && attribute.attgenerated != 0;
        if table.relkind() != pg_sys::RELKIND_RELATION {
            Some("the target is partitioned or foreign")
        } else if !table.is_lanes() {
            Some("the target is no lanes table")
        } else if table.is_partition() {
            Some("the target is a partition")
        } else if table.fires_on_insert() {
            Some("the table has triggers or foreign keys")
        } else if table.descriptor().has_checks() {
            Some("the table has CHECK constraints")
        } else if table.descriptor().attributes().any(is_generated) {
            Some("the table has generated columns")
        } else {
            None
        }
    }

    /// The value of a column that the batch lacks: its default, if that is one value for all rows.
    pub fn value_of_all(&self, index: usize, kind: LaneKind) -> Option<Vec<u8>> {
        let attribute = self.descriptor().attribute(index);
        if attribute.attisdropped || attribute.attgenerated != 0 {
            return None;
        }
        table_catalog::constant_default(self.table(), index, kind)
            .ok()
            .flatten()
    }
}
