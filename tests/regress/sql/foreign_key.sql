-- A lanes table refers to a heap table.
CREATE TABLE hosts (id int PRIMARY KEY, name text) USING heap;
INSERT INTO hosts VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four'), (5, 'five');
CREATE TABLE readings (host int REFERENCES hosts, v float8) USING lanes;
INSERT INTO readings VALUES (1, 1.0), (2, 2.0), (NULL, 0);
INSERT INTO readings VALUES (9, 9.0);
INSERT INTO readings SELECT i, i FROM generate_series(1, 9) i;
UPDATE readings SET host = 8 WHERE host = 1;
DELETE FROM hosts WHERE id = 1;
UPDATE hosts SET id = 10 WHERE id = 2;
DELETE FROM hosts WHERE id = 5;
COPY readings FROM STDIN;
3	3
7	7
\.
SELECT * FROM readings ORDER BY host, v;
ALTER TABLE readings DROP CONSTRAINT readings_host_fkey;

-- Actions that write the lanes table.
ALTER TABLE readings ADD FOREIGN KEY (host) REFERENCES hosts ON DELETE CASCADE ON UPDATE CASCADE;
INSERT INTO readings VALUES (3, 3.0), (3, 3.1);
UPDATE hosts SET id = 30 WHERE id = 3;
SELECT * FROM readings ORDER BY host, v;
DELETE FROM hosts WHERE id = 30;
SELECT * FROM readings ORDER BY host, v;
ALTER TABLE readings DROP CONSTRAINT readings_host_fkey;
ALTER TABLE readings ADD FOREIGN KEY (host) REFERENCES hosts ON DELETE SET NULL;
DELETE FROM hosts WHERE id = 2;
SELECT * FROM readings ORDER BY host, v;
ALTER TABLE readings DROP CONSTRAINT readings_host_fkey;

-- Constraints that are validated over existing rows, and deferred ones.
INSERT INTO readings VALUES (77, 0);
ALTER TABLE readings ADD FOREIGN KEY (host) REFERENCES hosts;
ALTER TABLE readings ADD CONSTRAINT fk FOREIGN KEY (host) REFERENCES hosts DEFERRABLE INITIALLY DEFERRED NOT VALID;
ALTER TABLE readings VALIDATE CONSTRAINT fk;
DELETE FROM readings WHERE host = 77;
ALTER TABLE readings VALIDATE CONSTRAINT fk;
BEGIN;
INSERT INTO readings VALUES (6, 6.0);
INSERT INTO hosts VALUES (6, 'six');
COMMIT;
BEGIN;
INSERT INTO readings VALUES (7, 7.0);
COMMIT;
BEGIN;
INSERT INTO readings VALUES (7, 7.0);
DELETE FROM readings WHERE host = 7;
COMMIT;
SELECT * FROM readings ORDER BY host, v;
TRUNCATE hosts;
DROP TABLE readings, hosts;
