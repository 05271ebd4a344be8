"""Sends eight requests to two gunicorn workers, and prints the workers' memory when they are idle.

gunicorn_requests.py SCRATCH     the server's socket is in this folder
"""

import http.client
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import task

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(sys.argv[1], "gunicorn.sock")


def app(environ, start_response):
    if environ["PATH_INFO"] == "/work":
        task.work(seed=1)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]


def ask(path):
    """The pid of the worker that answered."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(PATH)
    connection.request("GET", path)
    return int(connection.getresponse().read())


def main():
    command = [os.path.join(os.path.dirname(sys.executable), "gunicorn"), "-w", "2", "-t", "120", "-b", f"unix:{PATH}"]
    server = subprocess.Popen([*command, "gunicorn_requests:app", sys.argv[1]], cwd=HERE)
    try:
        while not os.path.exists(PATH) or len(task.children(server.pid)) < 2:
            time.sleep(0.1)
        ask("/")
        time.sleep(1)
        workers = task.Workers("gunicorn", task.children(server.pid))
        # Two at a time: the first worker may serve all requests that come one by one.
        with ThreadPoolExecutor(2) as clients:
            served = set(clients.map(ask, ["/work"] * 8))
        assert served == set(workers.pids), served
        workers.show()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
