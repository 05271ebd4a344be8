# bash completion for flarena. The command itself prints the candidates.
_flarena() {
    local line=${COMP_LINE:0:COMP_POINT} words word place begun
    # bash also splits words at "=" and ":"; these words are whole.
    IFS=$' \t' read -a words <<<"$line"
    [[ $line != *[[:space:]] ]] || words+=("")
    # After "--" comes a command with completions of its own.
    for ((place = 1; place < COMP_CWORD; place++)); do
        [[ ${COMP_WORDS[place]} == -- ]] || continue
        ((place + 1 == COMP_CWORD)) || ! declare -F _command_offset >/dev/null || { _command_offset $((place + 1)); return; }
        break
    done
    local IFS=$'\n'
    COMPREPLY=($(_FLARENA_COMPLETE=bash _CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) \
        "${COMP_WORDS[0]}" -- "${words[@]}" 2>/dev/null))
    # bash inserts the part after its last break.
    word=${words[-1]}
    begun=${word%"${word##*["${COMP_WORDBREAKS//[^=:]/}"]}"}
    [[ $word != *[=:]* ]] || COMPREPLY=("${COMPREPLY[@]#"$begun"}")
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:/] ]]; then compopt -o nospace 2>/dev/null; fi
    for place in "${!COMPREPLY[@]}"; do
        [[ ${COMPREPLY[place]} != *[[:space:]]* ]] || printf -v "COMPREPLY[place]" %q "${COMPREPLY[place]}"
    done
}
complete -o bashdefault -F _flarena flarena
