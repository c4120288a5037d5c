-- Types that are stored unchanged: numeric, json, arrays, composites, domains, enums, ranges,
-- intervals.
SET timezone = 'UTC';
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (x int, y text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN label AS text NOT NULL;
CREATE TABLE other (
    id int, n numeric, n2 numeric(10,2), j json, jb jsonb, ia int[], ta text[], c pair, ca pair[], p positive, l label,
    m mood, iv interval, r int4range, mr int8multirange, ip inet, net cidr, mac macaddr, bits bit(5), vb varbit, tsv tsvector, tsq tsquery
) USING lanes;
INSERT INTO other VALUES
    (1, 123456789012345678901234567890.123456789, 1.005, '{"a" : 1}', '{"b": [1, 2, {"c": null}], "a": "é"}', '{1,2,NULL}', '{a,"b c",NULL,""}',
     (1, 'one'), ARRAY[(1, 'a')::pair, NULL, (NULL, NULL)::pair], 5, 'l', 'happy', '1 year -2 mons 3 days 04:05:06.789', '[1,10)', '{[1,3),[5,7)}',
     '192.168.0.1/24', '10.0.0.0/8', '08:00:2b:01:02:03', B'10101', B'1', 'a fat cat', 'fat & cat'),
    (2, 'NaN', 0, 'null', 'null', '{}', '{}', (NULL, NULL), '{}', 1, '', 'sad', '0', 'empty', '{}', '::1', '::/0', '00:00:00:00:00:00', B'00000', B'', '', ''),
    (3, 'Infinity', -99999999.99, '[]', '[]', '[2:4]={7,8,9}', '{{a,b},{c,d}}', (3, NULL), NULL, 2147483647, 'x', 'ok', '-178000000 years', '(,)', '{(,)}',
     '255.255.255.255', '1.2.3.4/32', 'ff:ff:ff:ff:ff:ff', B'11111', B'010101010101', NULL, NULL),
    (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'never null', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
\x on
SELECT * FROM other ORDER BY id;
\x off

-- Domains are checked, and a refused value leaves nothing behind.
INSERT INTO other (id, l, p) VALUES (5, 'x', 0);
INSERT INTO other (id, l) VALUES (5, NULL);
INSERT INTO other (id) VALUES (5);
INSERT INTO other (id, l, m) VALUES (5, 'x', 'angry');
SELECT count(*) FROM other;

-- Operators on these types.
SELECT id, n FROM other ORDER BY n, id;
SELECT id FROM other WHERE jb @> '{"a": "é"}';
SELECT id, jb -> 'b' -> 2 FROM other WHERE jb ? 'b';
SELECT id, ia[2], array_length(ia, 1), ta[1] FROM other ORDER BY id;
SELECT id, (c).x, (c).y FROM other ORDER BY id;
SELECT m, count(*) FROM other GROUP BY m ORDER BY m;
SELECT id FROM other WHERE r @> 5 ORDER BY id;
SELECT sum(n) FROM other WHERE id = 1;
SELECT unnest(ia) AS i FROM other WHERE id = 1;

-- Updates of a part of a value.
UPDATE other SET jb = jsonb_set(jb, '{a}', '2'), ia[1] = 100, c.y = 'changed' WHERE id = 1;
SELECT jb, ia, c FROM other WHERE id = 1;

-- An enum that grows, and large jsonb and arrays.
ALTER TYPE mood ADD VALUE 'ecstatic' AFTER 'happy';
INSERT INTO other (id, l, m) VALUES (6, 'x', 'ecstatic');
SELECT id, m FROM other WHERE m >= 'happy' ORDER BY m;
CREATE TABLE large_values (id int, jb jsonb, a int8[]) USING lanes;
INSERT INTO large_values SELECT i, (SELECT jsonb_object_agg('key ' || k, k * i) FROM generate_series(1, 2000) k), (SELECT array_agg(k * i::int8) FROM generate_series(1, 5000) k) FROM generate_series(1, 4) i;
SELECT id, (SELECT count(*) FROM jsonb_each(jb)), jb ->> 'key 77', array_length(a, 1), a[5000] FROM large_values ORDER BY id;

-- Whole-row values of a lanes table, and a column that contains a lanes row.
CREATE TABLE holder (id int, w large_values) USING lanes;
INSERT INTO holder SELECT id, l FROM large_values l;
SELECT id, (w).id, array_length((w).a, 1) FROM holder ORDER BY holder.id;
SELECT o FROM (SELECT id, m FROM other) o ORDER BY id;

-- Types with their own alignment inside arrays of composites.
CREATE TYPE aligned_pair AS (a "char", b float8);
CREATE TABLE nested (id int, v aligned_pair[]) USING lanes;
INSERT INTO nested SELECT i, ARRAY[('x', i)::aligned_pair, ('y', NULL)::aligned_pair] FROM generate_series(1, 3) i;
SELECT id, v[1], (v[2]).a FROM nested ORDER BY id;

DROP TABLE other, holder, large_values, nested;
DROP TYPE mood, pair, aligned_pair;
DROP DOMAIN positive, label;
