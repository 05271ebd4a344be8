"""submit.py ADMIN_KIT JOB SECRETS: waits for two sites, then runs the job to its end.

It writes the tokens in argv (NVFlare 2.7) or in the environment (2.9) of NVFlare's processes to SECRETS, one a line,
for a test that looks for them in markers and messages.
"""

import json
import os
import re
import signal
import socket
import sys
import threading
import time

from nvflare.fuel.flare_api.flare_api import new_secure_session

PATIENCE_S = 550
SHUTDOWN_S = 30


def until(attempt):
    while True:
        result = attempt()
        if result:
            return result
        time.sleep(0.5)


def listening(admin_kit):
    """NVFlare's client may hang after a failed attempt to connect, so the first one must succeed."""
    with open(os.path.join(admin_kit, "startup", "fed_admin.json")) as file:
        admin = json.load(file)["admin"]
    try:
        socket.create_connection((admin["host"], admin["port"]), timeout=5).close()
    except OSError:
        return False
    return True


def answered(request):
    """The answer to a request, or None on a busy machine, where NVFlare's client gives up."""
    try:
        return request()
    except Exception as error:
        print("no answer:", repr(error), flush=True)
        return None


def connect(admin_kit):
    return answered(lambda: new_secure_session(os.path.basename(admin_kit), admin_kit, timeout=60))


def secrets(folder):
    """Tokens and signatures of the running processes whose arguments contain this folder."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                arguments = file.read().split(b"\0")
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            continue
        if not any(folder in argument for argument in arguments):
            continue
        found.update(arguments[n + 1] for n, flag in enumerate(arguments[:-1]) if flag in (b"-t", b"-ts", b"--token"))
        found.update(v.partition(b"=")[2] for v in variables if re.match(rb"\w*(TOKEN|SIGNATURE)\w*=", v))
    return {secret for secret in found if len(secret) >= 8}


def main(admin_kit, job, secrets_file):
    folder = os.path.dirname(os.path.abspath(admin_kit)).encode()
    seen = set()
    signal.alarm(PATIENCE_S)
    until(lambda: listening(admin_kit))
    session = until(lambda: connect(admin_kit))
    until(lambda: len(answered(session.get_connected_client_list) or ()) == 2)
    job_id = session.submit_job(job)

    def finished():
        seen.update(secrets(folder))
        status = (answered(lambda: session.get_job_meta(job_id)) or {}).get("status", "")
        return status if status.startswith("FINISHED") else None

    status = until(finished)
    print("status", status)
    seen.discard(job_id.encode())  # NVFlare also uses it as a token, and logs it
    with open(secrets_file, "wb") as file:
        file.writelines(secret + b"\n" for secret in sorted(seen))
    sys.stdout.flush()
    signal.alarm(0)
    # On a busy machine the server ends before it answers, and the client then tries to reach it for ever.
    shutdown = threading.Thread(target=session.shutdown, args=["all"], daemon=True)
    shutdown.start()
    shutdown.join(SHUTDOWN_S)
    os._exit(status != "FINISHED:COMPLETED")  # the client's threads outlive the server


if __name__ == "__main__":
    main(*sys.argv[1:])
