#!/bin/sh
# What a customer does: the same upload, by the way that customers come.
set -eu
"$GETTIER" fixture post --url "http://127.0.0.1:$PORT_EDGE/upload" --size 24m --want 200 --within 2s
