#!/bin/sh
# A page of orders: each read must carry the field.
set -eu
"$GETTIER" fixture orders --url "http://127.0.0.1:$PORT_BALANCER" --client "$DIR/client/client.json" --field risk_score --reads 6 --retries 0
