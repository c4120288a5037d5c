-- requires: icu
-- Partitions of LanesWindow come in the order of their collation.
CREATE TABLE texts (id int, t text COLLATE "en-x-icu") USING lanes;
INSERT INTO texts VALUES (1, 'b'), (2, 'B'), (3, 'a'), (4, 'A'), (5, NULL), (6, ''), (7, 'a b'), (8, 'ab'), (9, 'é'), (10, 'é');
EXPLAIN (COSTS OFF) SELECT id, t, row_number() OVER (PARTITION BY t ORDER BY id) FROM texts ORDER BY t, id;
SELECT id, t, row_number() OVER (PARTITION BY t ORDER BY id) FROM texts ORDER BY t, id;
-- The opposite order needs a Sort.
EXPLAIN (COSTS OFF) SELECT id, t, row_number() OVER (PARTITION BY t ORDER BY id DESC) FROM texts ORDER BY t DESC NULLS LAST, id DESC;
SELECT id, t, row_number() OVER (PARTITION BY t ORDER BY id DESC) FROM texts ORDER BY t DESC NULLS LAST, id DESC;
SELECT (SELECT array_agg(id) FROM (SELECT id, row_number() OVER (PARTITION BY t ORDER BY id) FROM texts ORDER BY t DESC, id) s) = array_agg(id ORDER BY t DESC, id) AS is_same FROM texts;
DROP TABLE texts;
