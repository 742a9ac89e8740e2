package node

import (
	"bufio"
	"io"
	"sync"
	"time"
)

// outputLog keeps all that a process has printed, in memory.
type outputLog struct {
	mu    sync.Mutex
	lines []line
	done  bool // no more will come
}

// line is what was printed up to a line break, and when it was read.
type line struct {
	timestamp time.Time
	text      string // with the line break, which the last line may lack
}

// readFrom reads the output until its end.
func (l *outputLog) readFrom(output io.Reader) {
	reader := bufio.NewReader(output)
	for {
		text, err := reader.ReadString('\n')
		l.mu.Lock()
		if text != "" {
			l.lines = append(l.lines, line{time.Now(), text})
		}
		l.done = err != nil
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// linesFrom returns the lines from that index on, and whether no more will come.
func (l *outputLog) linesFrom(i int) ([]line, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[i:len(l.lines):len(l.lines)], l.done
}
