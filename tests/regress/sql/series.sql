-- The series of Prometheus: label sets are packed, many in a value.
SELECT lanes.label_sets(lanes.pack_label_sets(ARRAY['{}', '{"a":"é"}', '']));
SELECT lanes.label_sets(lanes.pack_label_sets('{}'));
SELECT length(lanes.pack_label_sets(sets)) * 4 < octet_length(sets::text) AS is_small, lanes.label_sets(lanes.pack_label_sets(sets)) = sets AS same
    FROM (SELECT array_agg(format('{"cpu":"%s","instance":"host-7:9100","job":"node","mode":"idle"}', g)) AS sets FROM generate_series(0, 23) g) s;
SELECT lanes.pack_label_sets(ARRAY['{}', NULL]);
SELECT lanes.label_sets('');
SELECT lanes.label_sets('\x02');
SELECT lanes.label_sets(substr(packed, 1, length(packed) - 1)) FROM lanes.pack_label_sets(ARRAY['{}', '{"a":"b"}']) packed;
-- A row that does not hold as many as it says is refused.
INSERT INTO lanes.series_runs (first_id, last_id, metric, labels, registered_at)
    VALUES (1, 3, 'm', lanes.pack_label_sets(ARRAY['{}', '{"a":"b"}']), '2026-01-01');
BEGIN;
SELECT lanes.register_series(0, ARRAY[('up', ARRAY['{"job":"a"}', '{"job":"b"}'])::lanes.series_run, ('up', ARRAY['{}'])::lanes.series_run]) AS first_id;
SELECT first_id, last_id, metric, lanes.label_sets(labels) FROM lanes.series_runs ORDER BY first_id;
SELECT id, metric, labels FROM lanes.series ORDER BY id;
SELECT * FROM lanes.find_series(ARRAY[3, 2, 9]) ORDER BY id;
SELECT id, labels FROM lanes.metric_series('up') ORDER BY id;
ROLLBACK;
