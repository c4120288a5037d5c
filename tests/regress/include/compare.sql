\set ECHO none
-- Functions that compare the answers of one query: vectorised, with PostgreSQL's own nodes, and over
-- heap tables. A test includes this file, then names its lanes tables that have a heap table with the
-- same rows, for example:
--
--     SET regress.lanes_tables = 'reading|lanes_dim';
--
-- Other settings: `regress.heap_tables` is the pattern of the heap tables' names (default `\1_heap`, in
-- which `\1` is the lanes table); `regress.answer_letters` is how much of the answer `same` shows
-- (default: the number of rows).

-- Returns the number of rows of a query and all of its rows, sorted as text; or the error that it raises.
CREATE FUNCTION pg_temp.answer(query text, vectorize text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
    PERFORM set_config('lanes.vectorize', vectorize, true);
    EXECUTE format('SELECT count(*) || '' rows '' || coalesce(string_agg(x::text, '' '' ORDER BY x::text), '''') FROM (%s) x', query) INTO answer;
    RETURN answer;
EXCEPTION WHEN data_exception OR feature_not_supported OR insufficient_privilege THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

-- Returns the query with the heap tables in place of the lanes tables.
CREATE FUNCTION pg_temp.on_heap(query text) RETURNS text LANGUAGE sql AS $$
    SELECT regexp_replace(query, '\m(' || current_setting('regress.lanes_tables') || ')\M',
        coalesce(current_setting('regress.heap_tables', true), '\1_heap'), 'g') $$;

-- Compares the three answers of a query, all columns of all rows. Returns `same` and the number of rows or
-- the error, or else two answers that differ.
CREATE FUNCTION pg_temp.agreement(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    fast text := pg_temp.answer(query, 'on');
    plain text := pg_temp.answer(query, 'off');
    heap text := pg_temp.answer(pg_temp.on_heap(query), 'on');
    letters int := current_setting('regress.answer_letters', true);
BEGIN
    PERFORM set_config('lanes.vectorize', 'on', true);
    IF fast IS DISTINCT FROM plain THEN
        RETURN E'other than off\n' || fast || E'\n' || plain;
    ELSIF fast IS DISTINCT FROM heap THEN
        RETURN E'other than heap\n' || fast || E'\n' || heap;
    END IF;
    RETURN 'same, ' || coalesce(left(fast, letters), substring(fast FROM '^\d+ rows'), fast);
END $$;

-- Returns the extension's nodes in the plan of a query, the join of each, and why a node is not vectorised.
CREATE FUNCTION pg_temp.nodes(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; nodes text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        nodes := nodes || coalesce(substring(line FROM 'Custom Scan \((\w+)\)') || ' ', '') || coalesce('(' || substring(line FROM 'Hash Join: (.*)') || ') ', '')
            || coalesce('[' || substring(line FROM 'Not Vectorised: (.*)') || '] ', '');
    END LOOP;
    RETURN nodes;
END $$;

-- Returns the plan's nodes, and whether the answers of a query agree.
CREATE FUNCTION pg_temp.same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE agreement text := pg_temp.agreement(query);
BEGIN
    RETURN pg_temp.nodes(query) || agreement;
END $$;

-- Compares the rows of a query, in their order, with those of the heap tables. Rows that tie may come in
-- any order, so the query has to order all of its rows. Returns `same` if the plan has one of the nodes.
CREATE FUNCTION pg_temp.same_order(query text, nodes text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE ours text; theirs text; plan text := ''; line text; rows text := 'SELECT string_agg(x::text, E''\n'') FROM (%s) x';
BEGIN
    EXECUTE format(rows, query) INTO ours;
    EXECUTE format(rows, pg_temp.on_heap(query)) INTO theirs;
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        plan := plan || line;
    END LOOP;
    IF ours IS DISTINCT FROM theirs THEN
        RETURN format('%s differs: %s instead of %s', query, ours, theirs);
    END IF;
    RETURN CASE WHEN plan ~ nodes THEN 'same' ELSE 'same, but: ' || plan END;
END $$;

-- Runs each form of a query with each condition over the heap table `h` and over each of the lanes tables.
-- A form has `%s` for the table, then `%s` for the condition. Returns the queries whose rows differ.
CREATE FUNCTION pg_temp.disagreements(forms text[], conditions text[], sources text[]) RETURNS TABLE (source text, query text) LANGUAGE plpgsql AS $$
DECLARE condition text; form text; heap text; lanes text; rows text := 'SELECT count(*) || string_agg(q::text, '' '' ORDER BY q::text) FROM (%s) q';
BEGIN
    FOREACH condition IN ARRAY conditions LOOP
        FOREACH form IN ARRAY forms LOOP
            EXECUTE format(rows, format(form, 'h', condition)) INTO heap;
            FOREACH source IN ARRAY sources LOOP
                query := format(form, source, condition);
                EXECUTE format(rows, query) INTO lanes;
                IF heap IS DISTINCT FROM lanes THEN RETURN NEXT; END IF;
            END LOOP;
        END LOOP;
    END LOOP;
END $$;

-- This file also echoes the rest of the test again.
\ir explain.sql
