-- Triggers of every kind.
CREATE TABLE t (id int, v text) USING lanes;
CREATE TABLE log (n serial, line text) USING heap;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log (line) VALUES (format('%s %s %s old=%s new=%s', TG_WHEN, TG_LEVEL, TG_OP,
        CASE WHEN TG_LEVEL = 'ROW' AND TG_OP <> 'INSERT' THEN OLD::text END, CASE WHEN TG_LEVEL = 'ROW' AND TG_OP <> 'DELETE' THEN NEW::text END));
    IF TG_LEVEL = 'ROW' AND TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER after_row AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER before_statement BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH STATEMENT EXECUTE FUNCTION note();
CREATE TRIGGER after_statement AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH STATEMENT EXECUTE FUNCTION note();
INSERT INTO t VALUES (1, 'one'), (2, 'two');
UPDATE t SET v = 'changed' WHERE id = 1;
DELETE FROM t WHERE id = 2;
DELETE FROM t WHERE id = 99;
SELECT line FROM log ORDER BY n;
DROP TRIGGER before_row ON t;
DROP TRIGGER after_row ON t;
DROP TRIGGER before_statement ON t;
DROP TRIGGER after_statement ON t;
TRUNCATE log;

-- A BEFORE trigger changes and suppresses rows.
CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id < 0 THEN RETURN NULL; END IF;
    NEW.v := upper(NEW.v);
    RETURN NEW;
END $$;
CREATE TRIGGER change BEFORE INSERT OR UPDATE ON t FOR EACH ROW WHEN (NEW.v IS NOT NULL) EXECUTE FUNCTION change();
INSERT INTO t VALUES (10, 'ten'), (-1, 'suppressed'), (11, NULL) RETURNING *;
UPDATE t SET v = 'lower' WHERE id = 10 RETURNING *;
UPDATE t SET id = -id WHERE id = 10;
SELECT * FROM t ORDER BY id;
DROP TRIGGER change ON t;

-- Transition tables.
CREATE FUNCTION sums() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO log (line) SELECT format('inserted %s rows, sum %s', count(*), sum(id)) FROM new_rows;
    ELSIF TG_OP = 'UPDATE' THEN
        INSERT INTO log (line) SELECT format('updated %s -> %s', o.v, n.v) FROM old_rows o JOIN new_rows n USING (id) ORDER BY id;
    ELSE
        INSERT INTO log (line) SELECT format('deleted %s', string_agg(id::text, ',' ORDER BY id)) FROM old_rows;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER sums_i AFTER INSERT ON t REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION sums();
CREATE TRIGGER sums_u AFTER UPDATE ON t REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION sums();
CREATE TRIGGER sums_d AFTER DELETE ON t REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION sums();
INSERT INTO t SELECT i, 'bulk' FROM generate_series(100, 3100) i;
UPDATE t SET v = 'bulk ' || id WHERE id BETWEEN 100 AND 102;
DELETE FROM t WHERE id >= 103 AND id < 106;
COPY t FROM STDIN;
5001	copied
5002	copied
\.
SELECT line FROM log ORDER BY n;
DROP TRIGGER sums_i ON t;
DROP TRIGGER sums_u ON t;
DROP TRIGGER sums_d ON t;
TRUNCATE log;

-- AFTER ROW triggers over a large COPY and a rollback: each row is read again by its position.
CREATE FUNCTION mirror() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log (line) VALUES (NEW.id); RETURN NULL; END $$;
CREATE TRIGGER mirror AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION mirror();
INSERT INTO t SELECT i, 'many' FROM generate_series(10001, 13000) i;
SELECT count(*), min(line::int), max(line::int), sum(line::int) FROM log;
BEGIN;
SAVEPOINT a;
INSERT INTO t SELECT i, 'many' FROM generate_series(20001, 20010) i;
ROLLBACK TO a;
COMMIT;
SELECT count(*) FROM log;

-- A deferred constraint trigger reads the row at commit, after it has changed.
CREATE FUNCTION deferred() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'deferred % (now %)', NEW.v, (SELECT string_agg(v, ',') FROM t WHERE id = NEW.id); RETURN NULL; END $$;
DROP TRIGGER mirror ON t;
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT OR UPDATE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION deferred();
BEGIN;
INSERT INTO t VALUES (30001, 'first');
UPDATE t SET v = 'second' WHERE id = 30001;
COMMIT;
BEGIN;
INSERT INTO t VALUES (30002, 'gone');
DELETE FROM t WHERE id = 30002;
COMMIT;
DROP TRIGGER deferred ON t;

-- A trigger on another table writes to this one; a trigger that changes its own table.
CREATE TABLE heap_origin (id int) USING heap;
CREATE FUNCTION forward() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (NEW.id, 'forwarded'); RETURN NULL; END $$;
CREATE TRIGGER forward AFTER INSERT ON heap_origin FOR EACH ROW EXECUTE FUNCTION forward();
INSERT INTO heap_origin VALUES (40001), (40002);
SELECT * FROM t WHERE id > 40000 ORDER BY id;
CREATE FUNCTION fan_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id < 50003 THEN INSERT INTO t VALUES (NEW.id + 1, 'fanned'); END IF; RETURN NULL; END $$;
CREATE TRIGGER fan_out AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION fan_out();
INSERT INTO t VALUES (50000, 'origin');
SELECT * FROM t WHERE id >= 50000 ORDER BY id;
DROP TRIGGER fan_out ON t;

-- A BEFORE UPDATE trigger that deletes the row that is being updated.
CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM t WHERE id = OLD.id; RETURN NEW; END $$;
CREATE TRIGGER sabotage BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION sabotage();
UPDATE t SET v = 'x' WHERE id = 50000;
SELECT * FROM t WHERE id = 50000;
DROP TRIGGER sabotage ON t;

-- An INSTEAD OF trigger on a view.
CREATE VIEW tv AS SELECT id, v FROM t;
CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (NEW.id, 'instead'); RETURN NEW; END $$;
CREATE TRIGGER instead INSTEAD OF INSERT ON tv FOR EACH ROW EXECUTE FUNCTION instead();
INSERT INTO tv VALUES (60000, 'x');
SELECT * FROM t WHERE id = 60000;

DROP VIEW tv;
DROP TABLE t, log, heap_origin;
DROP FUNCTION note(), change(), sums(), mirror(), deferred(), forward(), fan_out(), sabotage(), instead();
