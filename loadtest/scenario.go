package main

// scenario is one situation that every contender is put into.
type scenario struct {
	Name  string
	About string

	// Contenders are the rows of the table, herdgate first where it takes
	// part. caches if nil.
	Contenders []string

	// AlwaysAll says that a quick run has all of them too.
	AlwaysAll bool

	// Run measures one contender. What it finds goes into the result; its
	// error means that the measuring itself failed.
	Run func(b *bench, contender string) (*result, error)

	Targets []target
}

func (s *scenario) contenders() []string {
	if s.Contenders == nil {
		return caches
	}
	return s.Contenders
}
