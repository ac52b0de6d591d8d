CREATE TABLE orders (
  id       INTEGER PRIMARY KEY,
  region   TEXT    NOT NULL,
  customer INTEGER NOT NULL,
  cents    INTEGER NOT NULL
)
