#!/bin/sh
# Runs the program of the same name in the folder bin beside this file, and
# kills it when nobody has the pipe "alive" open for writing any more: then the
# process that started it is gone, and nobody else would stop it.
here=${0%/*}
dir=${here%/*/*}
program=$here/bin/${0##*/}

# Asking for the flags ends by itself.
[ "$1" = --help ] && exec "$program" "$@"

# Opening for reading alone would wait for a writer, who may be gone already.
exec 4<>"$dir/alive" 3<"$dir/alive" 4>&-
{
	read -r _ <&3
	kill -KILL $$ # the shell's number, which the program takes over
	rm -rf "$dir"
} >/dev/null 2>&1 &
exec "$program" "$@" 3<&-
