#!/bin/sh
# show.sh NAME...: prints these variables of its environment, one a line.
for name; do
    if value=$(printenv "$name"); then
        printf '%s=%s\n' "$name" "$value"
    else
        printf '%s is unset\n' "$name"
    fi
done
