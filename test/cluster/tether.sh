#!/bin/sh
# Runs the program of the same name in the folder bin beside this file, and
# kills it when nobody has the pipe "alive" open for writing any more: then the
# process that started it is gone, and nobody else would stop it.
dir=$(dirname "$0")
program=$dir/bin/$(basename "$0")

# Asking for the flags ends by itself.
[ "$1" = --help ] && exec "$program" "$@"

exec 3<"$dir/alive"
{
	read -r _ <&3
	kill -KILL $$ # the shell's number, which the program takes over
	rm -rf "$dir"
} >/dev/null 2>&1 &
exec "$program" "$@" 3<&-
