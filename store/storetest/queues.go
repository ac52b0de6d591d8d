package storetest

import "github.com/herdgate/herdgate/store"

// queueCases are about fair order.
var queueCases = []testCase{
	{
		name:    "EnqueueIsAcquire",
		promise: "Enqueue is Acquire: a free key is granted, the own token gets its lease again, who is refused learns the holder",
		needs:   queues,
		run: func(t *run) {
			q, other := as[store.Queuer](t, t.first), as[store.Queuer](t, t.again)
			req := request(t.key(), long)
			lease, err := q.Enqueue(t.ctx, req)
			t.ok(err)
			again, err := q.Enqueue(t.ctx, req)
			t.ok(err)
			if lease.Token != req.Token || again.Grant != lease.Grant {
				t.Errorf("asked twice, got %+v and %+v", lease, again)
			}
			_, err = other.Enqueue(t.ctx, request(req.Key, long))
			if got := t.held(err).Holder.Grant; got != lease.Grant {
				t.Errorf("the holder is shown as %d, it is %d", got, lease.Grant)
			}
			if _, err := q.Enqueue(t.ctx, store.Request{Key: t.key()}); err == nil {
				t.Error("a request without token was taken")
			}
		},
	},
}
