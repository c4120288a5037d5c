-- Many segments and vectors, many runs, and aborted holes between them. A single wrong row would
-- change the sums.
CREATE TABLE big (ts timestamptz, series int, value float8, tag text, ok bool) USING lanes;
SET timezone = 'UTC';
INSERT INTO big SELECT timestamptz '2026-01-01' + i * interval '1 second', i % 100, i * 0.5, 'tag ' || i % 17, i % 7 = 0 FROM generate_series(1, 140000) i;
BEGIN;
INSERT INTO big SELECT timestamptz '2026-02-01', 0, 0, 'aborted', false FROM generate_series(1, 5000) i;
ROLLBACK;
DO $$
BEGIN
    FOR k IN 0 .. 99 LOOP
        BEGIN
            INSERT INTO big SELECT timestamptz '2026-01-03' + (k * 700 + i) * interval '1 second', k, i, 'tag ' || i % 17, i % 7 = 0 FROM generate_series(1, 700) i;
            IF k % 10 = 3 THEN RAISE EXCEPTION 'undo'; END IF;
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
    END LOOP;
END $$;
SELECT count(*), sum(value), sum(series), count(*) FILTER (WHERE ok), min(ts), max(ts), count(DISTINCT tag) FROM big;
SELECT series, count(*), sum(value), max(ts) FROM big WHERE series IN (0, 3, 13, 99) GROUP BY series ORDER BY series;
SELECT tag, count(*), sum(value) FROM big GROUP BY tag ORDER BY tag;
SELECT date_trunc('day', ts) AS day, count(*), avg(value) FROM big GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM big WHERE ts BETWEEN '2026-01-01 10:00:00+00' AND '2026-01-01 11:00:00+00';
SELECT * FROM big WHERE ts = '2026-01-02 00:00:00+00';

-- Deletes and updates all over the table, in several transactions.
DELETE FROM big WHERE series % 2 = 1;
UPDATE big SET value = 0, tag = 'zero' WHERE series = 50;
BEGIN;
UPDATE big SET value = -1;
ROLLBACK;
SELECT count(*), sum(value), count(DISTINCT series), count(*) FILTER (WHERE tag = 'zero') FROM big;
VACUUM big;
SELECT count(*), sum(value), count(DISTINCT series), count(*) FILTER (WHERE tag = 'zero') FROM big;
INSERT INTO big SELECT * FROM big WHERE series < 10;
SELECT count(*), sum(value) FROM big;
DELETE FROM big WHERE ctid IN (SELECT ctid FROM big WHERE series = 4 LIMIT 100);
SELECT count(*) FROM big WHERE series = 4;
DELETE FROM big;
VACUUM big;
SELECT count(*) FROM big;
INSERT INTO big VALUES ('2026-01-01', 1, 1, 'one', true);
SELECT * FROM big;
DROP TABLE big;
