//! What the database holds: the arena, and the segments of all tables by state.

use super::answer::Answer;
use super::failure::Failure;
use super::routes::Served;
use super::sessions::Statement;

/// Tables that the role may not read are left out, as `lanes.segments` does. Times are seconds since
/// 1970.
const STORAGE: &str = "SELECT pg_catalog.jsonb_build_object( \
     'arena', (SELECT pg_catalog.to_jsonb(a) FROM lanes.arena() AS a), \
     'segments', (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.to_jsonb(t) ORDER BY t.relation, t.state), '[]') \
                    FROM (SELECT s.relation::pg_catalog.text AS relation, s.state, pg_catalog.count(*) AS segments, \
                                 pg_catalog.sum(s.rows) AS rows, pg_catalog.sum(s.rows_live) AS rows_live, \
                                 pg_catalog.sum(s.rows_resident) AS rows_resident, \
                                 pg_catalog.sum(s.bytes_raw) AS bytes_raw, pg_catalog.sum(s.bytes_encoded) AS bytes_encoded, \
                                 extract(epoch FROM pg_catalog.min(s.min_time) FILTER (WHERE pg_catalog.isfinite(s.min_time))) AS min_time, \
                                 extract(epoch FROM pg_catalog.max(s.max_time) FILTER (WHERE pg_catalog.isfinite(s.max_time))) AS max_time \
                            FROM lanes.segments AS s GROUP BY s.relation, s.state) AS t))::pg_catalog.text";

/// Answers `status/storage`.
///
/// # Errors
/// Returns a failure if the database cannot be read.
pub async fn storage(served: &Served<'_>) -> Result<Answer, Failure> {
    let rows = served.sessions.run(Statement {
        sql: STORAGE,
        parameters: Vec::new(),
        timeout: served.settings.timeout,
    });
    Answer::of_json(rows.await?).await
}
