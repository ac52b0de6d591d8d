-- Makes @orders orders that look random and are the same every time.
INSERT INTO orders
WITH RECURSIVE
  n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @orders),
  mixed(i, h) AS (SELECT i, (i * 2654435761 % 4294967296) >> 4 FROM n)
SELECT i,
       CASE WHEN h % 100 < 31 THEN 'Asia'
            WHEN h % 100 < 57 THEN 'Europe'
            WHEN h % 100 < 80 THEN 'The Americas'
            WHEN h % 100 < 90 THEN 'Africa'
            WHEN h % 100 < 98 THEN 'Oceania'
            ELSE 'Antarctica' END,
       h / 100 % 8000,
       100 + h / 7 % 20000
FROM mixed
