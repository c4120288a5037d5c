-- The label index: selectors, names, values and counts, with and without it; conditions on the labels of a metric's view.
\set VERBOSITY terse
SET client_min_messages = warning;
SET timezone = 'UTC';
SET datestyle = 'ISO';
BEGIN;
-- Other series of this database are removed for the test and restored at its end.
DELETE FROM lanes.series_runs;
SELECT coalesce(max(next_id), 1) AS base FROM lanes.registry \gset

-- Returns the series of a selector by reading every label set. The matchers are separate arguments,
-- with the operators `=`, `!=`, `~` and `!~`.
CREATE FUNCTION pg_temp.search(names text[], operators text[], vals text[]) RETURNS SETOF int4 LANGUAGE sql AS $$
    SELECT s.id FROM lanes.series s
     WHERE NOT EXISTS (
        SELECT FROM unnest(names, operators, vals) AS m (name, operator, val),
               LATERAL (SELECT CASE m.name WHEN '__name__' THEN s.metric ELSE coalesce(s.labels->>m.name, '') END) AS l (found)
         WHERE NOT CASE m.operator WHEN '=' THEN l.found = m.val WHEN '!=' THEN l.found <> m.val
                        WHEN '=~' THEN l.found ~ ('^(' || m.val || ')$') ELSE l.found !~ ('^(' || m.val || ')$') END)
     ORDER BY s.id
$$;

-- Series of three metrics, in several registrations.
CREATE FUNCTION pg_temp.register(metric text, first int, last int) RETURNS void LANGUAGE sql AS $$
    SELECT lanes.register_series(2147483647, ARRAY[ROW(metric, array_agg(
        CASE WHEN i % 5 = 0 THEN format('{"instance":"node-%s"}', i)
             ELSE format('{"instance":"node-%s","job":"%s","path":"C:\\%s"}', i, (ARRAY['a','b','c'])[1 + i % 3], i % 7) END ORDER BY i))::lanes.series_run])
      FROM generate_series(first, last) AS i
$$;
SELECT pg_temp.register('up', 1, 300);
SELECT pg_temp.register('down', 1, 40);
SELECT pg_temp.register('up', 301, 400);

-- Random selectors have the same ids as the search: without any index run, with index runs and
-- later series, with all series in index runs.
CREATE FUNCTION pg_temp.compare(rounds int) RETURNS TABLE (compared int, selected boolean, wrong text) LANGUAGE plpgsql AS $$
DECLARE
    names text[]; operators text[]; vals text[]; selector text; found int4[]; expected int4[]; total int8 := 0;
BEGIN
    compared := 0;
    FOR round IN 1 .. rounds LOOP
        SELECT array_agg((ARRAY['__name__', 'instance', 'job', 'path', 'absent'])[1 + floor(random() * 5)]),
               array_agg((ARRAY['=', '!=', '=~', '!~'])[1 + floor(random() * 4)]),
               array_agg((ARRAY['up', 'down', 'a', 'b', '', 'node-7', 'node-1.*', 'a|b', '.+', '.*', 'up|down', 'no|node-2[0-9]'])[1 + floor(random() * 12)])
          INTO names, operators, vals FROM generate_series(1, 1 + floor(random() * 3)::int);
        SELECT '{' || string_agg(format('%s%s"%s"', n, o, v), ',') || '}' INTO selector FROM unnest(names, operators, vals) AS m (n, o, v);
        found := ARRAY(SELECT lanes.series_ids(selector));
        expected := ARRAY(SELECT pg_temp.search(names, operators, vals));
        total := total + cardinality(found);
        compared := compared + 1;
        IF found <> expected THEN
            wrong := concat_ws('; ', wrong, format('%s: %s, not %s', selector, cardinality(found), cardinality(expected)));
        END IF;
    END LOOP;
    selected := total > 0;
    RETURN NEXT;
END
$$;
SELECT count(*) AS runs FROM lanes.label_runs;
SELECT * FROM pg_temp.compare(150);
SELECT lanes.index_labels();
SELECT count(*) AS runs, sum(series) AS series FROM lanes.label_runs;
-- The hashes for a starting gateway: a header, then spans of consecutive ids, each with a header of
-- its own and 4 bytes per series.
SELECT last_id - :base AS last, octet_length(hashes) - 5 - 8 - 4 * 440 AS more FROM lanes.series_hashes;
SELECT * FROM pg_temp.compare(150);
SELECT pg_temp.register('upper', 1, 60);
SELECT pg_temp.register('down', 41, 50);
SELECT * FROM pg_temp.compare(150);
-- Small index runs after a large one stay separate; then they are merged.
SELECT lanes.index_labels();
SELECT count(*) AS runs, sum(series) AS series FROM lanes.label_runs;
SELECT * FROM pg_temp.compare(150);
SELECT pg_temp.register('upper', 61, 90);
SELECT lanes.index_labels();
SELECT pg_temp.register('upper', 91, 300);
SELECT lanes.index_labels(), lanes.index_labels() AS again;
SELECT count(*) AS runs, sum(series) AS series FROM lanes.label_runs;
SELECT count(*) AS blocks_of_no_run FROM lanes.label_blocks b WHERE NOT EXISTS (SELECT FROM lanes.label_runs r WHERE r.run = b.run);
SELECT * FROM pg_temp.compare(150);

-- Names, values and counts, with series outside of the index.
SELECT pg_temp.register('down', 51, 55);
SELECT * FROM lanes.label_names();
SELECT * FROM lanes.label_names('{job=""}');
SELECT * FROM lanes.label_names('{__name__="nothing"}');
SELECT * FROM lanes.label_values('job');
SELECT * FROM lanes.label_values('__name__', '{instance="node-41"}');
SELECT count(*), min(v), max(v) FROM lanes.label_values('instance', 'down{job=~"a|b"}') AS v;
SELECT count(*) FROM lanes.label_values('absent');
SELECT count(*) FROM lanes.label_values('');
SELECT * FROM lanes.cardinality();
SELECT * FROM lanes.cardinality('name');
SELECT * FROM lanes.cardinality('value', 4);
SELECT * FROM lanes.cardinality('metric', 0);

-- Hashes of later series are added to the last row while it has room. A damaged row stays, and the
-- next one follows it.
SELECT lanes.index_labels();
SELECT last_id - :base AS last, octet_length(hashes) - 5 - 8 - 4 * 445 AS more FROM lanes.series_hashes;
SAVEPOINT hashes;
UPDATE lanes.series_hashes SET hashes = set_byte(hashes, 40, 255 - get_byte(hashes, 40));
SELECT pg_temp.register('down', 56, 60);
SELECT lanes.index_labels();
SELECT last_id - :base AS last, octet_length(hashes) FROM lanes.series_hashes ORDER BY 1;
ROLLBACK TO hashes;
SELECT pg_temp.register('many', 1, 8192);
SELECT pg_temp.register('many', 8193, 8200);
SELECT lanes.index_labels();
SELECT last_id - :base AS last, octet_length(hashes) FROM lanes.series_hashes ORDER BY 1;
ROLLBACK TO hashes;
UPDATE lanes.series_runs SET metric = metric;
SELECT count(*) AS hashes FROM lanes.series_hashes;
ROLLBACK TO hashes;

-- Conditions on labels of the view narrow the function's result, and do not change the answer.
INSERT INTO lanes.samples SELECT '2026-01-01'::timestamptz + i * interval '1 s', s.id, i + s.id - :base FROM lanes.series s, generate_series(0, 2) i;
EXPLAIN (VERBOSE, COSTS OFF) SELECT value FROM metrics.up WHERE labels->>'instance' = 'node-7' AND labels->>'job' IN ('a', 'b');
SELECT ts, value, labels FROM metrics.up WHERE labels->>'instance' = 'node-7' ORDER BY ts;
SELECT ts, value, labels FROM metrics.down WHERE 'node-51' = labels->>'instance' ORDER BY ts;
SELECT count(*), sum(value) FROM metrics.up WHERE labels->>'job' IN ('a', 'c', NULL);
SELECT count(*), sum(value) FROM metrics.up WHERE labels->>'job' = 'a' OR labels->>'job' = 'c';
SELECT count(*) FROM metrics.up WHERE labels->>'job' = '';
SELECT count(*) FROM metrics.up WHERE labels->>'job' = NULL;
SELECT count(*) FROM metrics.up WHERE labels->>'path' = 'C:\3';
SELECT count(*) FROM metrics.up WHERE labels->>'instance' LIKE 'node-1_' AND labels->>'job' <> 'a';
SELECT count(*) FROM metrics.up WHERE labels->>'instance' = 'node-' || (ts - ts)::text;
EXPLAIN (VERBOSE, COSTS OFF) SELECT value FROM metrics.up WHERE labels->>'instance' LIKE 'node-1_' AND labels->>'job' NOT IN ('a', 'x') AND labels->>'path' IS NOT NULL;
-- Returns each condition with the number of matching series, compared with all series of the
-- metric, and the number of series that the function returns in addition.
CREATE FUNCTION pg_temp.narrow(conditions text[]) RETURNS TABLE (condition text, met int8, more int8, wrong int8) LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    FOREACH condition IN ARRAY conditions LOOP
        EXECUTE format('EXPLAIN (ANALYZE, TIMING OFF, FORMAT json) SELECT id FROM lanes.metric_series(''up'') AS r WHERE %s', condition) INTO plan;
        more := plan->0->'Plan'->'Rows Removed by Filter';
        EXECUTE format('WITH r AS MATERIALIZED (SELECT id, labels FROM lanes.metric_series(''up'')),
            n AS (SELECT r.id FROM lanes.metric_series(''up'') AS r WHERE %1$s), m AS (SELECT id FROM r WHERE %1$s)
            SELECT count(m.id), count(*) FILTER (WHERE n.id IS NULL OR m.id IS NULL) FROM n FULL JOIN m USING (id)', condition) INTO met, wrong;
        RETURN NEXT;
    END LOOP;
END
$$;
SELECT * FROM pg_temp.narrow(ARRAY[
    $$labels->>'job' <> 'a'$$, $$'a' <> labels->>'job'$$, $$labels->>'job' NOT IN ('a', 'c')$$, $$labels->>'job' NOT IN ('a', NULL)$$,
    $$labels->>'job' <> ALL ('{}')$$, $$labels->>'job' <> ALL ('{NULL}')$$, $$labels->>'job' <> ANY ('{a,b}')$$,
    $$labels->>'job' IS NULL$$, $$labels->>'job' IS NOT NULL$$, $$NOT labels->>'job' = 'a'$$, $$NOT labels->>'job' LIKE 'a'$$,
    $$labels->>'absent' IS NULL$$, $$labels->>'absent' IS NOT NULL$$, $$labels->>'absent' <> 'x'$$, $$labels->>'absent' !~ 'x'$$,
    $$labels->>'__name__' IS NULL$$, $$labels->>'__name__' <> 'x'$$, $$labels->>'' IS NULL$$,
    $$labels->>'instance' LIKE 'node-1_'$$, $$labels->>'instance' NOT LIKE 'node-1%'$$, $$labels->>'instance' ILIKE 'NODE-2%'$$,
    $$labels->>'instance' NOT ILIKE 'NODE-%'$$, $$labels->>'path' LIKE 'C:\\_'$$, $$labels->>'instance' LIKE ANY ('{node-3_,node-4_}')$$,
    $$labels->>'instance' NOT LIKE ALL ('{node-3%,node-4%}')$$, $$labels->>'instance' LIKE NULL$$,
    $$labels->>'instance' ~ '^node-[0-9]$'$$, $$labels->>'instance' ~ '7\Z'$$, $$labels->>'instance' !~ '[1-3]'$$, $$labels->>'instance' ~* 'NODE-9'$$,
    $$labels->>'instance' !~* 'NODE'$$, $$labels->>'job' ~ '(?=a)'$$, $$labels->>'job' ~ ''$$, $$labels->>'instance' > 'node-5'$$,
    $$labels->>'instance' <= 'node-2' COLLATE "C"$$, $$'node-2' > labels->>'instance'$$, $$starts_with(labels->>'instance', 'node-6')$$,
    $$labels->>'instance' ^@ 'node-6'$$,
    $$labels->>'job' = 'x' AND labels->>'path' LIKE 'x\'$$,
    $$labels->>'instance' ~ '5$' AND labels->>'job' ~ 'a|b' AND labels->>'path' IS NOT NULL$$]);
-- A label set that is not in canonical form is matched by its content.
SAVEPOINT others;
SELECT lanes.register_series(2147483647, ARRAY[ROW('up', ARRAY['{"job":"","instance":"empty"}'])::lanes.series_run]) IS NOT NULL AS registered;
SELECT lanes.index_labels() > 0 AS indexed;
SELECT condition, met, wrong FROM pg_temp.narrow(ARRAY[$$labels->>'job' <> 'a'$$, $$labels->>'job' ~ '^$'$$, $$labels->>'job' LIKE '%'$$, $$labels->>'job' IS NULL$$, $$labels->>'job' IS NOT NULL$$]);
ROLLBACK TO others;
-- An invalid pattern is an ERROR if it meets a value, and only then.
SET plan_cache_mode = force_generic_plan;
PREPARE absent (text) AS SELECT count(*) FROM metrics.up WHERE labels->>'absent' ~ $1;
EXECUTE absent ('(');
PREPARE nobody (text) AS SELECT count(*) FROM metrics.up WHERE labels->>'job' = 'x' AND labels->>'instance' ~ $1;
EXECUTE nobody ('(');
PREPARE somebody (text) AS SELECT count(*) FROM metrics.up WHERE labels->>'instance' ~ $1;
EXECUTE somebody ('(');
ROLLBACK TO others;
RESET plan_cache_mode;
SELECT count(*) FROM metrics.up WHERE labels->>'instance' LIKE 'node\';
ROLLBACK TO others;
SELECT count(*) FROM metrics.up WHERE labels->>'instance' LIKE 'x\';
ROLLBACK TO others;
-- The only operator that sees rows behind a security barrier is equality.
CREATE VIEW pg_temp.barrier WITH (security_barrier) AS SELECT * FROM metrics.up WHERE labels->>'job' = 'a';
EXPLAIN (VERBOSE, COSTS OFF) SELECT value FROM pg_temp.barrier WHERE labels->>'instance' ~ '7' AND labels->>'path' = 'x';
SELECT count(*) FROM lanes.metric_series('up', ARRAY['job', 'pg_sleep ANY', '100', '1', 'a']) AS r;
PREPARE others (text, text) AS SELECT count(*), min(value) FROM metrics.up WHERE labels->>'instance' ~ $1 AND labels->>'job' <> ALL (ARRAY[$2, 'c']);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE others ('1$', 'a');
EXECUTE others ('1$', 'a');
EXECUTE others ('2$', NULL);
EXECUTE others (NULL, 'a');
RESET plan_cache_mode;
PREPARE one (text) AS SELECT count(*), min(value) FROM metrics.up WHERE labels->>'instance' = $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE one ('node-9');
EXECUTE one ('node-9');
EXECUTE one ('node-10');
EXECUTE one (NULL);
RESET plan_cache_mode;
SELECT count(*), count(DISTINCT id) FROM lanes.metric_series('up');
SELECT count(*) FROM lanes.metric_series('up', ARRAY['job', '= ANY', '100', '2', 'a', 'b']);
SELECT count(*) FROM lanes.metric_series(NULL);

-- Once extended, the view has its labels as columns. Labels that cannot be columns remain in
-- `labels`.
SELECT metric FROM lanes.metrics_to_extend ORDER BY 1;
SELECT lanes.extend_metric_view('up'), lanes.extend_metric_view('up') AS again, lanes.extend_metric_view('nothing') AS nothing;
SELECT * FROM metrics.up WHERE instance = 'node-8' ORDER BY ts LIMIT 1;
EXPLAIN (VERBOSE, COSTS OFF) SELECT job, count(*), avg(value) FROM metrics.up WHERE path = 'C:\2' AND job IN ('a', 'b') GROUP BY job;
SELECT job, count(*), avg(value) FROM metrics.up WHERE path = 'C:\2' AND job IN ('a', 'b') GROUP BY job ORDER BY job;
SELECT job, count(*), sum(value) FROM metrics.up GROUP BY job ORDER BY job;
SELECT count(*) FROM metrics.up WHERE job IS NULL;
SELECT lanes.register_series(2147483647, ARRAY[ROW('up', ARRAY[format('{"%s":"1","Zone":"x","job":"a","value":"2"}', repeat('n', 70))])::lanes.series_run]) IS NOT NULL AS registered;
SELECT lanes.index_labels() > 0 AS indexed;
SELECT metric FROM lanes.metrics_to_extend ORDER BY 1;
SELECT lanes.extend_metric_view('up');
SELECT name, left_out FROM lanes.metric_labels WHERE metric = 'up' ORDER BY name COLLATE "C";
SELECT attname FROM pg_attribute WHERE attrelid = 'metrics.up'::regclass ORDER BY attnum;
SELECT count(*) FROM lanes.metrics_to_extend WHERE metric = 'up';
SELECT lanes.register_series(2147483647, ARRAY[ROW('upper', ARRAY(SELECT format('{"l%s":"1"}', i) FROM generate_series(1, 70) i))::lanes.series_run]) IS NOT NULL AS registered;
SELECT lanes.index_labels();
SELECT lanes.extend_metric_view('upper');
SELECT left_out, count(*) FROM lanes.metric_labels WHERE metric = 'upper' GROUP BY 1 ORDER BY 1;
DELETE FROM lanes.series_runs WHERE metric = 'upper' AND first_id = (SELECT max(first_id) FROM lanes.series_runs);
-- A view that a user has replaced is not changed.
CREATE OR REPLACE VIEW metrics.down AS SELECT ts, value, series, NULL::jsonb AS labels FROM lanes.samples;
SELECT lanes.extend_metric_view('down');
DROP VIEW metrics.down;
SELECT lanes.extend_metric_view('down');
DELETE FROM lanes.metrics WHERE metric = 'down';
SELECT lanes.create_metric_view('down'), lanes.extend_metric_view('down');
SELECT lanes.index_labels() > 0 AS indexed;

-- The planner knows how many series a metric has, unless the role may not read them, and that their ids are unique.
SAVEPOINT expected;
SELECT pg_temp.register('expected', 1, 700);
SELECT lanes.index_labels() > 0 AS indexed;
CREATE FUNCTION pg_temp.expected(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN plan -> 0 -> 'Plan' -> 'Plan Rows';
END $$;
SELECT count(*) AS series, pg_temp.expected('SELECT FROM lanes.metric_series(''expected'')') FROM lanes.metric_series('expected');
SELECT pg_temp.expected('SELECT FROM lanes.metric_series(''unknown'')') AS unknown, pg_temp.expected('SELECT FROM lanes.metric_series(lower(session_user))') AS of_no_constant;
SELECT pg_temp.expected('SELECT DISTINCT id FROM lanes.metric_series(''expected'')') AS ids;
CREATE ROLE lanes_labels_stranger;
GRANT USAGE ON SCHEMA lanes TO lanes_labels_stranger;
GRANT EXECUTE ON FUNCTION lanes.metric_series(text, text[]) TO lanes_labels_stranger;
SET ROLE lanes_labels_stranger;
SELECT pg_temp.expected('SELECT FROM lanes.metric_series(''expected'')') AS of_a_stranger;
RESET ROLE;
-- The privileges for the index are checked by each query, also if the session has the answer.
GRANT SELECT ON lanes.series_runs, lanes.label_runs, lanes.label_blocks TO lanes_labels_stranger;
SET ROLE lanes_labels_stranger;
SELECT count(*) FROM lanes.metric_series('expected');
RESET ROLE;
REVOKE SELECT ON lanes.label_blocks FROM lanes_labels_stranger;
SET ROLE lanes_labels_stranger;
SAVEPOINT refused;
SELECT count(*) FROM lanes.metric_series('expected');
ROLLBACK TO refused;
RESET ROLE;
-- Row-level security hides the index, without which series are searched one by one.
GRANT SELECT ON lanes.label_blocks TO lanes_labels_stranger;
ALTER TABLE lanes.label_blocks ENABLE ROW LEVEL SECURITY;
SET ROLE lanes_labels_stranger;
SELECT count(*) FROM lanes.metric_series('expected') WHERE labels->>'job' = 'a';
SELECT count(*) FROM lanes.metric_series('expected');
ROLLBACK TO expected;

-- Samples of series are deleted by selector, with both ends of the time range included.
SELECT lanes.delete_series('up{instance="node-7"}', '2026-01-01 00:00:01+0', '2026-01-01 00:00:01+0');
SELECT count(*) FROM metrics.up WHERE labels->>'instance' = 'node-7';
SELECT lanes.delete_series('down');
SELECT count(*) FROM metrics.down;

-- Faults.
SAVEPOINT faults;
SELECT lanes.series_ids('up{job=node}');
ROLLBACK TO faults;
SELECT lanes.series_ids('up{job=~"("}');
ROLLBACK TO faults;
SELECT lanes.cardinality('job');
ROLLBACK TO faults;
SELECT lanes.delete_series(' { } ');
ROLLBACK TO faults;
SELECT lanes.delete_series('{instance=~".*",job!="x",path=""}');
ROLLBACK TO faults;
SELECT count(*) FROM lanes.metric_series('up', ARRAY['job', '= ANY', '100', '2', 'a']);
ROLLBACK TO faults;
UPDATE lanes.label_blocks SET terms = '\x07';
SELECT lanes.series_ids('{job="a"}');
ROLLBACK TO faults;
DELETE FROM lanes.label_blocks;
SELECT lanes.series_ids('{job="a"}');
ROLLBACK TO faults;
UPDATE lanes.label_runs SET run = run + 1000000, directory = '\x02ff';
SELECT lanes.series_ids('{job="a"}');
ROLLBACK TO faults;
-- An index of another version is ignored until it is built again.
UPDATE lanes.label_runs SET directory = set_byte(directory, 0, 1);
SELECT * FROM pg_temp.compare(50);
SELECT lanes.index_labels() = (SELECT count(*) FROM lanes.series) AS again;
SELECT * FROM pg_temp.compare(50);
ROLLBACK TO faults;

-- A registration that is rolled back leaves nothing.
SELECT count(*) AS before FROM lanes.series_ids('{instance="rolled-back"}');
SAVEPOINT registration;
SELECT lanes.register_series(2147483647, ARRAY[ROW('up', ARRAY['{"instance":"rolled-back"}'])::lanes.series_run]) IS NOT NULL AS registered;
SELECT lanes.index_labels();
SELECT count(*) AS within FROM lanes.series_ids('{instance="rolled-back"}');
ROLLBACK TO registration;
SELECT count(*) AS after FROM lanes.series_ids('{instance="rolled-back"}');

-- Changing or deleting series by hand, or inserting a series before existing ones, empties the
-- index.
SELECT lanes.index_labels();
SELECT min(first_id) AS victim FROM lanes.series_runs WHERE metric = 'down' \gset
DELETE FROM lanes.series_runs WHERE first_id = :victim RETURNING first_id - :base AS first_id, last_id - :base AS last_id;
SELECT count(*) AS runs FROM lanes.label_runs;
SELECT * FROM pg_temp.compare(50);
SELECT lanes.index_labels() > 0 AS indexed;
SELECT * FROM pg_temp.compare(50);
INSERT INTO lanes.series_runs (first_id, last_id, metric, labels) VALUES (:victim + 3, :victim + 3, 'down', lanes.pack_label_sets(ARRAY['{"instance":"again"}']));
SELECT count(*) AS runs FROM lanes.label_runs;
SELECT id - :victim AS id FROM lanes.series_ids('{instance="again"}') AS id;
SELECT lanes.index_labels() > 0 AS indexed;
SELECT id - :victim AS id FROM lanes.series_ids('{instance="again"}') AS id;
UPDATE lanes.series_runs SET metric = 'renamed' WHERE first_id = :victim + 3;
SELECT count(*) AS runs FROM lanes.label_runs;
SELECT * FROM lanes.label_values('__name__');

-- Row-level security hides series regardless of the index. A role without privileges is refused.
SELECT lanes.index_labels() > 0 AS indexed;
CREATE ROLE regress_labels_reader;
SELECT lanes.grant_reader('regress_labels_reader');
SAVEPOINT reader;
SET LOCAL ROLE regress_labels_reader;
SELECT * FROM lanes.label_values('__name__');
SELECT count(*) > 0 AS some FROM metrics.up WHERE labels->>'job' = 'a';
SELECT lanes.index_labels();
ROLLBACK TO reader;
ALTER TABLE lanes.series_runs ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_reader ON lanes.series_runs TO regress_labels_reader USING (metric = 'up');
SET LOCAL ROLE regress_labels_reader;
SELECT * FROM lanes.label_values('__name__');
SELECT count(*) FROM lanes.series_ids('{__name__!="up"}');
SELECT * FROM lanes.cardinality();
RESET ROLE;
SAVEPOINT nobody;
CREATE ROLE regress_labels_nobody;
GRANT USAGE ON SCHEMA lanes TO regress_labels_nobody;
SET LOCAL ROLE regress_labels_nobody;
SELECT lanes.series_ids('up');
ROLLBACK TO nobody;

-- A read-only transaction cannot build the index.
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT lanes.index_labels();
ROLLBACK;
SELECT count(*) AS left_behind FROM lanes.metrics WHERE metric IN ('upper', 'renamed');
