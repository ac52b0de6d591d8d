package main

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func openOrders(t *testing.T, orders int) *database {
	t.Helper()
	path := filepath.Join(t.TempDir(), "with a space?.db")
	if err := createOrders(t.Context(), path, orders); err != nil {
		t.Fatal(err)
	}
	db, err := openDatabase(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// TestSalesAddUp: every order is in the report, once.
func TestSalesAddUp(t *testing.T) {
	const orders = 5000
	db := openOrders(t, orders)
	report, err := db.sales(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum, share := 0, 0.0
	for _, r := range report.Regions {
		sum += r.Orders
		share += r.Share
		if r.Customers < 1 || r.Customers > r.Orders || r.Revenue <= 0 {
			t.Errorf("odd region: %+v", r)
		}
	}
	if sum != orders || share < 0.999 || share > 1.001 {
		t.Errorf("got %d orders and shares that sum up to %v, want %d and 1", sum, share, orders)
	}
	again, err := db.sales(t.Context())
	if err != nil || !reflect.DeepEqual(report, again) {
		t.Errorf("asked again, got %v and error %v, want %v", again, err, report)
	}
}

// TestCreateOrdersOnce: a file that is there is used as it is.
func TestCreateOrdersOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.db")
	for _, orders := range []int{100, 200} {
		if err := createOrders(t.Context(), path, orders); err != nil {
			t.Fatal(err)
		}
	}
	db, err := openDatabase(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	var n int
	if err := db.db.QueryRow(`SELECT count(*) FROM orders`).Scan(&n); err != nil || n != 100 {
		t.Errorf("got %d orders, error %v, want the first 100", n, err)
	}
}

// TestSalesEndWithContext: an aggregate that would never end does when its
// context does.
func TestSalesEndWithContext(t *testing.T) {
	db := openOrders(t, 1)
	for _, statement := range []string{
		`DROP TABLE orders`,
		`CREATE VIEW orders AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
		 SELECT i AS id, 'Asia' AS region, 1 AS customer, 1 AS cents FROM n`,
	} {
		if _, err := db.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := db.sales(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
}
