package main

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"net/url"
	"path/filepath"

	// The last version that runs SQLite in WebAssembly. It adds 5 s to the
	// first build on two cores, drivers translated to Go add 18 s (measured).
	// Neither needs a C compiler.
	_ "github.com/ncruces/go-sqlite3/driver"
	_ "github.com/ncruces/go-sqlite3/embed"
)

// poolSize is how many connections a replica has to the database, like any
// web app. Requests beyond it queue up.
const poolSize = 8

var (
	//go:embed sql/schema.sql
	createTable string
	//go:embed sql/orders.sql
	insertOrders string
	//go:embed sql/sales.sql
	selectSales string
)

// Report is the expensive value: the sales of each region.
type Report struct {
	Regions []Region `json:"regions"`
}

// Region is one line of a [Report].
type Region struct {
	Name      string  `json:"name"`
	Orders    int     `json:"orders"`
	Customers int     `json:"customers"`
	Revenue   float64 `json:"revenue"`
	Share     float64 `json:"share"` // of the revenue of all regions, 0 to 1
}

// database is one replica's pool of connections to the SQLite file.
type database struct {
	db *sql.DB
}

// createOrders makes the SQLite file with that many orders, unless it is there.
func createOrders(ctx context.Context, path string, orders int) error {
	d, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer d.close()
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer tx.Rollback()
	var tables int
	err = tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'orders'`).Scan(&tables)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if tables > 0 {
		return nil
	}
	if _, err := tx.ExecContext(ctx, createTable); err != nil {
		return fmt.Errorf("filling %s: %w", path, err)
	}
	if _, err := tx.ExecContext(ctx, insertOrders, sql.Named("orders", orders)); err != nil {
		return fmt.Errorf("filling %s: %w", path, err)
	}
	return tx.Commit()
}

// openDatabase opens the SQLite file. A transaction takes the write lock as it
// begins, so that of two processes that create the same file one waits.
func openDatabase(path string) (*database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: "_txlock=immediate"}
	db, err := sql.Open("sqlite3", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(poolSize)
	db.SetMaxIdleConns(poolSize)
	return &database{db: db}, nil
}

func (d *database) close() error { return d.db.Close() }

// sales computes the report. It reads every order, which takes a while, and
// ends early with ctx.
func (d *database) sales(ctx context.Context) (Report, error) {
	rows, err := d.db.QueryContext(ctx, selectSales)
	if err != nil {
		return Report{}, fmt.Errorf("sales: %w", cmp.Or(ctx.Err(), err))
	}
	defer rows.Close()
	var report Report
	for rows.Next() {
		var r Region
		if err := rows.Scan(&r.Name, &r.Orders, &r.Customers, &r.Revenue, &r.Share); err != nil {
			return Report{}, fmt.Errorf("sales: %w", err)
		}
		report.Regions = append(report.Regions, r)
	}
	if err := rows.Err(); err != nil {
		return Report{}, fmt.Errorf("sales: %w", cmp.Or(ctx.Err(), err)) // not SQLite's "interrupted"
	}
	return report, nil
}
