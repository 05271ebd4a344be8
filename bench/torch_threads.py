"""An inference service on the CPU that starts a thread for each request, with inputs of many sizes.

Prints a line of JSON: RSS of the busy service (median after each four pairs of requests) and at rest.
"""

import json
import os
import statistics
import threading
import time

import torch

BATCHES, PAIRS, REST_S = 8, 4, 5


def rss_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def network():
    layers = [torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3, padding=1)]
    layers += [torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(512, 10)]
    return torch.nn.Sequential(*layers).eval()


def main():
    torch.set_num_threads(2)
    torch.manual_seed(0)
    net, generator, busy, sums = network(), torch.Generator().manual_seed(1), [], []

    def serve(image):
        with torch.no_grad():
            sums.append(float(net(image).sum()))

    for _ in range(BATCHES):
        for _ in range(PAIRS):
            height, width = (int(v) for v in torch.randint(80, 400, (2,), generator=generator))
            images = [torch.randn(2, 3, height, width, generator=generator) for _ in range(2)]
            threads = [threading.Thread(target=serve, args=(image,)) for image in images]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        busy.append(rss_bytes())
    time.sleep(REST_S)
    report = {"dropped_bytes": statistics.median(busy), "rest_bytes": rss_bytes()}
    print(json.dumps({**report, "checksum": round(sum(sorted(sums)), 2)}))


main()
