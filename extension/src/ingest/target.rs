//! The table that a batch goes into: may the caller, do the columns fit, and which way do the rows take.

use std::ffi::CStr;

use lanes_columnar::kind::LaneKind;
use lanes_wire::BatchView;
use pgrx::pg_sys;

use super::convert::Conversion;
use super::refusal::Refusal;
use crate::pg::{datum, names, ports};
use crate::table_am::routine;

/// An open table, locked as INSERT locks it. The lock stays until the transaction ends.
pub struct Target {
    relation: pg_sys::Relation,
}

impl Drop for Target {
    fn drop(&mut self) {
        // While an ERROR passes, the resource owner closes the table.
        if !std::thread::panicking() {
            // SAFETY: opened by `open`.
            unsafe { pg_sys::table_close(self.relation, pg_sys::NoLock as i32) }
        }
    }
}

/// A column of the batch and the attribute that it fills, in the batch's order.
pub struct Source {
    /// Index into the table's attributes, from 0.
    pub attribute: usize,
    pub conversion: Conversion,
}

/// What one attribute gets when lanes are filled directly.
pub enum Filling {
    /// The values of a batch column.
    Column {
        index: usize,
        conversion: Conversion,
    },
    /// One value for all rows, as the bytes that a column of its kind repeats; `None` = NULL.
    Constant(Option<Vec<u8>>),
}

/// How rows get into the table.
pub enum Way {
    /// Straight into lanes; one filling an attribute.
    Direct(Vec<Filling>),
    /// Through COPY.
    Copy { because: &'static str },
}

impl Target {
    /// Opens the table for inserting.
    pub fn open(table: pg_sys::Oid) -> Result<Target, Refusal> {
        // SAFETY: plain calls; the relation is used only if it could be opened.
        unsafe {
            let relation = pg_sys::try_relation_open(table, pg_sys::RowExclusiveLock as i32);
            if relation.is_null() {
                return Err(Refusal::NoTable { table });
            }
            let target = Target { relation };
            let form = (*target.relation).rd_rel;
            let name = c"lanes.append()".as_ptr();
            if (*form).relpersistence != pg_sys::RELPERSISTENCE_TEMP as std::ffi::c_char {
                pg_sys::PreventCommandDuringRecovery(name);
                if pg_sys::XactReadOnly {
                    pg_sys::PreventCommandIfReadOnly(name);
                }
            } else if !(*target.relation).rd_islocaltemp {
                return Err(Refusal::OtherTemporary {
                    table: target.name(),
                });
            }
            pg_sys::PreventCommandIfParallelMode(name);
            if !matches!(
                (*form).relkind as u8,
                pg_sys::RELKIND_RELATION
                    | pg_sys::RELKIND_PARTITIONED_TABLE
                    | pg_sys::RELKIND_FOREIGN_TABLE
            ) {
                return Err(Refusal::TargetKind {
                    table: target.name(),
                });
            }
            Ok(target)
        }
    }

    pub fn relation(&self) -> pg_sys::Relation {
        self.relation
    }

    /// The table's name, for messages.
    pub fn name(&self) -> String {
        // SAFETY: the relation is open.
        unsafe { ports::RelationGetRelationName(self.relation) }
    }

    fn descriptor(&self) -> pg_sys::TupleDesc {
        // SAFETY: the relation is open.
        unsafe { (*self.relation).rd_att }
    }

    fn attributes(&self) -> impl Iterator<Item = &pg_sys::FormData_pg_attribute> {
        let descriptor = self.descriptor();
        // SAFETY: the descriptor lives as long as the relation is open.
        unsafe {
            (0..(*descriptor).natts as usize)
                .map(move |index| ports::TupleDescAttr(descriptor, index))
        }
    }

    /// Matches the batch's columns to attributes by name, and checks what does not depend on the rows: privilege, policies,
    /// rules, types.
    pub fn sources(&self, batch: &BatchView<'_>) -> Result<Vec<Source>, Refusal> {
        let mut sources = Vec::with_capacity(batch.columns().len());
        for column in batch.columns() {
            let found = self.attributes().enumerate().find(|(_, attribute)| {
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
            // SAFETY: a catalog look-up of the attribute's type.
            let base = unsafe { pg_sys::getBaseType(attribute.atttypid) };
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

    /// Whether what is committed there outlives a crash.
    pub fn is_logged(&self) -> bool {
        // SAFETY: the relation is open.
        let persistence = unsafe { (*(*self.relation).rd_rel).relpersistence };
        persistence == pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char
    }

    /// INSERT on the whole table.
    pub fn check_table_privilege(&self) {
        self.check_privilege(&[]);
    }

    /// INSERT on the table, or on each named column.
    fn check_privilege(&self, sources: &[Source]) {
        // SAFETY: plain catalog questions; the last one raises the ERROR that INSERT would.
        unsafe {
            let (table, user) = ((*self.relation).rd_id, pg_sys::GetUserId());
            let mode = pg_sys::ACL_INSERT as pg_sys::AclMode;
            let ok = pg_sys::AclResult::ACLCHECK_OK;
            if pg_sys::pg_class_aclcheck(table, user, mode) == ok {
                return;
            }
            let may_all = sources.iter().all(|source| {
                pg_sys::pg_attribute_aclcheck(table, source.attribute as i16 + 1, user, mode) == ok
            });
            if sources.is_empty() || !may_all {
                let form = (*self.relation).rd_rel;
                pg_sys::aclcheck_error(
                    pg_sys::AclResult::ACLCHECK_NO_PRIV,
                    pg_sys::get_relkind_objtype((*form).relkind),
                    (*form).relname.data.as_ptr(),
                );
            }
        }
    }

    /// Neither way can apply row-level security or rules.
    fn check_policies(&self) -> Result<(), Refusal> {
        // SAFETY: the relation is open; its rules live as long.
        unsafe {
            let enabled = pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32;
            if pg_sys::check_enable_rls((*self.relation).rd_id, pg_sys::InvalidOid, false)
                == enabled
            {
                return Err(Refusal::RowSecurity { table: self.name() });
            }
            let rules = (*self.relation).rd_rules;
            if !rules.is_null() {
                let rules = std::slice::from_raw_parts((*rules).rules, (*rules).numLocks as usize);
                if rules
                    .iter()
                    .any(|rule| (**rule).event == pg_sys::CmdType::CMD_INSERT)
                {
                    return Err(Refusal::Rule { table: self.name() });
                }
            }
        }
        Ok(())
    }

    /// Decides the way of the rows; what it refuses, COPY would refuse too.
    pub fn way(&self, batch: &BatchView<'_>, sources: &[Source]) -> Result<Way, Refusal> {
        if let Some(because) = self.obstacle() {
            return Ok(Way::Copy { because });
        }
        let mut fillings: Vec<Option<Filling>> = Vec::new();
        fillings.resize_with(self.attributes().count(), || None);
        for (index, source) in sources.iter().enumerate() {
            // SAFETY: the index is one of the descriptor's.
            let attribute = unsafe { ports::TupleDescAttr(self.descriptor(), source.attribute) };
            // SAFETY: a catalog look-up of the attribute's type.
            let base = unsafe { pg_sys::getBaseType(attribute.atttypid) };
            if base != attribute.atttypid {
                return Ok(Way::Copy {
                    because: "a column is of a domain",
                });
            }
            if attribute.atttypmod != -1 {
                return Ok(Way::Copy {
                    because: "a column's type has a modifier",
                });
            }
            if source.conversion == Conversion::Input {
                return Ok(Way::Copy {
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
        // SAFETY: the descriptor is the open relation's.
        let kinds = unsafe { datum::kinds(self.descriptor()) };
        let mut complete = Vec::with_capacity(fillings.len());
        for ((index, attribute), filling) in self.attributes().enumerate().zip(fillings) {
            let filling = match filling {
                Some(filling) => filling,
                None if attribute.attisdropped => Filling::Constant(None),
                None => match self.default_value(index, attribute, kinds[index]) {
                    Ok(value) if value.is_none() && attribute.attnotnull => {
                        return Err(self.not_null(attribute, None));
                    }
                    Ok(value) => Filling::Constant(value),
                    Err(because) => return Ok(Way::Copy { because }),
                },
            };
            complete.push(filling);
        }
        Ok(Way::Direct(complete))
    }

    fn not_null(&self, attribute: &pg_sys::FormData_pg_attribute, row: Option<usize>) -> Refusal {
        Refusal::NotNull {
            table: self.name(),
            column: attribute_name(attribute).to_string_lossy().into_owned(),
            row,
        }
    }

    /// Why rows cannot go straight into lanes, if they cannot.
    fn obstacle(&self) -> Option<&'static str> {
        // SAFETY: the relation is open; what its entry points to lives as long.
        unsafe {
            let relation = &*self.relation;
            let form = &*relation.rd_rel;
            if form.relkind as u8 != pg_sys::RELKIND_RELATION {
                return Some("the target is partitioned or foreign");
            }
            if relation.rd_tableam != routine::routine() {
                return Some("the target is no lanes table");
            }
            if form.relispartition {
                return Some("the target is a partition");
            }
            if !relation.trigdesc.is_null() {
                let triggers = &*relation.trigdesc;
                if triggers.trig_insert_before_row
                    || triggers.trig_insert_after_row
                    || triggers.trig_insert_instead_row
                    || triggers.trig_insert_before_statement
                    || triggers.trig_insert_after_statement
                    || triggers.trig_insert_new_table
                {
                    return Some("the table has triggers or foreign keys");
                }
            }
            let constraints = (*relation.rd_att).constr;
            if !constraints.is_null() && (*constraints).num_check > 0 {
                return Some("the table has CHECK constraints");
            }
            if self
                .attributes()
                .any(|attribute| !attribute.attisdropped && attribute.attgenerated != 0)
            {
                return Some("the table has generated columns");
            }
            if form.relhasindex {
                return Some("the table has indexes");
            }
            None
        }
    }

    /// The value of a column in rows that lack it: its default, if that is one value for all of them.
    pub fn value_of_all(&self, index: usize, kind: LaneKind) -> Option<Vec<u8>> {
        // SAFETY: the index is one of the descriptor's.
        let attribute = unsafe { ports::TupleDescAttr(self.descriptor(), index) };
        if attribute.attisdropped || attribute.attgenerated != 0 {
            return None;
        }
        self.default_value(index, attribute, kind).ok().flatten()
    }

    /// The default of an attribute that the batch lacks, evaluated once for all rows. A default whose value differs from row to
    /// row is left to COPY.
    fn default_value(
        &self,
        index: usize,
        attribute: &pg_sys::FormData_pg_attribute,
        kind: LaneKind,
    ) -> Result<Option<Vec<u8>>, &'static str> {
        // SAFETY: the relation is open; the value is copied before the executor state that owns it goes.
        unsafe {
            let expression = pg_sys::build_column_default(self.relation, index as i32 + 1);
            if expression.is_null() {
                // A domain may refuse the NULL.
                return if pg_sys::getBaseType(attribute.atttypid) == attribute.atttypid {
                    Ok(None)
                } else {
                    Err("a column left out is of a domain")
                };
            }
            if pg_sys::contain_volatile_functions(expression) {
                return Err("a default differs from row to row");
            }
            let estate = pg_sys::CreateExecutorState();
            let context = pg_sys::MakePerTupleExprContext(estate);
            let state = pg_sys::ExecPrepareExpr(expression.cast(), estate);
            let mut is_null = false;
            let value = match (*state).evalfunc {
                Some(evaluate) => {
                    let value = pg_sys::ffi::pg_guard_ffi_boundary(|| {
                        evaluate(state, context, &mut is_null)
                    });
                    (!is_null).then(|| datum::to_bytes(value, attribute, kind))
                }
                None => None,
            };
            pg_sys::FreeExecutorState(estate);
            Ok(value)
        }
    }
}

fn attribute_name(attribute: &pg_sys::FormData_pg_attribute) -> &CStr {
    // SAFETY: a NameData is NUL-terminated.
    unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) }
}
