-- Text: NULL, empty, unicode, long values, few and many distinct values.
CREATE TABLE words (id int, v text) USING lanes;
INSERT INTO words VALUES (1, 'plain'), (2, ''), (3, NULL), (4, 'naïve Ελληνικά 日本語 𝔘𝔫𝔦'), (5, ' '), (6, E'tab\there\nnewline\\backslash'),
    (7, 'plain'), (8, 'PLAIN'), (9, ''), (10, repeat('é', 10));
SELECT id, v, length(v), octet_length(v) FROM words ORDER BY id;
SELECT count(*), count(v), count(DISTINCT v) FROM words;
SELECT id FROM words WHERE v = '' ORDER BY id;
SELECT id FROM words WHERE v IS NULL ORDER BY id;
SELECT id FROM words WHERE v = 'plain' ORDER BY id;
SELECT id FROM words WHERE v IN ('plain', 'PLAIN') ORDER BY id;
SELECT id FROM words WHERE v LIKE 'p%' ORDER BY id;
SELECT id FROM words WHERE v ~ '日本' ORDER BY id;
SELECT id FROM words WHERE v COLLATE "C" > 'a' ORDER BY id;
SELECT min(v COLLATE "C"), max(v COLLATE "C") FROM words WHERE id < 4 OR id = 8;

-- Lengths around the short header of a variable-length value (126 and 127 bytes), and around the
-- page and TOAST sizes.
CREATE TABLE lengths (id int, v text) USING lanes;
INSERT INTO lengths SELECT n, repeat('x', n) FROM unnest(ARRAY[0, 1, 125, 126, 127, 128, 1999, 2000, 2031, 2032, 2033, 8000, 8155, 8191, 8192, 8193, 16384, 65535, 65536, 100000]) n;
SELECT id, length(v) = id AND v = repeat('x', id) AS same FROM lengths ORDER BY id;

-- Long values that do not compress.
CREATE TABLE noise (id int, v text) USING lanes;
INSERT INTO noise SELECT i, (SELECT string_agg(md5(i::text || '.' || j::text), '') FROM generate_series(1, 3200) j) FROM generate_series(1, 5) i;
SELECT id, length(v), md5(v) = (SELECT md5(string_agg(md5(id::text || '.' || j::text), '')) FROM generate_series(1, 3200) j) AS same FROM noise ORDER BY id;
UPDATE noise SET v = v || v WHERE id = 3;
SELECT id, length(v) FROM noise ORDER BY id;
-- Values that a heap table passes on compressed or out of line.
CREATE TABLE heap_source (id int, v text) USING heap;
ALTER TABLE heap_source ALTER COLUMN v SET STORAGE EXTERNAL;
INSERT INTO heap_source SELECT id, v FROM noise;
INSERT INTO noise SELECT id + 10, v FROM heap_source;
ALTER TABLE heap_source ALTER COLUMN v SET STORAGE EXTENDED;
INSERT INTO heap_source SELECT 20, repeat('compressible ', 8000);
INSERT INTO noise SELECT id, v FROM heap_source WHERE id = 20;
DROP TABLE heap_source;
SELECT id, length(v), md5(v) FROM noise WHERE id >= 10 ORDER BY id;
SELECT a.id, a.v = b.v AS same FROM noise a JOIN noise b ON b.id = a.id + 10 ORDER BY 1;

-- Few distinct values, then many: the dictionary is given up in the middle of the table, without a
-- visible effect.
CREATE TABLE dictionary (id int, few text, many text, mixed text) USING lanes;
INSERT INTO dictionary SELECT i, 'service-' || i % 7, 'request-' || i, CASE WHEN i < 4000 THEN 'k' || i % 5 WHEN i % 11 <> 0 THEN 'unique ' || i END FROM generate_series(1, 20000) i;
SELECT few, count(*), min(id), max(id) FROM dictionary GROUP BY few ORDER BY few;
SELECT count(DISTINCT few), count(DISTINCT many), count(DISTINCT mixed), count(mixed) FROM dictionary;
SELECT id, few, many, mixed FROM dictionary WHERE many = 'request-12345';
SELECT id, mixed FROM dictionary WHERE id BETWEEN 3995 AND 4005 ORDER BY id;
SELECT count(*) FROM dictionary WHERE mixed IS NULL;
SELECT md5(string_agg(few || many || coalesce(mixed, '-'), ',' ORDER BY id)) FROM dictionary;
INSERT INTO dictionary SELECT 20000 + i, 'service-' || i % 7, NULL, 'k1' FROM generate_series(1, 3000) i;
SELECT few, count(*), count(many) FROM dictionary WHERE id > 19000 GROUP BY few ORDER BY few;
SELECT mixed, count(*) FROM dictionary GROUP BY mixed HAVING count(*) > 10 ORDER BY mixed;

-- char(n), varchar(n), name, and unlimited varchar.
CREATE TABLE padded (id int, c3 char(3), c1 char, v3 varchar(3), v varchar, n name) USING lanes;
INSERT INTO padded VALUES (1, 'a', 'b', 'abc', 'any', 'name'), (2, 'abc', '', '', '', ''), (3, NULL, NULL, NULL, NULL, NULL), (4, 'é', 'é', 'éé', 'é', repeat('n', 70)::name);
INSERT INTO padded VALUES (5, 'abcd', 'a', 'a', 'a', 'a');
INSERT INTO padded VALUES (5, 'abc', 'a', 'abcd', 'a', 'a');
SELECT id, '[' || c3 || ']' AS c3, octet_length(c3) AS c3_bytes, c1, v3, v, n FROM padded ORDER BY id;
SELECT id FROM padded WHERE c3 = 'a   ' ORDER BY id;
SELECT id FROM padded WHERE n = 'name' ORDER BY id;

-- bytea with every byte value, and the xid-like cstring types.
CREATE TABLE bytes (id int, v bytea) USING lanes;
INSERT INTO bytes SELECT 1, string_agg(set_byte('\x00', 0, i), NULL ORDER BY i) FROM generate_series(0, 255) i;
INSERT INTO bytes VALUES (2, ''), (3, NULL), (4, '\x00'), (5, decode(repeat('00', 70000), 'hex'));
SELECT id, length(v), md5(v) FROM bytes ORDER BY id;
SELECT v FROM bytes WHERE id = 1;

DROP TABLE words, lengths, noise, dictionary, padded, bytes;
