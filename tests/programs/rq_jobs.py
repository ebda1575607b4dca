"""Jobs that a worker of RQ runs in this process; the queue is in Redis."""

import os
import time

import redis
import rq
from rq.worker import SimpleWorker

connection = redis.Redis(db=5)
queue = rq.Queue(f"tests-{os.getpid()}", connection=connection)

for seconds in (0.01, 0.02):
    queue.enqueue(time.sleep, seconds)  #: 2 within rq.Queue.enqueue_job detail=time.sleep
queue.enqueue(os.strerror, 2)  #: within rq.Queue.enqueue_job detail=posix.strerror
queue.enqueue("os.path.realpath", "/")  #: within rq.Queue.enqueue_job detail=os.path.realpath
worker = SimpleWorker([queue], connection=connection)
worker.log.disabled = True
#: 2 within rq.Job.perform detail=time.sleep & within rq.Job.perform detail=posix.strerror
#: within rq.Job.perform detail=os.path.realpath
assert worker.work(burst=True, logging_level="CRITICAL")
queue.delete(delete_jobs=True)
