"""gunicorn --preload: the server loads the table, and its workers inherit it. Run as a program, this is the client."""

import os
import socket
import subprocess
import sys
import time

import shared

SOCKET = os.path.join(os.environ.get("SCRATCH", "/tmp"), f"gunicorn-{os.environ.get('PORT', os.getpid())}")


def app(_environ, start_response):
    app.rounds += 1
    shared.work(app.rounds)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


app.rounds = 0


def request():
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(SOCKET)
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b"200 OK" in client.recv(4096)


def main():
    options = ["--preload", "--workers", "3", "--bind", "unix:" + SOCKET, "--log-level", "error"]
    command = [*sys.argv[1:], sys.executable, "-m", "gunicorn", *options, "gunicorn_app:app"]
    environment = {**os.environ, "PORT": str(os.getpid())}
    server = subprocess.Popen(command, env=environment, cwd=os.path.dirname(os.path.abspath(__file__)))
    try:
        deadline = time.monotonic() + 60
        while not os.path.exists(SOCKET) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        for _ in range(shared.ROUNDS * 3):
            request()
            time.sleep(0.2)
        time.sleep(5)
        print(shared.pss_mb(server.pid))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
else:
    TABLE = shared.table()
