"""client.py PID ACTION: sends a request to the control channel of a process and prints the reply."""

import socket
import sys
import time


def address(pid):
    with open(f"/proc/{pid}/stat") as stat:
        start = stat.read().rpartition(")")[2].split()[19]
    return f"\0flarena/{pid}/{start}"


def ask(pid, request, pause=0.0):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(address(pid))
        reply = b""
        try:
            time.sleep(pause)
            client.sendall(request)
            while chunk := client.recv(65536):
                reply += chunk
        except (BrokenPipeError, ConnectionResetError):
            pass
        return reply.decode()


REQUESTS = {
    "ping": (b"ping\n", 0),
    "trim": (b"trim\n", 0),
    "stats": (b"stats\n", 0),
    "unknown": (b"format c:\n", 0),
    "endless": (b"x" * 100_000, 0),
    "slow": (b"ping\n", 3.0),
}

pid, action = int(sys.argv[1]), sys.argv[2]
reply = ask(pid, *REQUESTS[action])
# On a busy machine a request may come too late for its reply.
for _ in range(0 if action in ("endless", "slow") else 4):
    reply = reply or ask(pid, *REQUESTS[action])
print(reply, end="")
