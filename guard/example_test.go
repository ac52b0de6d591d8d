package guard_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/herdgate/herdgate/guard"
	"github.com/herdgate/herdgate/store/memstore"
)

// Check and then write, without anybody else in between.
func ExampleGuard_Do() {
	ctx := context.Background()
	g, err := guard.New(memstore.New(nil), nil) // redisstore.New, to share it among servers
	if err != nil {
		panic(err)
	}
	defer g.Close(ctx)

	names := map[string]bool{}
	register := func(name string) error {
		return g.Do(ctx, "name:"+name, func(ctx context.Context) error {
			if names[name] {
				return errors.New("taken")
			}
			names[name] = true
			return nil
		})
	}
	fmt.Println(register("ada"))
	fmt.Println(register("ada"))
	// Output:
	// <nil>
	// taken
}

// Run a job on one server only; the others see who is at it and go home.
func ExampleGuard_TryAcquire() {
	ctx := context.Background()
	s := memstore.New(nil)
	here, _ := guard.New(s, &guard.Options{Owner: "web-1"})
	there, _ := guard.New(s, &guard.Options{Owner: "web-2"})
	defer here.Close(ctx)
	defer there.Close(ctx)

	lease, err := here.TryAcquire(ctx, "nightly", &guard.AcquireOptions{Reason: "nightly report"})
	if err != nil {
		panic(err)
	}
	defer lease.Release(ctx)

	_, err = there.TryAcquire(ctx, "nightly", nil)
	var held *guard.HeldError
	if errors.As(err, &held) {
		fmt.Printf("%s has it: %s\n", held.Holder.Note.Owner, held.Holder.Note.Reason)
	}
	// Output: web-1 has it: nightly report
}

// A fence lets the database refuse a holder that was paused for too long.
func ExampleLease_Fence() {
	ctx := context.Background()
	g, err := guard.New(memstore.New(nil), &guard.Options{Fence: true})
	if err != nil {
		panic(err) // the store gives no fences
	}
	defer g.Close(ctx)

	var greatest uint64 // UPDATE … SET fence = ? WHERE id = ? AND fence <= ?
	write := func(fence uint64) bool {
		if fence < greatest {
			return false
		}
		greatest = fence
		return true
	}

	paused, _ := g.Acquire(ctx, "account:7", nil)
	next, _ := g.TakeOver(ctx, "account:7", nil) // or its time ran out
	defer next.Release(ctx)
	fmt.Println("next:", write(next.Fence()))
	fmt.Println("paused:", write(paused.Fence()))
	fmt.Println("paused knows it:", errors.Is(paused.Release(ctx), guard.ErrLost))
	// Output:
	// next: true
	// paused: false
	// paused knows it: true
}

// Acquire again under a lease's own context: it is the same lease.
func ExampleGuard_Acquire_reentry() {
	ctx := context.Background()
	g, _ := guard.New(memstore.New(nil), nil)
	defer g.Close(ctx)

	outer, err := g.Acquire(ctx, "order:42", &guard.AcquireOptions{Wait: time.Second})
	if err != nil {
		panic(err)
	}
	inner, err := g.Acquire(outer.Context(), "order:42", nil)
	fmt.Println(err)
	_ = outer.Release(ctx)
	fmt.Println("still held:", inner.Err() == nil)
	_ = inner.Release(ctx)
	fmt.Println("now:", inner.Err())
	// Output:
	// <nil>
	// still held: true
	// now: guard: lease released
}
