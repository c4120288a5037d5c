-- The queries of Grafana's PostgreSQL data source, with its macros expanded, are vectorised. The
-- results are compared with heap.
SET timezone = 'UTC'; SET datestyle = 'ISO'; SET search_path = public, lanes;
CREATE TABLE trade (ts timestamptz, local timestamp, day date, sym text, price float8, size int, ok bool, epoch bigint, epoch4 int, epoch8 float8) USING lanes;
INSERT INTO trade SELECT t, t, t::date, 'S' || i % 4, (i * 37 % 1000) / 8.0, i % 13, i % 5 = 0, extract(epoch FROM t)::bigint, extract(epoch FROM t)::int, extract(epoch FROM t)
  FROM generate_series(0, 9999) i, LATERAL (SELECT '2026-01-01 00:00:30.25Z'::timestamptz + i * interval '1.7 s' AS t) x;
INSERT INTO trade VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), ('infinity', 'infinity', 'infinity', 'S0', 1, 1, NULL, NULL, NULL, 'infinity'),
  ('-infinity', '-infinity', '-infinity', 'S0', 1, 1, NULL, NULL, NULL, '-infinity'),
  ('1969-12-31 23:59:59.999999Z', '1969-12-31 23:59:59.999999', '1969-12-31', 'S1', 2, 2, true, -1, -1, -0.5), ('1970-01-01Z', '1970-01-01', '1970-01-01', 'S1', 3, 3, true, 0, 0, '-0'),
  ('2500-01-01 00:00:59.999999Z', '2500-01-01 00:00:59.999999', '2500-01-01', 'S2', 4, 4, true, 16725225659, 2147483647, 16725225659.999999),
  ('290000-01-01 00:00:59.999999Z', '4700-01-01 BC', '5000000-01-01', 'S2', 4, 4, true, 9000000000000, -2147483648, 9e12);
CREATE SCHEMA twin; CREATE TABLE twin.trade USING heap AS TABLE trade;
CREATE TABLE asked (n serial, q text) USING heap;
INSERT INTO asked (q) VALUES
  -- $__timeGroup, $__timeGroupAlias and $__timeFilter, without and with the TimescaleDB toggle
  ($$SELECT floor(extract(epoch from ts)/60)*60 AS "time", avg(price) FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T02:00:00Z' GROUP BY 1 ORDER BY 1$$),
  ($$SELECT floor(extract(epoch from ts)/300)*300 AS "time", sym AS metric, max(size) AS value FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00.123Z' AND '2026-01-02T00:00:00Z' GROUP BY 1, 2 ORDER BY 1, 2$$),
  ($$SELECT floor(extract(epoch from ts)/0.5)*0.5 AS "time", count(*) FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T00:02:00Z' GROUP BY time ORDER BY time$$),
  ($$SELECT floor(extract(epoch from ts)/60)*60 AS "time", count(*), min(size) FROM trade GROUP BY "time" ORDER BY "time"$$),
  ($$SELECT floor(extract(epoch from local)/3600)*3600 AS "time", count(*) FROM trade GROUP BY 1 HAVING count(*) > 1 ORDER BY 1$$),
  ($$SELECT floor(extract(epoch from local)/86400)*86400 AS "time", count(*) FROM trade GROUP BY 1 ORDER BY 1$$),
  ($$SELECT floor(extract(epoch from day)/604800)*604800 AS "time", count(*) FROM trade GROUP BY 1 ORDER BY 1$$),
  ($$SELECT floor(extract(epoch from ts)/31536000) AS year, count(*) FROM trade GROUP BY 1 ORDER BY 1$$),
  ($$SELECT time_bucket('60.000s', ts) AS "time", sum(size) FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T00:20:00Z' GROUP BY 1 ORDER BY 1$$),
  ($$SELECT time_bucket('300.000s', ts) AS "time", sym AS metric, avg(price) AS price FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T02:00:00Z' AND sym IN ('S1','S2') GROUP BY 1, 2 ORDER BY 1, 2$$),
  -- $__time and $__timeEpoch: plain rows
  ($$SELECT ts AS "time", price FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T00:01:00Z' ORDER BY 1$$),
  ($$SELECT extract(epoch from ts) as "time", sym AS metric, price FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T00:01:00Z' ORDER BY 1$$),
  -- $__timeFrom and $__timeTo
  ($$SELECT sym, count(*), avg(price) FROM trade WHERE ts >= '2026-01-01T00:00:00Z' AND ts <= '2026-01-01T02:00:00Z' GROUP BY sym ORDER BY 2 DESC, 1$$),
  -- $__unixEpochFilter, $__unixEpochNanoFilter, $__unixEpochGroup
  ($$SELECT floor((epoch)/300)*300 AS "time", avg(price) FROM trade WHERE epoch >= 1767225600 AND epoch <= 1767232800 GROUP BY 1 ORDER BY 1$$),
  ($$SELECT floor((epoch)/300)*300 AS "time", count(*) FROM trade GROUP BY 1 ORDER BY 1$$),
  ($$SELECT floor((epoch4)/3600)*3600 AS "time", sum(size) FROM trade WHERE epoch4 >= 1767225600 AND epoch4 <= 1767232800 GROUP BY 1 ORDER BY 1$$),
  ($$SELECT floor((epoch8)/3600)*3600 AS "time", sum(size) FROM trade GROUP BY 1 ORDER BY 1$$),
  ($$SELECT ceil(epoch8 / 3600) AS "time", sum(size), max(floor(price)) FROM trade GROUP BY 1 ORDER BY 1$$),
  ($$SELECT epoch * 1000000000 AS "time", price FROM trade WHERE epoch * 1000000000 >= 1767225600000000000 AND epoch * 1000000000 <= 1767225660000000000 AND epoch < 2000000000 ORDER BY 1$$),
  -- tables, statistics, variables, annotations
  ($$SELECT count(*) FILTER (WHERE ok) AS errors, count(*) AS all, avg(price), max(ts) FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T12:00:00Z'$$),
  ($$SELECT sym AS metric, last(price, ts) AS value FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T12:00:00Z' GROUP BY 1 ORDER BY 1$$),
  ($$SELECT DISTINCT sym FROM trade ORDER BY 1$$),
  ($$SELECT DISTINCT ON (sym) sym, ts, price FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T12:00:00Z' ORDER BY sym, ts DESC$$),
  ($$SELECT ts AS "time", sym AS text FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T12:00:00Z' AND size = 12 AND price > 120 ORDER BY ts DESC LIMIT 5$$);
CREATE FUNCTION compare() RETURNS TABLE (n int, rows bigint, missing bigint, extra bigint) LANGUAGE plpgsql AS $$
DECLARE a record; BEGIN
  FOR a IN SELECT * FROM asked ORDER BY asked.n LOOP
    EXECUTE format('CREATE TEMP TABLE found USING heap AS SELECT row_number() OVER () AS place, q::text FROM (%s) q', a.q);
    EXECUTE format('CREATE TEMP TABLE wanted USING heap AS SELECT row_number() OVER () AS place, q::text FROM (%s) q', replace(a.q, 'FROM trade', 'FROM twin.trade'));
    RETURN QUERY SELECT a.n, (SELECT count(*) FROM found), (SELECT count(*) FROM (TABLE wanted EXCEPT TABLE found) x), (SELECT count(*) FROM (TABLE found EXCEPT TABLE wanted) x);
    DROP TABLE found, wanted;
  END LOOP;
END $$;
SET lanes.vectorize = require;
SELECT * FROM compare();
EXPLAIN (COSTS OFF) SELECT floor(extract(epoch from ts)/60)*60 AS "time", sym, avg(price) FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T02:00:00Z' GROUP BY 1, 2 ORDER BY 1;
SELECT floor(extract(epoch from ts)/60)*60 AS "time", count(*), pg_typeof(floor(extract(epoch from ts)/60)*60) FROM trade WHERE ts < '2026-01-01 00:03' OR ts > '2027-01-01' OR ts IS NULL GROUP BY 1 ORDER BY 1;
-- Widths that PostgreSQL computes row by row.
SELECT count(*) FROM (SELECT floor(extract(epoch from ts)/0.0000001)*60, count(*) FROM trade GROUP BY 1) buckets;
SELECT floor(extract(epoch from ts)/0)*60, count(*) FROM trade GROUP BY 1;
SELECT floor(extract(epoch from ts)/60)*0, count(*) FROM trade GROUP BY 1;
SELECT floor(extract(minute from ts)/60)*60, count(*) FROM trade GROUP BY 1;
SELECT floor(extract(epoch from ts)/60 + 1)*60, count(*) FROM trade GROUP BY 1;
RESET lanes.vectorize;
SELECT floor(extract(epoch from ts)/0)*60, count(*) FROM trade GROUP BY 1;
SELECT floor(extract(epoch from ts)/60)*0 AS zero, count(*) FROM trade WHERE isfinite(ts) GROUP BY 1;
DROP FUNCTION compare; DROP TABLE asked, trade; DROP SCHEMA twin CASCADE;
