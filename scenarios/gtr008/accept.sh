#!/bin/sh
# The team's test: one client, one connection, six attempts.
set -eu
"$GETTIER" fixture burst --url "http://127.0.0.1:$PORT_LOGIN/login" --account "accept-$NONCE" --attempts 6 --allowed 5 --connections 1
