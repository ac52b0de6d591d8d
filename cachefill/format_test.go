package cachefill

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/redis/go-redis/v9"

	"github.com/herdgate/herdgate/internal/servertest"
	"github.com/herdgate/herdgate/store"
	"github.com/herdgate/herdgate/store/memcachestore"
	"github.com/herdgate/herdgate/store/redisstore"
)

const documentedPayload = `{"title":"Home"}`

var documentedToken = store.Token{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

func documentedHeader() header {
	return header{
		grant:   1_767_366_244_000_001,
		created: time.Date(2026, 1, 2, 15, 4, 5, 123_456_000, time.UTC),
		fresh:   55 * time.Second,
		took:    1500 * time.Microsecond,
		codec:   "json",
		typ:     "main.Page",
	}
}

// documented returns the text of a block of docs/format.md.
func documented(t *testing.T, language, name string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```"+language+" "+name+"\n")
	block, _, closed := strings.Cut(block, "\n```\n")
	if !found || !closed {
		t.Fatalf("docs/format.md has no block %q", name)
	}
	return block
}

var hexBytes = regexp.MustCompile(`^[0-9a-f]{2}( [0-9a-f]{2})*(  |$)`)

// documentedBytes returns the bytes of a block: those at the beginning of its
// lines, up to two blanks.
func documentedBytes(t *testing.T, name string) []byte {
	t.Helper()
	var all []byte
	for _, line := range strings.Split(documented(t, "hex", name), "\n") {
		b, err := hex.DecodeString(strings.ReplaceAll(hexBytes.FindString(line), " ", ""))
		if err != nil || len(b) == 0 {
			t.Fatalf("block %q: no bytes in %q", name, line)
		}
		all = append(all, b...)
	}
	return all
}

// TestFormatOfValues pins the stored form: bytes that old servers wrote, and
// will have to read.
func TestFormatOfValues(t *testing.T) {
	want := documentedBytes(t, "value")
	if got := encoded(t, documentedHeader(), documentedPayload, 0); !bytes.Equal(got, want) {
		t.Errorf("value:\n got %x\nwant %x", got, want)
	}
	absent := documentedHeader()
	absent.flags = flagNotFound
	if got, want := encoded(t, absent, "", 0), documentedBytes(t, "not-found"); !bytes.Equal(got, want) {
		t.Errorf("not found:\n got %x\nwant %x", got, want)
	}
	long := `{"title":"` + strings.Repeat("a", 80) + `"}`
	h, payload, err := decodeHeader(documentedBytes(t, "compressed"))
	if err != nil || string(payload) != long || h.flags != flagCompressed || h.took != documentedHeader().took {
		t.Errorf("compressed: %+v, %q, %v", h, payload, err)
	}
}

func TestFormatOfFailuresAndNotes(t *testing.T) {
	errDown := errors.New("database down")
	s := settings{errors: map[string]error{"down": errDown}}
	failed := s.failureOf(kindError, errors.Join(errDown), 1)
	failed.Text = "query: " + failed.Text
	if got, want := string(failed.store(0).Data), documented(t, "json", "failure"); got != want {
		t.Errorf("failure:\n got %s\nwant %s", got, want)
	}
	note := store.Note{Owner: "billing", Host: "web-3", PID: 4711, Reason: "monthly run",
		Since: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), Expect: 200 * time.Millisecond,
		AlertAfter: time.Minute, Stack: "main.run"}
	if got, want := string(note.Encode()), documented(t, "json", "note"); got != want {
		t.Errorf("note:\n got %s\nwant %s", got, want)
	}
}

func TestFormatOnRedis(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: servertest.Redis(t).Addr})
	defer rdb.Close()
	s, err := redisstore.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	get := func(name string) string {
		t.Helper()
		text, err := rdb.Get(t.Context(), name).Result()
		if err != nil {
			t.Fatalf("GET %s: %v", name, err)
		}
		return text
	}
	value, note := documentedBytes(t, "value"), store.DecodeNote([]byte(documented(t, "json", "note")))
	a, err := s.Claim(t.Context(), store.Request{Key: "fill:home", Token: documentedToken, TTL: time.Minute, Note: note})
	if err != nil || a.State != store.Granted {
		t.Fatalf("Claim = %v, %v", a.State, err)
	}
	lease := regexp.MustCompile(`^\x00\x01[\x02-\x0f]{14}\d{16}\{"owner":"billing",.*\}$`)
	if got := get("herdgate:l:{fill:home}"); !lease.MatchString(got) {
		t.Errorf("lease %q", got)
	}
	if err := s.Fill(t.Context(), a.Lease, value, time.Minute); err != nil {
		t.Fatal(err)
	}
	want := documentedBytes(t, "redis-entry")
	if got := get("herdgate:v:{fill:home}"); got != string(want) {
		t.Errorf("entry:\n got %x\nwant %x", got, want)
	}
	if err := s.Expire(t.Context(), "fill:home"); err != nil {
		t.Fatal(err)
	}
	want[16] = 1
	if got := get("herdgate:v:{fill:home}"); got != string(want) {
		t.Errorf("stale entry:\n got %x\nwant %x", got, want)
	}
}

func TestFormatOnRedisOfBracesAndFailures(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: servertest.Redis(t).Addr})
	defer rdb.Close()
	s, err := redisstore.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Put(t.Context(), "fill:{}", documentedToken, []byte(documentedPayload), time.Minute); err != nil {
		t.Fatal(err)
	}
	text, err := rdb.Get(t.Context(), "herdgate:v:{"+fnv1a("fill:{}")+"}:fill:{}").Result()
	if !strings.HasSuffix(text, documentedPayload) {
		t.Errorf("entry of a key with braces: %q, %v", text, err)
	}
	a, err := s.Claim(t.Context(), store.Request{Key: "fill:gone", Token: documentedToken, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	data := documented(t, "json", "failure")
	if err := s.Yield(t.Context(), a.Lease, store.Failure{Data: []byte(data), CoolDown: time.Minute, Memory: time.Hour}); err != nil {
		t.Fatal(err)
	}
	failed := regexp.MustCompile(`^\x00{16}\d{32}` + regexp.QuoteMeta(data) + `$`)
	text, err = rdb.Get(t.Context(), "herdgate:l:{fill:gone}").Result()
	if !failed.MatchString(text) {
		t.Errorf("failure: %q, %v", text, err)
	}
}

// fnv1a is the hash in the name of a key that is no hash tag.
func fnv1a(key string) string {
	h := uint64(0xcbf29ce484222325)
	for _, b := range []byte(key) {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return hex.EncodeToString([]byte{byte(h >> 56), byte(h >> 48), byte(h >> 40), byte(h >> 32), byte(h >> 24), byte(h >> 16), byte(h >> 8), byte(h)})
}

func TestFormatOnMemcached(t *testing.T) {
	mc := memcache.New(servertest.Memcached(t).Addr)
	defer mc.Close()
	s, err := memcachestore.New(mc, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "fill:home", documentedToken, documentedBytes(t, "value"), time.Minute); err != nil {
		t.Fatal(err)
	}
	item, err := mc.Get("herdgate:v:fill:home")
	if err != nil {
		t.Fatal(err)
	}
	want := documentedBytes(t, "memcached-entry")
	if len(item.Value) != len(want) {
		t.Fatalf("entry:\n got %x\nwant %x", item.Value, want)
	}
	copy(want[53:61], item.Value[53:61]) // the time of writing
	if !bytes.Equal(item.Value, want) {
		t.Errorf("entry:\n got %x\nwant %x", item.Value, want)
	}
}

// TestFormatFromOutside: a DEL as the document recommends ends a load too.
func TestFormatFromOutside(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: servertest.Redis(t).Addr})
	defer rdb.Close()
	s, err := redisstore.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, err := s.Claim(t.Context(), store.Request{Key: "fill:home", Token: documentedToken, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.Del(t.Context(), "herdgate:v:{fill:home}", "herdgate:l:{fill:home}").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Fill(t.Context(), a.Lease, []byte("old"), time.Minute); !errors.Is(err, store.ErrLost) {
		t.Errorf("Fill after DEL: %v, want ErrLost", err)
	}
}
