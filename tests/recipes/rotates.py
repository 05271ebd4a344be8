"""Marks three rounds, has the marker file rotated, and marks three more."""

import glob
import os
import subprocess

import flarena

for n in range(6):
    assert flarena.mark("round_done", "site-1", n)
    if n == 2:
        bare = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        subprocess.run(
            ["logrotate", "--force", "--state", os.environ["STATE"], os.environ["RULE"]], check=True, env=bare
        )
        assert glob.glob(os.environ["LOGS"] + "/*.gz"), os.listdir(os.environ["LOGS"])
        assert not os.path.exists(os.environ["FLARENA_MARKER_FILE"])
