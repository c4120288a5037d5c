-- requires: xml
-- XML is stored unchanged.
CREATE TABLE documents (id int, x xml) USING lanes;
INSERT INTO documents VALUES (1, '<a>b</a>'), (2, ''), (3, NULL), (4, '<a><b c="d"/>é</a>');
SELECT * FROM documents ORDER BY id;
SELECT lanes.seal('documents') > 0 AS sealed;
SELECT id, x, xpath('/a/b/@c', x) FROM documents WHERE id IN (1, 4) ORDER BY id;
DROP TABLE documents;
