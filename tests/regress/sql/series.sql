-- The series of Prometheus: many label sets are packed into one value.
SELECT lanes.label_sets(lanes.pack_label_sets(ARRAY['{}', '{"a":"é"}', '']));
SELECT lanes.label_sets(lanes.pack_label_sets('{}'));
SELECT length(lanes.pack_label_sets(sets)) * 4 < octet_length(sets::text) AS is_small, lanes.label_sets(lanes.pack_label_sets(sets)) = sets AS same
    FROM (SELECT array_agg(format('{"cpu":"%s","instance":"host-7:9100","job":"node","mode":"idle"}', g)) AS sets FROM generate_series(0, 23) g) s;
SELECT lanes.pack_label_sets(ARRAY['{}', NULL]);
SELECT lanes.label_sets('');
SELECT lanes.label_sets('\x02');
SELECT lanes.label_sets(substr(packed, 1, length(packed) - 1)) FROM lanes.pack_label_sets(ARRAY['{}', '{"a":"b"}']) packed;
-- A row with another number of label sets than it declares is refused.
INSERT INTO lanes.series_runs (first_id, last_id, metric, labels, registered_at)
    VALUES (1, 3, 'm', lanes.pack_label_sets(ARRAY['{}', '{"a":"b"}']), '2026-01-01');
BEGIN;
SELECT lanes.register_series(0, ARRAY[('up', ARRAY['{"job":"a"}', '{"job":"b"}'])::lanes.series_run, ('up', ARRAY['{}'])::lanes.series_run]) AS first_id;
SELECT first_id, last_id, metric, lanes.label_sets(labels) FROM lanes.series_runs ORDER BY first_id;
SELECT id, metric, labels FROM lanes.series ORDER BY id;
SELECT * FROM lanes.find_series(ARRAY[3, 2, 9]) ORDER BY id;
SELECT id, labels FROM lanes.metric_series('up') ORDER BY id;
-- Label sets are converted to jsonb exactly as PostgreSQL's own input does, whatever names, texts
-- and escapes they contain.
CREATE TEMP TABLE odd_set (labels text) USING heap;
INSERT INTO odd_set VALUES ('{}'), ('{"a":""}'), ('{"bb":"1","a":"2","ab":"3","é":"ü","z":"4"}'), ('{"a":"x\"y\\z\u00e9"}'), ('{"a":"1","b":"2","a":"3"}'), ('{"a":{"b":[1,null]}}');
INSERT INTO odd_set SELECT '{' || string_agg(format('"%s":"%s"', repeat('n', i % 7) || i, repeat('v', i)), ',') || '}' FROM unnest(ARRAY[1, 15, 16, 17, 31, 32, 33, 60]) labels, generate_series(1, labels) i GROUP BY labels;
SELECT lanes.register_series(3, ARRAY[('odd', array_agg(labels))::lanes.series_run]) AS first_id FROM odd_set;
SELECT count(*), bool_and(m.labels = s.labels) AS same, bool_and(m.labels::text = s.labels::text) AS same_text, bool_and(jsonb_send(m.labels) = jsonb_send(s.labels)) AS same_sent,
       bool_and(record_image_eq(ROW(m.labels), ROW(s.labels))) AS same_image, bool_and(jsonb_hash(m.labels) = jsonb_hash(s.labels)) AS same_hash,
       bool_and((SELECT count(*) = count(m.labels->>k) FROM jsonb_object_keys(s.labels) k WHERE m.labels->k = s.labels->k) AND NOT m.labels ? 'none') AS same_members
  FROM lanes.metric_series('odd') m JOIN lanes.series s USING (id);
ROLLBACK;
