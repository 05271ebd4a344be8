"""An inference service on the CPU that starts a thread for each request, with inputs of many sizes.

Prints a line of JSON: RSS of the busy service (median after each four pairs of requests) and at rest.
"""

import statistics
import threading
import time

import rounds
import torch

BATCHES, PAIRS, REST_S = 8, 4, 5


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
        busy.append(rounds.status_bytes("VmRSS"))
    time.sleep(REST_S)
    dropped_bytes, checksum = statistics.median(busy), round(sum(sorted(sums)), 2)
    rounds.report(dropped_bytes=dropped_bytes, rest_bytes=rounds.status_bytes("VmRSS"), checksum=checksum)


main()
