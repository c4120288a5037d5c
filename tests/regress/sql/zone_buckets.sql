-- Buckets by clocks of zones whose offset changes, at midnight and also a minute later: vectorised
-- and row by row.
SET datestyle = 'ISO';
CREATE TABLE l (id int, ts timestamptz, local timestamp, day date) USING lanes;
-- Around the ends of summer time in Newfoundland, Brazil and Berlin, the day that Samoa skipped,
-- then the years between.
INSERT INTO l SELECT i, t, t AT TIME ZONE 'UTC', t::date FROM (
  SELECT row_number() OVER (ORDER BY t) AS i, t FROM (
    SELECT c::timestamptz + s * interval '59 s' FROM unnest(ARRAY['2006-10-29 02:31Z', '2006-04-02 03:31Z', '2012-02-26 02:00Z', '2012-10-21 03:00Z', '2012-10-28 01:00Z', '2011-12-30 10:00Z']) c, generate_series(-200, 200) s
    UNION ALL SELECT '1995-01-01Z'::timestamptz + s * interval '44 h 53 min 7.123457 s' FROM generate_series(1, 3000) s) v (t)) w;
INSERT INTO l VALUES (0, NULL, NULL, NULL), (-1, 'infinity', 'infinity', 'infinity'), (-2, '-infinity', '-infinity', '-infinity'), (-3, '4713-12-31 BC', '4713-12-31 BC', '4713-12-31 BC'), (-4, '290000-02-03', '290000-02-03', '5000000-02-03');
CREATE TABLE mixed USING lanes AS SELECT * FROM l ORDER BY id * 7919 % 5471;
CREATE TABLE h USING heap AS TABLE l;
CREATE FUNCTION differ(key text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint; asked text := format('SELECT %s AS k, count(*), min(id), max(id), sum(id) FROM %%s WHERE id > -3 GROUP BY 1', key); BEGIN
  EXECUTE format('WITH l AS MATERIALIZED (%s), m AS MATERIALIZED (%s), h AS MATERIALIZED (%s)
    SELECT (SELECT count(*) FROM (TABLE l EXCEPT TABLE h) x) + (SELECT count(*) FROM (TABLE h EXCEPT TABLE l) x) + (SELECT count(*) FROM (TABLE m EXCEPT TABLE h) x) + (SELECT count(*) FROM (TABLE h EXCEPT TABLE m) x)',
    format(asked, 'l'), format(asked, 'mixed'), format(asked, 'h')) INTO n;
  RETURN n;
END $$;
SET lanes.vectorize = require;
-- Buckets of a named zone.
SELECT zone, sum(differ(format('lanes.time_bucket(%L, ts, %L)', width, zone))) AS time_bucket, sum(differ(format('date_trunc(%L, ts, %L)', unit, zone))) AS date_trunc
FROM unnest(ARRAY['America/St_Johns', 'America/Sao_Paulo', 'Europe/Berlin', 'Pacific/Apia', 'Australia/Lord_Howe', 'UTC', 'EST5EDT', 'MSK', 'Asia/Kathmandu']) zone,
  unnest(ARRAY['15 min', '1 hour', '1 day', '1 week', '1 month', '5 years', '9 hours'], ARRAY['minute', 'hour', 'day', 'week', 'month', 'year', 'decade']) v (width, unit) GROUP BY 1 ORDER BY 1;
-- Buckets of the session's zone.
SET timezone = 'America/St_Johns';
SELECT unit, differ(format('date_trunc(%L, ts)', unit)) FROM unnest(ARRAY['milliseconds', 'second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year', 'decade', 'century']) unit;
SET timezone = 'Europe/Berlin';
SELECT unit, differ(format('date_trunc(%L, ts)', unit)) FROM unnest(ARRAY['minute', 'hour', 'day', 'week', 'month', 'quarter', 'year', 'decade', 'century']) unit;
-- Months, days and shorter widths without a zone; origins; dates.
SELECT width, differ(format('lanes.time_bucket(%L, ts)', width)) AS ts, differ(format('lanes.time_bucket(%L, local)', width)) AS local
FROM unnest(ARRAY['1 s', '7 min', '1 day', '10 days', '1 month', '5 months', '2 years']) width;
SELECT differ('lanes.time_bucket(''1 month'', ts, timestamptz ''2026-04-01 00:00Z'')'), differ('lanes.time_bucket(''90 min'', local, timestamp ''2026-04-01 00:07'')'), differ('lanes.time_bucket(''3 months'', day)'),
  differ('lanes.time_bucket(''10 days'', day, date ''2001-01-05'')'), differ('date_bin(''5 days 1 min'', ts, timestamptz ''2020-01-01'')'), differ('date_trunc(''month'', local)');
-- Distant times; errors are those of the functions.
SELECT lanes.time_bucket('1 month', ts) AS m, lanes.time_bucket('1 year', day) AS y, date_trunc('week', local) AS w, count(*) FROM l WHERE id < -2 GROUP BY 1, 2, 3 ORDER BY 1;
SELECT lanes.time_bucket('1 month 1 day', ts), count(*) FROM l GROUP BY 1;
SELECT lanes.time_bucket('1 hour', day), count(*) FROM l GROUP BY 1;
SELECT lanes.time_bucket('1 day', ts, 'No/Where'), count(*) FROM l GROUP BY 1;
SELECT date_trunc('nothing', ts), count(*) FROM l GROUP BY 1;
DROP FUNCTION differ; DROP TABLE l, mixed, h;
