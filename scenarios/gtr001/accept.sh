#!/bin/sh
# The acceptance test of the ticket: it talks to the app, as the team's tests do.
set -eu
"$GETTIER" fixture post --url "http://127.0.0.1:$PORT_APP/upload" --size 24m --want 200
