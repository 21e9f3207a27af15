"""`python -m judge`: the program."""

import os
import subprocess
import sys

from judge import program

if __name__ == "__main__":
    command = [program(), *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.run(command).returncode)
    os.execv(command[0], command)
