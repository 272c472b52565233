"""Starts the command line; an interrupt while it is loading is a word, too."""

import gc
import sys


def main() -> None:
    try:
        from hdlog.commands.main import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted: nothing was done", file=sys.stderr)
        sys.exit(130)
    finally:
        gc.freeze()  # what is left goes with the process, and nobody need look through it
        # An interrupt that came through an exec, as in the making of a dataclass, is noted by Python, which would end by that
        # signal though it was caught here; the next exec that comes to its end takes the note away.
        exec("")


if __name__ == "__main__":
    main()
