// Package herdgate stops cache stampedes and duplicate work in web apps that
// run on many servers. It holds no code itself: it is the way in.
//
// A popular key goes cold, every server computes it anew at once, and the
// database falls over: that is a stampede. A client sends the same POST twice
// and a row is written twice: that is the same problem. Many want to do the
// same work; exactly one should, and the others should have its result.
//
// Start with the package that fits the work:
//
//   - [cachefill] computes an expensive value once for all servers. The others
//     wait for it, or get the older value at once.
//   - [guard] runs a section of code on one server at a time, for who must
//     check and then write.
//
// Both keep their state in a store, on a server that the app already runs:
// [redisstore], [memcachestore], or [memstore], which needs none and serves one
// process. Package [store] is for who writes a store of their own.
//
// One caveat belongs to all of it. A lease is time: a server that is paused
// for longer than its lease works on beside its successor. Whatever must not
// happen twice also needs a fence, which package guard can give.
//
// [cachefill]: https://pkg.go.dev/github.com/herdgate/herdgate/cachefill
// [guard]: https://pkg.go.dev/github.com/herdgate/herdgate/guard
// [redisstore]: https://pkg.go.dev/github.com/herdgate/herdgate/store/redisstore
// [memcachestore]: https://pkg.go.dev/github.com/herdgate/herdgate/store/memcachestore
// [memstore]: https://pkg.go.dev/github.com/herdgate/herdgate/store/memstore
// [store]: https://pkg.go.dev/github.com/herdgate/herdgate/store
package herdgate
