-- Operations that lanes tables do not support. Each is refused by name, with a hint, and leaves
-- nothing behind.
CREATE TABLE t (id int, v text) USING lanes;
INSERT INTO t VALUES (1, 'one'), (2, 'two');
-- A foreign key cannot refer to rows without a key.
CREATE TABLE referrer (id int REFERENCES t (id));
CREATE TABLE referrer (id int REFERENCES t);

-- A conflict target needs a key; DO UPDATE needs a target.
INSERT INTO t VALUES (1, 'again') ON CONFLICT (id) DO NOTHING;
INSERT INTO t VALUES (1, 'again') ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO t VALUES (1, 'again') ON CONFLICT DO UPDATE SET v = excluded.v;

-- A table has either indexes or dedup.
ALTER TABLE t SET (order_by = 'id', dedup = on);
CREATE INDEX ON t (id);
ALTER TABLE t ADD PRIMARY KEY (id);
ALTER TABLE t RESET (dedup);
ALTER TABLE t ADD PRIMARY KEY (id);
ALTER TABLE t SET (dedup = on);
CREATE TABLE keyed (id int PRIMARY KEY) USING lanes WITH (order_by = 'id', dedup = on);
SELECT to_regclass('keyed') IS NULL AS nothing_left;

-- Afterwards the table is unchanged.
SELECT * FROM t ORDER BY id;
UPDATE t SET v = 'changed' WHERE id = 1;
SELECT * FROM t ORDER BY id;
DROP TABLE t;
