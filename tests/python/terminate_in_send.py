"""terminate_in_send.py ARGUMENT...: runs Python with the arguments, sends SIGTERM in send(), and prints the status."""

import os
import subprocess
import sys

child = subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, "FAKE_SEND": "hangs"}, stdout=-1)
assert child.stdout.readline() == b"sending\n"
child.terminate()
print("status", child.wait(timeout=120))
