"""Eight threads; each holds the lock while it waits for a reply."""

import threading
import time

prices, lock = {}, threading.Lock()


def load(name):
    time.sleep(0.004)  # stands for a request to another service
    return len(name)


def refresh(names):
    for name in names:
        with lock:
            prices[name] = load(name)


threads = [threading.Thread(target=refresh, args=([f"item {n}" for n in range(40)],)) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
