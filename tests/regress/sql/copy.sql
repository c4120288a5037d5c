-- COPY in and out in every format.
SET timezone = 'UTC';
SELECT current_setting('data_directory') || '/copy_round_trip' AS path \gset
CREATE TABLE copied (id int, b bool, f float8, t text, tz timestamptz, n numeric, j jsonb, a int[], x bytea) USING lanes;
COPY copied FROM STDIN;
1	t	1.5	plain	2026-01-01 00:00:00+00	1.10	{"a": 1}	{1,2}	\\x0001
2	f	NaN	\N	infinity	NaN	null	{}	\\x
3	\N	-0		-infinity	\N	\N	\N	\N
4	t	-Infinity	tab\tnew\nback\\	2026-01-01 00:00:00.123456+00	-0.000001	[]	{NULL}	\\xff
\.
COPY copied (id, t) FROM STDIN (FORMAT csv, HEADER);
id,t
5,"quoted, ""twice"""
6,
7,""
8,"two
lines"
\.
COPY copied (t, id) FROM STDIN (DELIMITER '|', NULL 'nil');
nil|9
|10
\.
SELECT * FROM copied ORDER BY id;
COPY copied TO STDOUT;
COPY (SELECT id, t FROM copied ORDER BY id) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE (t));
COPY copied (id, b, f) TO STDOUT (FORMAT csv);

-- Round trips through files.
CREATE TABLE back (LIKE copied) USING lanes;
COPY copied TO :'path' (FORMAT binary);
COPY back FROM :'path' (FORMAT binary);
COPY copied TO :'path' (FORMAT csv);
COPY back FROM :'path' (FORMAT csv);
COPY copied TO :'path';
COPY back FROM :'path';
SELECT id, count(*), count(DISTINCT back) FROM back GROUP BY id ORDER BY id;
SELECT count(*) FROM (SELECT * FROM back EXCEPT SELECT * FROM copied) difference;

-- Large: many buffered batches, with all columns and NULLs.
CREATE TABLE large (id int, v text, f float8) USING lanes;
INSERT INTO large SELECT i, CASE WHEN i % 10 <> 0 THEN 'v' || i % 100 END, i / 3.0 FROM generate_series(1, 100000) i;
COPY large TO :'path' (FORMAT binary);
CREATE TABLE large_back (LIKE large) USING lanes;
COPY large_back FROM :'path' (FORMAT binary);
SELECT count(*), sum(id::int8), count(v), count(DISTINCT v), max(f) FROM large_back;
SELECT count(*) FROM large JOIN large_back USING (id) WHERE large.v IS NOT DISTINCT FROM large_back.v AND large.f = large_back.f;
COPY large_back FROM :'path' (FORMAT binary) WHERE id % 50000 = 0;
SELECT id, count(*) FROM large_back GROUP BY id HAVING count(*) > 1 ORDER BY id;

-- A bad line rolls everything back. A file in another format or a truncated one does too.
COPY copied (id, f) FROM STDIN;
100	1
101	one
\.
COPY copied (id, f) FROM STDIN;
100	1	extra
\.
COPY (SELECT id FROM copied) TO :'path' (FORMAT csv);
COPY copied (id) FROM :'path' (FORMAT binary);
SELECT count(*) FROM copied WHERE id >= 100;
ALTER TABLE copied ADD CHECK (id < 1000), ALTER COLUMN id SET NOT NULL;
COPY copied (id) FROM STDIN;
999
1000
\.
COPY copied (t) FROM STDIN;
no id
\.
SELECT count(*) FROM copied WHERE id >= 100;

-- COPY of nothing.
COPY copied (id) FROM STDIN;
\.
SELECT count(*) FROM copied;

-- FREEZE is only allowed in the transaction that created or truncated the table.
COPY copied (id) FROM STDIN (FREEZE);
11
\.
BEGIN;
TRUNCATE back;
COPY back (id) FROM STDIN (FREEZE);
1
2
\.
SELECT count(*) FROM back;
COMMIT;
SELECT id FROM back ORDER BY id;
BEGIN;
CREATE TABLE frozen (id int) USING lanes;
SAVEPOINT s;
COPY frozen FROM STDIN;
1
\.
ROLLBACK TO s;
COPY frozen FROM STDIN;
2
\.
COMMIT;
SELECT id FROM frozen ORDER BY id;
BEGIN;
TRUNCATE frozen;
COPY frozen FROM STDIN (FREEZE);
3
\.
ROLLBACK;
SELECT id FROM frozen ORDER BY id;

-- COPY fires triggers and fills defaults and generated columns.
CREATE TABLE filled (id int, d int DEFAULT 7, g int GENERATED ALWAYS AS (id * 2) STORED) USING lanes;
CREATE FUNCTION filled_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 2 THEN RETURN NULL; END IF; NEW.id := NEW.id * 10; RETURN NEW; END $$;
CREATE TRIGGER filled_row BEFORE INSERT ON filled FOR EACH ROW EXECUTE FUNCTION filled_row();
COPY filled (id) FROM STDIN;
1
2
3
\.
SELECT * FROM filled ORDER BY id;
COPY filled TO STDOUT;

-- COPY in a transaction that has already written rows and is then rolled back.
BEGIN;
INSERT INTO frozen VALUES (4);
COPY frozen FROM STDIN;
5
\.
SELECT id FROM frozen ORDER BY id;
ROLLBACK;
SELECT id FROM frozen ORDER BY id;

DROP TABLE copied, back, large, large_back, frozen, filled;
DROP FUNCTION filled_row();
