#!/bin/sh
# show.sh NAME...: what a started program finds in its environment, one line each.
for name; do
    if value=$(printenv "$name"); then
        printf '%s=%s\n' "$name" "$value"
    else
        printf '%s is unset\n' "$name"
    fi
done
