//! The series of one metric, for its view.
//!
//! A condition of the query on a label (`labels->>'job' = 'node'`, see [`conditions`]) is given to the function by the planner
//! ([`super::narrow`]), so that only series which meet it are looked up. The query checks the condition all the same.

use lanes_labels::{IdSet, METRIC_NAME, Matcher, Selector};
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::pg_sys::BuiltinOid::{INT4OID, TEXTOID};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::*;

use super::conditions;
use super::jsonb;
use super::packed;
use super::source::Index;
use crate::pg::statement::{Row, Statement};
use crate::pg::text;

static OF_METRIC: Statement = Statement::reading(
    c"
    SELECT first_id, last_id, labels FROM lanes.series_runs
     WHERE metric OPERATOR(pg_catalog.=) $1 ORDER BY first_id",
    &[TEXTOID],
);
static WITH_ID: Statement = Statement::reading(
    c"
    SELECT first_id, last_id, labels FROM lanes.series_runs
     WHERE first_id OPERATOR(pg_catalog.<=) $1 ORDER BY first_id DESC LIMIT 1",
    &[INT4OID],
);

/// Series up to which each is looked up by its id; all registrations of the metric are passed over for more.
const LOOKED_UP_MAX: u64 = 16;

/// A label set that becomes a value of type jsonb.
struct Labels(String);

impl IntoDatum for Labels {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(jsonb::of_label_set(&self.0))
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

// SAFETY: the datum that it becomes is of type jsonb.
unsafe impl SqlTranslatable for Labels {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Labels);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("jsonb"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("jsonb")));
}

// SAFETY: the datum is of the type that SQL declares.
unsafe impl BoxRet for Labels {
    unsafe fn box_into<'fcx>(self, call: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        match self.into_datum() {
            // SAFETY: the value is returned to the call.
            Some(value) => unsafe { call.return_raw_datum(value) },
            None => call.return_null(),
        }
    }
}

/// Ids and labels of the series of a metric: of those that meet the conditions, if there are some.
#[pg_extern(sql = false)]
fn metric_series(
    metric: Option<&[u8]>,
    conditions: Option<Array<&[u8]>>,
) -> TableIterator<'static, (name!(id, i32), name!(labels, Labels))> {
    let mut found = Vec::new();
    if let Some(metric) = metric {
        let wanted = conditions.map(|conditions| {
            let texts: Vec<Option<String>> = conditions.iter().map(|text| text.map(utf8)).collect();
            let (mut matchers, mut conditions) = conditions::read(&texts);
            matchers.push(Matcher::one_of(METRIC_NAME.to_owned(), vec![utf8(metric)]));
            Index::visible().select_meeting(&Selector { matchers }, &mut conditions)
        });
        each_of(metric, wanted.as_ref(), |id, labels| {
            found.push((id, Labels(labels.to_owned())));
        });
    }
    TableIterator::new(found)
}

fn utf8(text: &[u8]) -> String {
    String::from_utf8_lossy(&text::utf8_text(text)).into_owned()
}

/// Calls `visit` with each series of the metric that is wanted: id and label set.
fn each_of(metric: &[u8], wanted: Option<&IdSet>, mut visit: impl FnMut(i32, &str)) {
    if let Some(wanted) = wanted
        && wanted.len() <= LOOKED_UP_MAX
    {
        // Ids come in ascending order: those of one registration one after the other.
        let mut seen_to = 0;
        for id in wanted {
            if id > seen_to {
                WITH_ID.each_row(&[pg_sys::Datum::from(id as i32)], |row| {
                    seen_to = each_of_row(&row, Some(wanted), &mut visit).max(id);
                });
            }
        }
        return;
    }
    let Some(argument) = metric.into_datum() else {
        return;
    };
    OF_METRIC.each_row(&[argument], |row| {
        each_of_row(&row, wanted, &mut visit);
        pgrx::check_for_interrupts!();
    });
}

/// The series of one registration that are wanted; the last id of the registration.
fn each_of_row(row: &Row, wanted: Option<&IdSet>, visit: &mut impl FnMut(i32, &str)) -> u32 {
    let columns = (row.get::<i32>(1), row.get::<i32>(2));
    let (Some(first), Some(last)) = columns else {
        return 0;
    };
    let (first, last) = (first as u32, last as u32);
    if wanted.is_some_and(|wanted| wanted.range_cardinality(first..=last) == 0) {
        return last;
    }
    let mut id = first;
    packed::unpack(row.get(3).unwrap_or_default(), |labels| {
        if wanted.is_none_or(|wanted| wanted.contains(id)) {
            visit(id as i32, labels);
        }
        id += 1;
    });
    last
}
