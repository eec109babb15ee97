#!/bin/sh
# Somebody who guesses: many connections, one account.
set -eu
"$GETTIER" fixture burst --url "http://127.0.0.1:$PORT_LOGIN/login" --account "probe-$NONCE" --attempts 40 --allowed 5 --connections 40
