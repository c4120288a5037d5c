//! The statement for all queries of a request, and its rows.

use std::error::Error;
use std::time::SystemTime;

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::super::answer::read;
use super::super::failure::Failure;
use super::super::parameters::first_and_until;
use super::request::ReadQuery;
use super::series::{Sample, SeriesHead, SeriesRow};

/// The samples of all queries, in the order of the queries, of the labels of the series and of the
/// times. Before the samples of a series comes a row with its labels: names and values in turn, as
/// Prometheus sorts them. Each run of `lanes.series_runs` is unpacked once, however many of its
/// series are selected. PostgreSQL sorts in `work_mem`, and on disk beyond it.
pub const SAMPLES: &str = "WITH asked AS MATERIALIZED ( \
       SELECT q.query, q.selector, q.first, q.until \
         FROM unnest($1::pg_catalog.int4[], $2::pg_catalog.text[], $3::pg_catalog.timestamptz[], \
                                $4::pg_catalog.timestamptz[]) AS q (query, selector, first, until)), \
     found AS ( \
       SELECT a.query, i.id, (SELECT pg_catalog.max(n.first_id) FROM lanes.series_runs n WHERE n.first_id <= i.id) AS \
           first_id \
         FROM asked AS a CROSS JOIN LATERAL lanes.series_ids(a.selector) AS i (id)), \
     labelled AS MATERIALIZED ( \
       SELECT chosen.query, chosen.id, \
              coalesce((SELECT pg_catalog.array_agg(u.part ORDER BY l.name COLLATE \"C\", u.place) \
                          FROM (SELECT '__name__' AS name, r.metric AS value WHERE r.metric <> '' \
                                 UNION ALL \
                                SELECT j.key, j.value FROM pg_catalog.json_each_text(r.label_sets[chosen.id - \
                                    r.first_id + 1]::pg_catalog.json) AS j) AS l \
                         CROSS JOIN LATERAL pg_catalog.unnest(ARRAY[l.name, l.value]) WITH ORDINALITY AS u (part, \
                             place)), '{}') AS labels \
         FROM (SELECT f.first_id, pg_catalog.array_agg(f.id) AS ids, pg_catalog.array_agg(f.query) AS queries FROM \
             found AS f GROUP BY f.first_id) AS wanted \
        CROSS JOIN LATERAL (SELECT n.first_id, n.last_id, n.metric, lanes.label_sets(n.labels) AS label_sets \
                              FROM lanes.series_runs n WHERE n.first_id = wanted.first_id OFFSET 0) AS r \
        CROSS JOIN LATERAL unnest(wanted.ids, wanted.queries) AS chosen (id, query) \
        WHERE chosen.id <= r.last_id), \
     ranked AS MATERIALIZED ( \
       SELECT pg_catalog.row_number() OVER (ORDER BY l.query, l.labels COLLATE \"C\") AS rank, l.query, l.id, \
           l.labels, a.first, a.until \
         FROM labelled AS l JOIN asked AS a ON a.query = l.query) \
     SELECT o.query, o.labels, o.ts, o.value \
       FROM (SELECT r.rank, NULL::pg_catalog.int4 AS query, NULL::pg_catalog.text[] AS labels, m.ts, m.value \
               FROM ranked AS r JOIN lanes.samples AS m ON m.series = r.id AND m.ts >= r.first AND m.ts < r.until \
              WHERE m.series = ANY (ARRAY (SELECT DISTINCT r.id FROM ranked AS r)) AND m.ts >= $5 AND m.ts < $6 \
              UNION ALL \
             SELECT r.rank, r.query, r.labels, NULL, NULL FROM ranked AS r) AS o \
      ORDER BY o.rank, o.ts NULLS FIRST";

/// The parameters of the statement.
#[derive(Debug, Default)]
pub struct Parameters {
    /// The places of the queries in the request.
    pub places: Vec<i32>,
    /// The selectors.
    pub selectors: Vec<String>,
    /// The first times.
    pub firsts: Vec<SystemTime>,
    /// The times before which the samples are.
    pub untils: Vec<SystemTime>,
}

impl Parameters {
    /// Returns the parameters for queries. A query whose last time is before its first has no
    /// samples, and is left out.
    pub fn of(queries: Vec<ReadQuery>) -> Self {
        let mut parameters = Self::default();
        for (place, query) in (0..).zip(queries) {
            if let Some((first, until)) = first_and_until(query.start, query.end) {
                parameters.places.push(place);
                parameters.selectors.push(query.selector);
                parameters.firsts.push(first);
                parameters.untils.push(until);
            }
        }
        parameters
    }

    /// Returns the first time of all queries, and the time before which all samples are; `None` if
    /// no query has samples.
    pub fn bounds(&self) -> Option<(SystemTime, SystemTime)> {
        let first = self.firsts.iter().min()?;
        let until = self.untils.iter().max()?;
        Some((*first, *until))
    }
}

/// Reads a row of the statement.
///
/// # Errors
/// Returns a failure if a column has another type.
pub fn series_row(row: &Row) -> Result<SeriesRow, Failure> {
    if let Some(Millis(time)) = read(row, 2)? {
        let value = read(row, 3)?;
        return Ok(SeriesRow::Sample(Sample { time, value }));
    }
    let query: i32 = read(row, 0)?;
    let labels: Vec<&str> = read(row, 1)?;
    let query = usize::try_from(query).unwrap_or_default();
    Ok(SeriesRow::Head(SeriesHead::new(query, &labels)))
}

/// A time in milliseconds since 1970, rounded down.
#[derive(Debug, PartialEq)]
struct Millis(i64);

/// PostgreSQL counts microseconds since 2000.
const YEAR_2000_MILLIS: i64 = 946_684_800_000;

impl<'a> FromSql<'a> for Millis {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(Self(micros.div_euclid(1000) + YEAR_2000_MILLIS))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TIMESTAMPTZ
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn query(start: i64, end: i64) -> ReadQuery {
        ReadQuery {
            selector: format!("{start}"),
            start,
            end,
        }
    }

    #[test]
    fn queries_without_times_are_left_out() {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        let parameters = Parameters::of(vec![query(5, 4), query(10, 20), query(7, 7)]);
        assert_eq!(parameters.places, [1, 2]);
        assert_eq!(parameters.selectors, ["10", "7"]);
        assert_eq!(parameters.firsts, [at(10), at(7)]);
        assert_eq!(parameters.untils, [at(21), at(8)]);
        assert_eq!(parameters.bounds(), Some((at(7), at(21))));

        let none = Parameters::of(vec![query(5, 4)]);
        assert_eq!(none.bounds(), None);
    }

    #[test]
    fn times_are_rounded_down() {
        let millis = |micros: i64| Millis::from_sql(&Type::TIMESTAMPTZ, &micros.to_be_bytes());
        assert_eq!(millis(0).unwrap(), Millis(YEAR_2000_MILLIS));
        assert_eq!(millis(1999).unwrap(), Millis(YEAR_2000_MILLIS + 1));
        assert_eq!(millis(-1).unwrap(), Millis(YEAR_2000_MILLIS - 1));
        assert!(Millis::from_sql(&Type::TIMESTAMPTZ, &[0; 4]).is_err());
    }
}
