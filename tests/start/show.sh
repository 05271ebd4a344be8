#!/bin/sh
# show.sh NAME...: prints these variables of its environment, one a line. The fields of FLARENA_INHERITED that the library
# of this process has added for its children are left out.
for name; do
    value=$(printenv "$name") && found=yes || found=
    if [ "$name" = FLARENA_INHERITED ]; then
        value=$(printf ';%s' "$value" | sed -e 's/;\(first\|named\|nearest\)=[^;]*//g' -e 's/^;//')
        [ -n "$value" ] || found=
    fi
    if [ "$found" ]; then
        printf '%s=%s\n' "$name" "$value"
    else
        printf '%s is unset\n' "$name"
    fi
done
