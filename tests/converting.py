"""A conversion that says when a chunk is complete and then waits; run as a process of its own, which is killed."""

import sys
import time

from coordwise import datasets

source, to, target, chunks = sys.argv[1:]
seen = []


def progress(stage, done, total):
    seen.append(done)
    if len(seen) == int(chunks):
        print("waiting", flush=True)
        time.sleep(60)


datasets.convert(source, to, target=target or None, chunk_bytes=4000, progress=progress)
