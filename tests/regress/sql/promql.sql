-- PromQL: answers beside the same in SQL, the body of the HTTP API, errors, limits and privileges.
\set VERBOSITY default
SET client_min_messages = warning;
SET timezone = 'UTC';
SET datestyle = 'ISO';
BEGIN;
-- Other series of this database are removed for the test and restored at its end.
DELETE FROM lanes.series_runs;
DELETE FROM lanes.samples;
SELECT coalesce(max(next_id), 1) AS base FROM lanes.registry \gset
SELECT lanes.register_series(2147483647, ARRAY[
    ROW('requests_total', ARRAY['{"instance":"a","mode":"get"}', '{"instance":"a","mode":"put"}', '{"instance":"b","mode":"get"}',
                                '{"instance":"b","mode":"C:\\\"ü\""}'])::lanes.series_run,
    ROW('up', ARRAY['{"instance":"a"}', '{"instance":"b"}'])::lanes.series_run]) = :base AS registered;
-- A sample each 10 seconds for an hour. The counter of `a` resets in the middle.
INSERT INTO lanes.samples (ts, series, value)
SELECT timestamptz '2026-01-01 00:00Z' + i * interval '10 s', :base + s,
       CASE WHEN s < 4 THEN (s + 1) * (CASE WHEN s = 0 AND i >= 180 THEN i - 180 ELSE i END) ELSE (s + i / 100) % 2 END
  FROM generate_series(0, 360) AS i, generate_series(0, 5) AS s;

SELECT * FROM lanes.promql('up', '2026-01-01 00:30Z') ORDER BY labels;
SELECT * FROM lanes.promql('up', '2026-01-01 01:04:59Z') ORDER BY labels;
SELECT * FROM lanes.promql('up', '2026-01-01 01:05:00Z') ORDER BY labels;
SELECT * FROM lanes.promql('up', '2026-01-01 01:00:20Z', '30 s') ORDER BY labels;
SELECT * FROM lanes.promql('1 + 2 * 3', '2026-01-01');
SELECT * FROM lanes.promql('sum by (instance) (requests_total{mode!="put"})', '2026-01-01 00:30Z') ORDER BY labels;
SELECT * FROM lanes.promql('requests_total{mode=~"C:.*"}', '2026-01-01 00:30Z');
SELECT * FROM lanes.promql('up{instance="a"}[30s]', '2026-01-01 00:30Z') ORDER BY ts;
SELECT * FROM lanes.promql_range('sum by (instance) (rate(requests_total[5m]))', '2026-01-01 00:20Z', '2026-01-01 00:40Z', '10 min')
 ORDER BY labels, ts;
SELECT * FROM lanes.promql_range('max_over_time(up[1m]) * on (instance) group_left (mode) requests_total{mode="put"}',
                                 '2026-01-01 00:10Z', '2026-01-01 00:11Z', '30 s') ORDER BY labels, ts;
-- A table joined with an answer.
SELECT t.team, sum(a.value) FROM (VALUES ('a', 'red'), ('b', 'blue')) AS t (instance, team)
  JOIN lanes.promql('requests_total', '2026-01-01 00:10Z') AS a ON a.labels->>'instance' = t.instance GROUP BY 1 ORDER BY 1;

-- The body of the HTTP API.
SELECT lanes.promql_api('up{instance="a"}', '2026-01-01 00:30Z', NULL, NULL, NULL, 0, false);
SELECT string_agg(piece, '') FROM lanes.promql_api('up', '2026-01-01 00:30Z', '2026-01-01 00:30:10Z', '5.5 s', '1 min', 1, true) AS piece;
SELECT lanes.promql_api('"a text"', '2026-01-01 00:30:00.5Z', NULL, NULL, NULL, 0, false);
SELECT lanes.promql_api('requests_total{mode=~"C.*"}', '2026-01-01 00:00:10Z', NULL, NULL, NULL, 0, false);

-- Samples of one time: the greater number counts, and a number before a NaN. Times count in milliseconds.
INSERT INTO lanes.samples VALUES
    ('2026-01-01 02:00:00.000Z', :base + 4, 1), ('2026-01-01 02:00:00.000Z', :base + 4, 3), ('2026-01-01 02:00:00.000Z', :base + 4, 'NaN'),
    ('2026-01-01 02:00:01.0004Z', :base + 4, 5), ('2026-01-01 01:59:59Z', :base + 4, 7);
SELECT ts, value FROM lanes.promql('up[10s]', '2026-01-01 02:00:01Z') ORDER BY ts;

-- Sums of many series at every step, beside the same in SQL: without the label index and with it.
SELECT lanes.register_series(2147483647, ARRAY[ROW('wide', (SELECT array_agg(format('{"n":"%s","tens":"%s"}', lpad(i::text, 4, '0'), i / 10) ORDER BY i)
  FROM generate_series(1, 3000) AS i))::lanes.series_run]) AS wide \gset
INSERT INTO lanes.samples SELECT timestamptz '2026-01-02' + i * interval '30 s', :wide + s - 1, s * 1000 + i
  FROM generate_series(0, 20) AS i, generate_series(1, 3000) AS s;
CREATE FUNCTION pg_temp.differences() RETURNS TABLE (steps int8, differences int8) LANGUAGE sql AS $$
    WITH expected AS (
        SELECT t.ts, s.labels->>'tens' AS tens, sum(v.value) AS value
          FROM generate_series(timestamptz '2026-01-02 00:01Z', '2026-01-02 00:09Z', '60 s') AS t (ts)
          JOIN lanes.samples AS v ON v.ts = t.ts JOIN lanes.series AS s ON s.id = v.series
         WHERE s.metric = 'wide' GROUP BY 1, 2),
    found AS (
        SELECT ts, labels->>'tens' AS tens, value
          FROM lanes.promql_range('sum by (tens) (wide)', '2026-01-02 00:01Z', '2026-01-02 00:09Z', '60 s'))
    SELECT (SELECT count(*) FROM found),
           (SELECT count(*) FROM ((TABLE expected EXCEPT ALL TABLE found) UNION ALL (TABLE found EXCEPT ALL TABLE expected)) AS d)
$$;
SELECT * FROM pg_temp.differences();
SELECT lanes.index_labels() > 0 AS indexed;
SELECT * FROM pg_temp.differences();
SELECT count(*), min(value), max(value) FROM lanes.promql('wide{tens="7"}', '2026-01-02 00:10Z');
-- Few of many series, and every tenth: their samples are searched by their ids.
SELECT labels, value FROM lanes.promql('wide{n=~"0001|1500|3000"}', '2026-01-02 00:10Z') ORDER BY labels;
SELECT count(*), sum(value) = sum(1000 * (labels->>'n')::int + 20) AS is_right FROM lanes.promql('wide{n=~".*7"}', '2026-01-02 00:10Z');
SELECT count(*), sum(value) = sum(1000 * (labels->>'n')::int + 20) AS is_right FROM lanes.promql('{__name__=~"wi.*",n!~".*7"}', '2026-01-02 00:10Z');
-- A scan row by row returns the same as one by vectors.
SET LOCAL lanes.vectorize = off;
SELECT count(*), sum(value) = sum(1000 * (labels->>'n')::int + 20) AS is_right FROM lanes.promql('wide{n=~".*7"}', '2026-01-02 00:10Z');
SELECT * FROM pg_temp.differences();
RESET lanes.vectorize;

-- The session keeps what selectors selected. Series that are registered, indexed and deleted meanwhile count all the same.
SELECT lanes.register_series(2147483647, ARRAY[ROW('wide', ARRAY['{"n":"new","tens":"7"}'])::lanes.series_run]) AS new_series \gset
INSERT INTO lanes.samples VALUES ('2026-01-02 00:10Z', :new_series, 1);
SELECT count(*) FROM lanes.promql('wide', '2026-01-02 00:10Z');
SELECT lanes.index_labels() > 0 AS indexed;
SELECT count(*) FROM lanes.promql('wide', '2026-01-02 00:10Z');
SELECT count(*) FROM lanes.promql('wide{tens="7"}', '2026-01-02 00:10Z');
SAVEPOINT deleted;
DELETE FROM lanes.series_runs WHERE first_id = :new_series;
SELECT count(*) FROM lanes.promql('wide', '2026-01-02 00:10Z');
SELECT lanes.index_labels() > 0 AS indexed;
SELECT count(*) FROM lanes.promql('wide{tens="7"}', '2026-01-02 00:10Z');
ROLLBACK TO deleted;
SELECT count(*) FROM lanes.promql('wide{tens="7"}', '2026-01-02 00:10Z');

-- Explanations.
CREATE FUNCTION pg_temp.explained(query text, start timestamptz, stop timestamptz, step interval) RETURNS SETOF text LANGUAGE sql AS $$
    -- Segments and vectors depend on the rows of other tests.
    SELECT regexp_replace(regexp_replace(line, '[0-9.]+ ms( segments[^)]*)?', 'N ms'), '[0-9]+ kB', 'N kB')
      FROM lanes.promql_explain(query, start, stop, step) AS line
$$;
SELECT pg_temp.explained('sum by (mode) (rate(requests_total[5m])) / scalar(count(up))', '2026-01-01 00:20Z', '2026-01-01 00:40Z', '10 min');
SELECT pg_temp.explained('up', '2026-01-01 00:20Z', NULL, NULL);

-- Row-level security on samples and on series hides what it hides.
CREATE ROLE regress_promql_reader;
SET LOCAL ROLE regress_promql_reader;
SAVEPOINT denied;
SELECT * FROM lanes.promql('up', '2026-01-01 00:30Z');
ROLLBACK TO denied;
RESET ROLE;
SELECT lanes.grant_reader('regress_promql_reader');
SET LOCAL ROLE regress_promql_reader;
SELECT count(*) FROM lanes.promql('up', '2026-01-01 00:30Z');
RESET ROLE;
ALTER TABLE lanes.samples ENABLE ROW LEVEL SECURITY;
SELECT format('CREATE POLICY some_rows ON lanes.samples FOR SELECT TO regress_promql_reader USING (series <> %s)', :base + 4) \gexec
SET LOCAL ROLE regress_promql_reader;
SELECT labels FROM lanes.promql('up', '2026-01-01 00:30Z');
RESET ROLE;
ALTER TABLE lanes.samples DISABLE ROW LEVEL SECURITY;
DROP POLICY some_rows ON lanes.samples;
ALTER TABLE lanes.series_runs ENABLE ROW LEVEL SECURITY;
CREATE POLICY some_rows ON lanes.series_runs FOR SELECT TO regress_promql_reader USING (metric <> 'up');
SET LOCAL ROLE regress_promql_reader;
SELECT count(*) FROM lanes.promql('{instance="a"}', '2026-01-01 00:30Z');
RESET ROLE;
ALTER TABLE lanes.series_runs DISABLE ROW LEVEL SECURITY;
DROP POLICY some_rows ON lanes.series_runs;
-- Without SELECT on the series the functions are no way around it, not even for what this session has selected before.
SELECT count(*) FROM lanes.promql('wide{tens="7"}', '2026-01-02 00:10Z');
REVOKE SELECT ON lanes.series_runs FROM regress_promql_reader;
SET LOCAL ROLE regress_promql_reader;
SAVEPOINT denied;
SELECT count(*) FROM lanes.promql('wide{tens="7"}', '2026-01-02 00:10Z');
ROLLBACK TO denied;
RESET ROLE;
GRANT SELECT ON lanes.series_runs TO regress_promql_reader;
-- The same for the samples.
REVOKE SELECT ON lanes.samples FROM regress_promql_reader;
SET LOCAL ROLE regress_promql_reader;
SAVEPOINT denied;
SELECT * FROM lanes.promql('up', '2026-01-01 00:30Z');
ROLLBACK TO denied;
RESET ROLE;

-- Errors.
SAVEPOINT wrong;
SELECT * FROM lanes.promql('sum(up', '2026-01-01');
ROLLBACK TO wrong;
SELECT * FROM lanes.promql('up{instance=~"("}', '2026-01-01');
ROLLBACK TO wrong;
SELECT * FROM lanes.promql('requests_total + on (instance) requests_total', '2026-01-01 00:30Z');
ROLLBACK TO wrong;
SELECT * FROM lanes.promql('"a text"', '2026-01-01');
ROLLBACK TO wrong;
SELECT * FROM lanes.promql('up', 'infinity');
ROLLBACK TO wrong;
SELECT * FROM lanes.promql_range('up', '2026-01-01', '2026-01-02', '1 month');
ROLLBACK TO wrong;
SELECT * FROM lanes.promql_range('up', '2026-01-01', '2026-01-02', '-1 s');
ROLLBACK TO wrong;
SELECT * FROM lanes.promql_range('up', '2026-01-02', '2026-01-01', '1 s');
ROLLBACK TO wrong;
SELECT lanes.promql_api('up', NULL, NULL, NULL, NULL, 0, false);
ROLLBACK TO wrong;
SELECT lanes.promql_explain(NULL);
ROLLBACK TO wrong;
SELECT lanes.promql_explain('up', '2026-01-01', '2026-01-02');
ROLLBACK TO wrong;
SET LOCAL lanes.promql_max_series = 100;
SELECT count(*) FROM lanes.promql('wide', '2026-01-02 00:10Z');
ROLLBACK TO wrong;
SET LOCAL lanes.promql_max_samples = 1000;
SELECT count(*) FROM lanes.promql('wide', '2026-01-02 00:10Z');
ROLLBACK TO wrong;
SET LOCAL lanes.promql_memory = '1MB';
SELECT count(*) FROM lanes.promql_range('wide', '2026-01-02 00:00Z', '2026-01-02 01:00Z', '1 s');
ROLLBACK TO wrong;
SET LOCAL statement_timeout = '300ms';
SELECT count(*) FROM lanes.promql_range('sum(sum_over_time(wide[1h:1s]))', '2026-01-02 00:00Z', '2026-01-02 12:00Z', '1 s');
ROLLBACK TO wrong;
ROLLBACK;
