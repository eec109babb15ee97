#!/bin/sh
# Changes nothing.
set -eu
