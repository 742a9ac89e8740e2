#!/bin/sh
# Runs the program of the same name in the directory bin next to this file. Kills
# the program when no process has the pipe "alive" open for writing: the parent
# process has ended, and no other process would stop the program.
here=${0%/*}
dir=${here%/*/*}
program=$here/bin/${0##*/}

# With --help, the program ends immediately and needs no watcher.
[ "$1" = --help ] && exec "$program" "$@"

# A pipe that is opened only for reading blocks until it has a writer, and the
# parent process may already have ended.
exec 4<>"$dir/alive" 3<"$dir/alive" 4>&-
{
	read -r _ <&3
	kill -KILL $$ # the program replaces this shell and keeps its process ID
	rm -rf "$dir"
} >/dev/null 2>&1 &
exec "$program" "$@" 3<&-
