-- Declarative partitioning with lanes partitions, beside heap ones.
CREATE TABLE events (ts date NOT NULL, kind text, n int) PARTITION BY RANGE (ts);
CREATE TABLE events_01 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01') USING lanes;
CREATE TABLE events_02 PARTITION OF events FOR VALUES FROM ('2026-02-01') TO ('2026-03-01') USING lanes;
CREATE TABLE events_03 PARTITION OF events FOR VALUES FROM ('2026-03-01') TO ('2026-04-01') USING heap;
INSERT INTO events SELECT date '2026-01-01' + i % 90, 'k' || i % 3, i FROM generate_series(0, 8999) i;
SELECT tableoid::regclass AS part, count(*), sum(n), min(ts), max(ts) FROM events GROUP BY 1 ORDER BY 1;
INSERT INTO events VALUES ('2026-04-01', 'nowhere', 1);
INSERT INTO events_01 VALUES ('2026-02-01', 'wrong', 1);
SELECT count(*) FROM events WHERE ts BETWEEN '2026-01-30' AND '2026-02-02';
SELECT kind, count(*), sum(n) FROM events WHERE ts < '2026-02-15' GROUP BY kind ORDER BY kind;

-- COPY routes rows too.
COPY events FROM STDIN (FORMAT csv);
2026-01-15,copied,1
2026-02-15,copied,2
2026-03-15,copied,3
2026-01-16,copied,4
\.
SELECT tableoid::regclass, * FROM events WHERE kind = 'copied' ORDER BY n;

-- An UPDATE that moves a row from lanes to lanes, to heap, and from heap.
UPDATE events SET ts = '2026-02-20' WHERE kind = 'copied' AND n = 1 RETURNING tableoid::regclass, *;
UPDATE events SET ts = '2026-03-20' WHERE kind = 'copied' AND n = 2;
UPDATE events SET ts = '2026-01-20' WHERE kind = 'copied' AND n = 3;
UPDATE events SET n = n + 10 WHERE kind = 'copied';
UPDATE events SET ts = '2027-01-01' WHERE kind = 'copied';
DELETE FROM events WHERE kind = 'copied' AND n = 14 RETURNING tableoid::regclass, n;
SELECT tableoid::regclass, * FROM events WHERE kind = 'copied' ORDER BY n;

-- Attach and detach.
CREATE TABLE events_04 (n int, ts date NOT NULL, kind text) USING lanes;
INSERT INTO events_04 SELECT i, date '2026-04-01' + i % 30, 'april' FROM generate_series(0, 99) i;
ALTER TABLE events ATTACH PARTITION events_04 FOR VALUES FROM ('2026-04-01') TO ('2026-05-01');
SELECT count(*), sum(n) FROM events WHERE kind = 'april';
INSERT INTO events VALUES ('2026-04-30', 'april', 1000);
SELECT * FROM events_04 WHERE n = 1000;
ALTER TABLE events DETACH PARTITION events_02;
SELECT count(*) FROM events;
SELECT count(*) FROM events_02;
INSERT INTO events_02 VALUES ('2026-05-01', 'free', 1);
ALTER TABLE events ATTACH PARTITION events_02 FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
DELETE FROM events_02 WHERE ts >= '2026-03-01';
ALTER TABLE events ATTACH PARTITION events_02 FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
SELECT count(*) FROM events;

-- A default partition.
CREATE TABLE events_other PARTITION OF events DEFAULT USING lanes;
INSERT INTO events VALUES ('2030-01-01', 'other', 1);
CREATE TABLE events_30 PARTITION OF events FOR VALUES FROM ('2030-01-01') TO ('2031-01-01') USING lanes;
DELETE FROM events WHERE kind = 'other';
CREATE TABLE events_30 PARTITION OF events FOR VALUES FROM ('2030-01-01') TO ('2031-01-01') USING lanes;
INSERT INTO events VALUES ('2030-01-01', 'other', 2);
SELECT tableoid::regclass, * FROM events WHERE ts >= '2030-01-01';

-- DDL on the parent applies to every partition.
ALTER TABLE events ADD COLUMN extra text DEFAULT 'e';
SELECT tableoid::regclass, count(extra) FROM events GROUP BY 1 ORDER BY 1;
ALTER TABLE events DROP COLUMN kind;
SELECT * FROM events WHERE n IN (1000, 2) AND ts >= '2026-04-01' ORDER BY n;
TRUNCATE events_01;
SELECT tableoid::regclass, count(*) FROM events GROUP BY 1 ORDER BY 1;
DROP TABLE events_02;
TRUNCATE events;
SELECT count(*) FROM events;
DROP TABLE events;

-- List and hash, in two levels; partition-wise plans have the same result.
CREATE TABLE deep (region text, id int, v float8) PARTITION BY LIST (region);
CREATE TABLE deep_eu PARTITION OF deep FOR VALUES IN ('eu') PARTITION BY HASH (id);
CREATE TABLE deep_eu_0 PARTITION OF deep_eu FOR VALUES WITH (MODULUS 2, REMAINDER 0) USING lanes;
CREATE TABLE deep_eu_1 PARTITION OF deep_eu FOR VALUES WITH (MODULUS 2, REMAINDER 1) USING lanes;
CREATE TABLE deep_us PARTITION OF deep FOR VALUES IN ('us', NULL) USING lanes;
INSERT INTO deep SELECT CASE i % 3 WHEN 0 THEN 'eu' WHEN 1 THEN 'us' END, i, i FROM generate_series(1, 3000) i;
SELECT region, count(*), sum(v) FROM deep GROUP BY region ORDER BY region;
SELECT tableoid::regclass, count(*) > 100 AS enough FROM deep GROUP BY 1 ORDER BY 1;
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SELECT region, count(*), sum(v) FROM deep GROUP BY region ORDER BY region;
SELECT count(*), sum(a.v + b.v) FROM deep a JOIN deep b USING (region, id);
RESET ALL;
UPDATE deep SET region = 'us' WHERE region = 'eu' AND id < 100;
SELECT region, count(*), sum(v) FROM deep GROUP BY region ORDER BY region;
CREATE TABLE deep_copy USING lanes AS TABLE deep;
SELECT count(*), sum(v) FROM deep_copy;
DROP TABLE deep, deep_copy;
