-- Lanes tables in all kinds of plans, with heap tables and each other.
CREATE TABLE facts (id int, k int, v float8, t text) USING lanes;
CREATE TABLE dims (k int PRIMARY KEY, name text) USING heap;
INSERT INTO dims SELECT i, 'dim ' || i FROM generate_series(1, 20) i;
INSERT INTO facts SELECT i, CASE WHEN i % 10 <> 0 THEN i % 25 END, i / 8.0, 't' || i % 4 FROM generate_series(1, 5000) i;
ANALYZE facts, dims;
SELECT d.name, count(*), sum(f.v) FROM facts f JOIN dims d USING (k) WHERE d.k < 5 GROUP BY d.name ORDER BY d.name;
SELECT count(*), count(d.k) FROM facts f LEFT JOIN dims d USING (k);
SELECT count(*), count(f.id) FROM facts f RIGHT JOIN dims d ON d.k = f.k AND f.id < 100;
SELECT count(*), count(f.id), count(d.k) FROM facts f FULL JOIN dims d ON d.k = f.k;
SELECT count(*) FROM facts f WHERE EXISTS (SELECT 1 FROM dims d WHERE d.k = f.k);
SELECT count(*) FROM facts f WHERE NOT EXISTS (SELECT 1 FROM dims d WHERE d.k = f.k);
SELECT count(*) FROM facts WHERE k NOT IN (SELECT k FROM dims WHERE k > 5);
SELECT d.k, l.* FROM dims d CROSS JOIN LATERAL (SELECT f.id, f.v FROM facts f WHERE f.k = d.k ORDER BY f.id DESC LIMIT 1) l WHERE d.k <= 3 ORDER BY d.k;

-- Each join method has the same result.
SET enable_hashjoin = off;
SELECT count(*), sum(f.v), sum(length(d.name)) FROM facts f JOIN dims d USING (k);
SET enable_mergejoin = off;
SELECT count(*), sum(f.v), sum(length(d.name)) FROM facts f JOIN dims d USING (k);
RESET ALL;
SELECT count(*), sum(f.v), sum(length(d.name)) FROM facts f JOIN dims d USING (k);
SELECT count(*), sum(a.v) FROM facts a JOIN facts b ON b.id = a.id + 1 AND b.t = 't1';

-- Aggregates, sets, windows.
SELECT t, k, count(*) FROM facts WHERE k < 3 GROUP BY GROUPING SETS ((t), (k), ()) ORDER BY t, k;
SELECT t, count(*) FILTER (WHERE k IS NULL), sum(v) FROM facts GROUP BY t HAVING sum(v) > 0 ORDER BY t;
SELECT DISTINCT ON (t) t, id FROM facts ORDER BY t, id DESC;
SELECT id, sum(v) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM facts ORDER BY id LIMIT 4;
SELECT id, rank() OVER (PARTITION BY t ORDER BY v DESC) FROM facts ORDER BY 2, 1 LIMIT 4;
SELECT count(*) FROM (SELECT k FROM facts UNION SELECT k FROM dims) s;
SELECT count(*) FROM (SELECT k FROM facts INTERSECT SELECT k FROM dims) s;
SELECT count(*) FROM (SELECT k FROM facts EXCEPT ALL SELECT k FROM dims) s;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v), mode() WITHIN GROUP (ORDER BY t) FROM facts;
WITH RECURSIVE chain(id) AS (SELECT 1 UNION ALL SELECT f.id FROM facts f JOIN chain c ON f.id = c.id * 2) SELECT array_agg(id ORDER BY id) FROM chain;
SELECT count(*), max(id) FROM facts WHERE (id, k) > (4990, 3);
SELECT id FROM facts ORDER BY v DESC, id LIMIT 3 OFFSET 2;

-- Parallel plans.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT count(*), sum(v), count(DISTINCT t), max(id) FROM facts;
SELECT t, count(*), sum(k) FROM facts GROUP BY t ORDER BY t;
SELECT count(*), sum(f.v) FROM facts f JOIN dims d USING (k);
SELECT count(*) FROM facts a JOIN facts b USING (id);
SELECT set_config(name, 'on', false) AS forced FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT count(*), sum(v) FROM facts WHERE id > 2500;
RESET ALL;

-- Prepared statements, generic plans, and invalidation by DDL.
PREPARE by_id(int) AS SELECT id, t FROM facts WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_id(10);
EXECUTE by_id(NULL);
ALTER TABLE facts ADD COLUMN later int DEFAULT 1;
EXECUTE by_id(11);
PREPARE everything AS SELECT * FROM facts WHERE id = 12;
EXECUTE everything;
ALTER TABLE facts DROP COLUMN later;
EXECUTE everything;
EXECUTE by_id(5000);
RESET ALL;
DEALLOCATE ALL;

-- Joined writes between the two kinds of table.
UPDATE facts SET t = d.name FROM dims d WHERE d.k = facts.k AND facts.id <= 3;
SELECT id, t FROM facts WHERE id <= 4 ORDER BY id;
UPDATE dims SET name = (SELECT count(*)::text FROM facts f WHERE f.k = dims.k) WHERE k <= 2;
SELECT * FROM dims WHERE k <= 2 ORDER BY k;
DELETE FROM dims USING facts f WHERE f.k = dims.k AND f.id = 1;
SELECT count(*) FROM dims;
INSERT INTO dims SELECT DISTINCT k, 'from facts' FROM facts WHERE k IS NOT NULL ON CONFLICT (k) DO NOTHING;
SELECT count(*), count(*) FILTER (WHERE name = 'from facts') FROM dims;

DROP TABLE facts, dims;
