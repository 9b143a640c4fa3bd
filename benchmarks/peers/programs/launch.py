"""Runs one program and prints, once it has ended, what the kernel says it used.   launch.py LOG CORE|- PROGRAM ...

CPU time and the peak of resident memory are those of the program's whole life with all its threads and the processes
that it waited for. A small process of its own, since a program begins with the peak of the one that started it.
"""

import json
import os
import signal
import sys


def main() -> None:
    log, core, *command = sys.argv[1:]
    running = []
    signal.signal(signal.SIGTERM, lambda *_: [os.kill(child, signal.SIGTERM) for child in running])
    child = os.fork()
    if not child:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if core != "-":
            os.sched_setaffinity(0, {int(core)})
        written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(written, 1)
        os.dup2(written, 2)
        os.execvp(command[0], command)  # noqa: S606 - the program that was asked for, without a shell
    running.append(child)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    print(json.dumps({"user": used.ru_utime, "system": used.ru_stime, "rss_kib": used.ru_maxrss, "code": code}))


if __name__ == "__main__":
    main()
