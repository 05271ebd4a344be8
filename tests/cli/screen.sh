# shellcheck shell=bash
# flarena top in a terminal of tmux. Sourced by run.sh.

# Each test has its own server: a server that is still ending would take the next session with it.
tmux_here() { tmux -L "${SCRATCH##*/}-$SCREEN" -f /dev/null "$@"; }

screen() { tmux_here capture-pane -p -t top; }

shows() { screen | grep -qE -- "$1"; }

open_top() { # runs top in a shell that prints its exit status
    tmux_here new-session -d -s top -x 140 -y 20 \
        "'$FLARENA' top --interval 0.3; echo \"over \$?\"; stty -a | grep -o '[-]*icanon'; cat" 7>&-
}

top_process() { pgrep -P "$(tmux_here display-message -p -t top '#{pane_pid}')" -f "^$FLARENA top "; }

close_top() { tmux_here kill-server 2>/dev/null || true; }

in_screen() { # CHECK...: runs it with a process and top on the screen
    SCREEN=$BASHPID
    with_holder jemalloc free 100 on_screen "$@"
}
on_screen() { # CHECK...: shows the screen if it fails
    local status=0
    { open_top && eventually shows "^ *$PID .*holder" && "$@"; } || status=$?
    [ "$status" -eq 0 ] || screen
    close_top
    return $status
}

key() { tmux_here send-keys -t top "$@"; }

filters_and_trims() {
    key / "$PID" Enter
    eventually shows "^1 process( |$)" || return
    key t
    eventually shows "$PID: ([0-9.]+ [KMG]?B returned|nothing to return)"
}
check "top filters with / and trims with t" in_screen filters_and_trims
quits() {
    key q
    eventually shows "^over 0" && eventually shows "^icanon"
}
check "q quits top and restores the terminal" in_screen quits
ends_on_signal() {
    kill -TERM "$(top_process)"
    eventually shows "^over " && eventually shows "^icanon"
}
check "SIGTERM ends top and restores the terminal" in_screen ends_on_signal
survives_resize() {
    local size
    for size in "20 3" "1 1" "200 50" "140 20"; do
        # shellcheck disable=SC2086  # width and height
        set -- $size
        tmux_here resize-window -t top -x "$1" -y "$2"
        sleep 0.3
    done
    eventually shows "^ *$PID .*holder"
}
check "top redraws after any change of the window size" in_screen survives_resize
sees_it_end() {
    exec 7>&-
    eventually gone_from_screen
}
gone_from_screen() { ! shows "^ *$PID "; }
check "a process that ends disappears from the screen" in_screen sees_it_end
dies_with_its_terminal() {
    local top
    top=$(top_process) || return
    close_top
    eventually has_ended "$top" || { ps -o pid,ppid,stat,wchan,args -p "$top"; ls -l "/proc/$top/fd"; grep Sig "/proc/$top/status"; return 1; }
}
has_ended() { ! readlink "/proc/$1/exe"; } # true for a zombie, too
check "top ends when its terminal closes" in_screen dies_with_its_terminal
