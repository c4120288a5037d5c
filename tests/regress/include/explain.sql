\set ECHO none
-- Functions that run a query under EXPLAIN ANALYZE.

-- Returns the lines of the plan that match a pattern, without costs and times.
CREATE FUNCTION pg_temp.explained(query text, pattern text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        IF line ~ pattern THEN RETURN NEXT line; END IF;
    END LOOP;
END $$;

-- Returns the plan as JSON, from its root.
CREATE FUNCTION pg_temp.analyzed(query text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    RETURN plan -> 0;
END $$;

-- Whether a node handed its query over to PostgreSQL's own plan.
CREATE FUNCTION pg_temp.hands_over(query text) RETURNS boolean LANGUAGE sql AS $$
    SELECT pg_temp.analyzed(query)::text ~ 'Handed Over' $$;
\set ECHO all
