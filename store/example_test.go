package store_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memstore"
)

// A cold key, as cachefill uses a store: look, claim, load, fill.
func ExampleCache() {
	ctx := context.Background()
	var c store.Cache = memstore.New(nil)

	_, err := c.Get(ctx, "home")
	fmt.Println(errors.Is(err, store.ErrMiss))

	mine, err := c.Claim(ctx, store.Request{Key: "home", Token: store.NewToken(), TTL: 2 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	other, err := c.Claim(ctx, store.Request{Key: "home", Token: store.NewToken(), TTL: 2 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mine.State, other.State)

	if err := c.Fill(ctx, mine.Lease, []byte("<h1>Hello</h1>"), time.Minute); err != nil {
		fmt.Println(err)
		return
	}
	e, err := c.Get(ctx, "home")
	fmt.Println(string(e.Value), err)
	// Output:
	// true
	// granted held
	// <h1>Hello</h1> <nil>
}

// Who is refused a lease learns who has it.
func ExampleHeldError() {
	ctx := context.Background()
	var l store.Leaser = memstore.New(nil)

	_, err := l.Acquire(ctx, store.Request{
		Key: "order:42", Token: store.NewToken(), TTL: 10 * time.Second,
		Note: store.Note{Owner: "billing", Reason: "monthly run"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = l.Acquire(ctx, store.Request{Key: "order:42", Token: store.NewToken(), TTL: 10 * time.Second})
	var held *store.HeldError
	if errors.As(err, &held) {
		fmt.Println(held.Holder.Note.Owner)
	}
	fmt.Println(err)
	// Output:
	// billing
	// store: lease held by billing: monthly run
}
