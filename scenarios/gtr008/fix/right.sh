#!/bin/sh
# One counter for all workers.
set -eu
sed -i 's/"limiter": "[^"]*"/"limiter": "shared"/' service/limiter.json
