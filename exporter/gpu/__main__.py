"""The worker's process: `python -m exporter.gpu`. In: a line per question. Out: a line of JSON per answer.

It alone talks to the driver, because a call into a driver can hang for ever, crash, or leak. It ends when its input
does, or when the driver can no longer be asked.
"""

import os
import signal
import sys
from contextlib import closing

from exporter.gpu.nvml import Session
from exporter.gpu.reading import Snapshot, SourceError
from exporter.gpu.wire import line


def main() -> None:
    """Answer questions until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the exporter, which then closes our input
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # whatever the driver's library prints must not look like an answer
        try:
            with closing(Session()) as session:
                for _ in sys.stdin:
                    print(line(session.read()), file=answers, flush=True)
        except SourceError as error:
            print(line(Snapshot(failure=error.failure, sentence=str(error))), file=answers, flush=True)


if __name__ == "__main__":
    main()
