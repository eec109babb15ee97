#!/bin/sh
# The team's test: one read through the balancer, tried again when it fails.
set -eu
"$GETTIER" fixture orders --url "http://127.0.0.1:$PORT_BALANCER" --client "$DIR/client/client.json" --field risk_score --reads 1 --retries 1
