package scope

import (
	"context"
	"testing"
)

type unit struct{ Scope }

func TestScopeIsFoundInTheContext(t *testing.T) {
	ctx := t.Context()
	if s, ok := From(ctx); ok {
		t.Errorf("found %v where there is none", s)
	}
	if Without(ctx) != ctx {
		t.Error("Without changed a context that has no scope")
	}
	outer, inner := &unit{}, &unit{}
	ctx = With(ctx, outer)
	if s, _ := From(ctx); s != outer {
		t.Errorf("found %v", s)
	}
	if s, _ := From(With(ctx, inner)); s != inner {
		t.Errorf("found %v in the inner scope", s)
	}
	type key struct{}
	load := Without(context.WithValue(ctx, key{}, "value"))
	if s, ok := From(load); ok {
		t.Errorf("a load sees the scope %v", s)
	}
	if load.Value(key{}) != "value" {
		t.Error("a load lost its values")
	}
}
