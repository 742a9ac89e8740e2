package node

import (
	"bufio"
	"io"
	"sync"
	"time"
)

// outputLog stores a process's output in memory.
type outputLog struct {
	mu    sync.Mutex
	lines []line
	done  bool // the output has ended
}

// line is an output line and the time when it was read.
type line struct {
	timestamp time.Time
	text      string // including the line break, which the last line may lack
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

// linesFrom returns the lines starting at index i, and whether the output has
// ended.
func (l *outputLog) linesFrom(i int) ([]line, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[i:len(l.lines):len(l.lines)], l.done
}
