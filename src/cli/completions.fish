# fish completion for flarena. The command itself prints the candidates.
function __flarena_candidates
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l last (commandline --current-token --cut-at-cursor)
    # After "--" comes a command with completions of its own.
    if set -l at (contains --index -- -- $words)
        complete --do-complete (string join ' ' -- (string escape -- $words[(math $at + 1)..]) "$last")
    else
        _FLARENA_COMPLETE=fish flarena -- $words "$last"
    end
end
complete --keep-order --exclusive --command flarena --arguments "(__flarena_candidates)"
