-- The report: every order is read, grouped and sorted; no index helps.
SELECT region,
       count(*),
       count(DISTINCT customer),
       sum(cents) / 100.0 AS revenue,
       sum(cents) * 1.0 / sum(sum(cents)) OVER ()
FROM orders
GROUP BY region
ORDER BY revenue DESC
