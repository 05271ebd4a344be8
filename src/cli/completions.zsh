
# After "--" comes a command with completions of its own.
_flarena_or_command() {
    local at=${words[(i)--]}
    if ((at < CURRENT)); then
        words=("${(@)words[at + 1, -1]}")
        ((CURRENT -= at))
        _normal
    else
        _clap_dynamic_completer_flarena
    fi
}
compdef _flarena_or_command flarena
# A file in fpath is read at the first completion.
[[ ${funcstack[1]} != _flarena ]] || _flarena_or_command
