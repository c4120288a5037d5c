-- Costs that the planner must know to choose between the extension's plans and others.
SET default_table_access_method = lanes; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA planner_costs; SET search_path = planner_costs;
CREATE TABLE item (id int, part int, n int);
INSERT INTO item SELECT i, i % 50, i % 100 FROM generate_series(1, 5000) i;
CREATE TABLE part (part int, low int) USING heap;
INSERT INTO part SELECT i, i FROM generate_series(0, 49) i;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set explain :suite '/include/explain.sql'
\i :explain
CREATE FUNCTION pg_temp.cost(query text) RETURNS float8 LANGUAGE sql AS $$ SELECT (pg_temp.analyzed(query) -> 'Plan' ->> 'Total Cost')::float8 $$;

-- A subquery in a condition is executed for each row that passes the vectorised conditions.
CREATE FUNCTION pg_temp.executions(condition text) RETURNS int LANGUAGE sql AS $$
    SELECT round((pg_temp.cost('SELECT id FROM item WHERE ' || condition || ' AND n > (SELECT low FROM part WHERE part.part = item.part)') - pg_temp.cost('SELECT id FROM item WHERE ' || condition))
        / pg_temp.cost('SELECT low FROM part WHERE part = 7'))::int $$;
SELECT pg_temp.executions('true') BETWEEN 4000 AND 6000 AS for_all, pg_temp.executions('id <= 500') BETWEEN 400 AND 600 AS for_some;
DROP SCHEMA planner_costs CASCADE;
