#!/bin/sh
# Both limits on the way are raised, and the edge reads its files again.
set -eu
sed -i 's/"body_parser_limit": "[^"]*"/"body_parser_limit": "25mb"/' app/config.json
sed -i 's/client_max_body_size .*;/client_max_body_size 25m;/' edge/conf.d/10-hardening.conf
nginx -p edge -c nginx.conf -s reload
