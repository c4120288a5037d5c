-- Fixed-width types: every special value survives a round trip.
CREATE TABLE fixed (
    id int NOT NULL,
    b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8,
    ts timestamp, tz timestamptz, d date, u uuid, o oid, c "char", t time, m money
) USING lanes;
SET timezone = 'UTC';
SET lc_monetary = 'C';
INSERT INTO fixed VALUES
    (1, true, 1, 1, 1, 1.5, 1.5, '2026-01-01 00:00:00', '2026-01-01 00:00:00+00', '2026-01-01',
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1, 'a', '12:34:56.789', 12.34),
    (2, false, -32768, -2147483648, -9223372036854775808, '-infinity', '-infinity', '-infinity', '-infinity', '-infinity',
     '00000000-0000-0000-0000-000000000000', 0, '', '00:00:00', -0.01),
    (3, true, 32767, 2147483647, 9223372036854775807, 'infinity', 'infinity', 'infinity', 'infinity', 'infinity',
     'ffffffff-ffff-ffff-ffff-ffffffffffff', 4294967295, '~', '24:00:00', 92233720368547758.07),
    (4, false, 0, 0, 0, 'NaN', 'NaN', '4714-11-24 00:00:00 BC', '4714-11-24 00:00:00+00 BC', '4713-01-01 BC',
     '00000000-0000-0000-0000-000000000001', 2, 'z', '23:59:59.999999', 0),
    (5, true, -1, -1, -1, '-0', '-0', '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999+00', '5874897-12-31',
     '10000000-0000-0000-0000-000000000000', 3, '0', '01:00', 1),
    (6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (7, NULL, 7, NULL, 7, NULL, 7, NULL, '2026-01-07 00:00:00+00', NULL, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a17', NULL, '7', NULL, 7);
SELECT * FROM fixed ORDER BY id;

-- The bits of floats: negative zero stays negative, denormals and the extremes stay exact.
CREATE TABLE float_bits (id int, f4 float4, f8 float8) USING lanes;
INSERT INTO float_bits VALUES
    (1, '-0', '-0'), (2, '1e-45', '4.9e-324'), (3, '3.4028235e38', '1.7976931348623157e308'),
    (4, '1.17549435e-38', '2.2250738585072014e-308'), (5, 'NaN', 'NaN'), (6, '0.1', '0.1');
SELECT id, encode(float4send(f4), 'hex') AS f4, encode(float8send(f8), 'hex') AS f8 FROM float_bits ORDER BY id;

-- Comparison: NaN is the greatest and equals itself, -0 equals 0.
SELECT id FROM fixed WHERE f8 = 'NaN' ORDER BY id;
SELECT id FROM fixed WHERE f8 > 'infinity' ORDER BY id;
SELECT id FROM fixed WHERE f8 = 0 ORDER BY id;
SELECT id FROM fixed WHERE f4 <= 'infinity' ORDER BY id;
SELECT id, f8 FROM fixed ORDER BY f8 DESC NULLS LAST, id;
SELECT f8, count(*) FROM fixed GROUP BY f8 ORDER BY f8;
SELECT min(f4), max(f4), min(f8), max(f8) FROM fixed;
SELECT min(tz), max(tz), min(d), max(d), min(ts), max(ts) FROM fixed;
SELECT sum(i2), sum(i4), sum(i8), avg(i2), avg(i4), count(b), count(*) FROM fixed;
SELECT bool_and(b), bool_or(b), count(*) FILTER (WHERE b), count(*) FILTER (WHERE NOT b), count(*) FILTER (WHERE b IS NULL) FROM fixed;
SELECT bool_and(b) FROM fixed WHERE id = 6;
SELECT sum(i8), avg(f8), min(d), count(u) FROM fixed WHERE id = 6;
SELECT sum(f8) FROM fixed WHERE id > 100;

-- NULL tests and three-valued logic.
SELECT id FROM fixed WHERE i4 IS NULL ORDER BY id;
SELECT id FROM fixed WHERE i4 IS NOT NULL ORDER BY id;
SELECT id FROM fixed WHERE b ORDER BY id;
SELECT id FROM fixed WHERE NOT b ORDER BY id;
SELECT id FROM fixed WHERE b IS NOT TRUE ORDER BY id;
SELECT id FROM fixed WHERE b IS UNKNOWN ORDER BY id;
SELECT id FROM fixed WHERE i4 <> 1 ORDER BY id;
SELECT id FROM fixed WHERE i4 IS DISTINCT FROM 1 ORDER BY id;
SELECT id FROM fixed WHERE i4 NOT IN (0, 1) ORDER BY id;
SELECT id FROM fixed WHERE NOT (i4 > 0 OR f8 > 0) ORDER BY id;
SELECT id FROM fixed WHERE fixed IS NOT NULL ORDER BY id;

-- Overflow is an error, as on heap.
SELECT i4 + 1 FROM fixed WHERE id = 3;
SELECT i2 - 1::int2 FROM fixed WHERE id = 2;
SELECT sum(f8 * 1.7e308) FROM float_bits WHERE id IN (3);

-- A bool column over many vectors and bitmap words, with NULLs.
CREATE TABLE bits (id int, b bool) USING lanes;
INSERT INTO bits SELECT i, CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END FROM generate_series(1, 10001) i;
SELECT b, count(*), min(id), max(id), sum(id) FROM bits GROUP BY b ORDER BY b;
SELECT count(*) FROM bits WHERE b AND id > 5000;
SELECT id, b FROM bits WHERE id BETWEEN 4095 AND 4100 ORDER BY id;

-- Every alignment beside every other one.
CREATE TABLE aligned (a "char", b float8, c bool, d int2, e uuid, f "char", g int8, h int4, i "char", j time, k timetz, l interval, m macaddr8, n tid, o pg_lsn, p point, q box) USING lanes;
INSERT INTO aligned VALUES
    ('a', 1, true, 2, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'f', 8, 4, 'i', '01:02:03', '01:02:03+04', '1 year 2 mons 3 days 04:05:06',
     '08:00:2b:01:02:03:04:05', '(1,2)', '16/B374D848', '(1,2)', '((3,4),(1,2))'),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    ('b', NULL, false, NULL, '00000000-0000-0000-0000-000000000000', NULL, -8, NULL, 'j', NULL, '23:59:59.999999-12', NULL,
     '00:00:00:00:00:00:00:00', NULL, '0/0', NULL, '((0,0),(0,0))');
SELECT * FROM aligned ORDER BY a NULLS FIRST;

-- A table without columns has rows, and so does one whose columns are all dropped.
CREATE TABLE no_columns () USING lanes;
INSERT INTO no_columns DEFAULT VALUES;
INSERT INTO no_columns DEFAULT VALUES;
INSERT INTO no_columns SELECT FROM generate_series(1, 100);
SELECT count(*) FROM no_columns;
SELECT FROM no_columns LIMIT 2;

DROP TABLE fixed, float_bits, bits, aligned, no_columns;
